// gpu.gemm-split and gpu.gemm-blocked: one product C = alpha A B of matrices in host memory, by the
// host's CPUs and devices together (device/shared_product.hpp).
// untimed: -O1
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "available_memory.hpp"
#include "blas.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/host_memory.hpp"
#include "device/shared_product.hpp"
#include "device/streamed_product.hpp"
#include "device/workload.hpp"
#include "host_share.hpp"
#include "matrix_product.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "gemm.cl")

namespace seatrial {
namespace {

using namespace device;

using Settings = SharedSettings;

[[nodiscard]] Settings prepare(Arguments& arguments) {
  Settings settings = {
      .form = arguments.choice("--form", "split", {"split", "blocked"}) == "split" ? Form::split
                                                                                   : Form::blocked,
      .is_fp64 = arguments.choice("--precision", "fp64", {"fp64", "fp32"}) == "fp64",
      .uses_vendor_library =
          arguments.choice("--library", "portable", {"portable", "vendor"}) == "vendor",
      .n = arguments.number<std::size_t>("--n", 1024, 64, 1U << 20),
      .tile = arguments.number<std::uint32_t>("--tile", 0, 0, 1U << 20),
      .resident = arguments.number<std::uint64_t>("--resident", 0, 0, std::uint64_t{1} << 48),
      .host = host_kind(arguments.choice("--host", "pinned", {"pinned", "pageable"})),
      .cpu = HostBlas(arguments)};
  if (settings.tile % gemm_unit != 0)
    throw Failure(Exit::usage, "--tile: expected a multiple of " + std::to_string(gemm_unit));
  return settings;
}

[[nodiscard]] std::vector<Source> sources() {
  return {gemm_source<float>(seatrial_kernels()), gemm_source<double>(seatrial_kernels())};
}

// A round: the product, and each part alone.
struct Round {
  Product product;
  std::vector<Work> alone;
};

template <class Real>
void report(Program& program, const ChosenDevices& chosen, const SharedProduct<Real>& shared,
            const std::vector<Round>& rounds, const Settings& settings) {
  const auto devices = shared.devices();
  const auto n = static_cast<double>(settings.n);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const auto& [product, alone] = rounds[i];
    double together = 0;
    double busy_s = 0;
    std::vector<double> flops;
    std::vector<double> elapsed;
    for (std::size_t part = 0; part < shared.parts(); ++part) {
      together += alone[part].rate();
      busy_s += product.parts[part].elapsed_s;
      flops.push_back(product.parts[part].flops);
      elapsed.push_back(product.parts[part].elapsed_s);
    }
    const double cpu_flops = shared.has_cpus() ? flops.back() : 0;
    auto event = sample_event("product", i, product.elapsed_s)
                     .add("work", json::Object().add("flops", 2 * n * n * n))
                     .add("cpu_share", cpu_flops / (2 * n * n * n))
                     .add("balance", busy_s / static_cast<double>(shared.parts()) /
                                         *std::ranges::max_element(elapsed))
                     .add("alone_flops", together)
                     .add("part_flops", flops)
                     .add("part_s", elapsed)
                     .add("speeds", product.speeds);
    program.add(event);
    const auto add = [&](const std::string& series, std::size_t part, const Work& work) {
      if (!(work.flops > 0) || !(work.elapsed_s > 0))
        return; // a part that is too slow for a single column
      auto of_part = sample_event(series, i, work.elapsed_s)
                         .add("work", json::Object().add("flops", work.flops));
      if (part < devices)
        of_part.add("point", json::Object().add("device", chosen[part].facts().index))
            .add("device", facts_for_limit(chosen, 1, part))
            .add("kernels_s", work.kernels_s);
      program.add(of_part);
    };
    for (std::size_t part = 0; part < shared.parts(); ++part) {
      const std::string name = part < devices ? "device" : "cpu";
      add(name, part, product.parts[part]);
      add(name + "_alone", part, alone[part]);
    }
    if (settings.form == Form::blocked)
      program.add(sample_event("sums", i, product.sums_s)
                      .add("work", json::Object().add("bytes", 3 * n * n * sizeof(Real))));
  }
}

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  constexpr double most_of_memory = 0.8;
  const auto host = available_memory();
  const auto wanted =
      Operands<Real>::host_bytes(settings.n) * (settings.form == Form::split ? 3 : 4) / 3;
  if (static_cast<double>(wanted) > most_of_memory * static_cast<double>(host.bytes))
    throw Skip("matrices of order " + std::to_string(settings.n) + " need " +
               needed_of_available(static_cast<double>(wanted), static_cast<double>(host.bytes)) +
               " (" + host.source + ")");
  SharedProduct<Real> shared(team, chosen, settings, seatrial_kernels());
  if (!shared.library().empty())
    program.note("library", shared.library());
  if (const auto& blas = settings.cpu.library) {
    program.note("blas_path", settings.cpu.file);
    for (const auto& [key, value] :
         {std::pair{"blas_version", blas->version()}, std::pair{"blas_core", blas->core()}})
      if (!value.empty())
        program.note(key, value);
  }
  if (!settings.cpu.why.empty())
    program.note("blas_why", settings.cpu.why);
  if (shared.devices() > 0)
    program.note("blocks", json::Object()
                               .add("tile", shared.blocking(0).tile)
                               .add("depth", shared.blocking(0).depth)
                               .add("bytes", shared.blocking(0).elements() * sizeof(Real)));
  double rows = 0;
  double elements = 0;
  const auto check = [&] {
    const auto [row, element] = shared.errors();
    rows = std::isnan(row) || std::isnan(rows) ? std::nan("") : std::max(row, rows);
    elements =
        std::isnan(element) || std::isnan(elements) ? std::nan("") : std::max(element, elements);
  };
  shared.calibrate();
  shared.poison();
  static_cast<void>(shared.run());
  check();
  std::vector<Round> rounds;
  for (const SampleCount count(program); !count.is_enough(rounds.size(), rounds.size());) {
    shared.poison();
    Round round{.product = shared.run(), .alone = {}};
    check();
    for (std::size_t part = 0; part < shared.parts(); ++part)
      round.alone.push_back(shared.alone(part));
    rounds.push_back(std::move(round));
  }
  report(program, chosen, shared, rounds, settings);
  shared.close();
  program.check("row_error", rows);
  program.check("element_error", elements);
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  if (settings.form == Form::blocked && chosen.size() == 0)
    throw Failure(Exit::usage, "--form blocked needs a device");
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  if (const auto status = seatrial::described_with_blas("gemm_split", argc, argv))
    return *status;
  return seatrial::device::run_program("gemm_split", argc, argv, seatrial::prepare,
                                       seatrial::sources, seatrial::measure,
                                       seatrial::device::HostThreads::some);
}
