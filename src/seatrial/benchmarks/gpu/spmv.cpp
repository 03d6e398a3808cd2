// gpu.spmv: sparse matrix-vector products in three matrix formats, one after another.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "spmv.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 128;
// Items that share a row: a warp; a CPU has none.
[[nodiscard]] constexpr unsigned lanes(bool is_cpu) {
  return is_cpu ? 4 : 32;
}

struct Layout {
  const char* name;
  const char* kernel;
  unsigned rows_of_group;
  bool is_ellpack;
};
constexpr std::array layouts = {Layout{"csr-scalar", "csr_scalar", group, false},
                                Layout{"csr-vector", "csr_vector", group / lanes(false), false},
                                Layout{"ellpackr", "ellpack_r", group, true}};

struct Settings {
  bool is_fp64;
  std::uint32_t rows;
  double fill;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .rows = arguments.number<std::uint32_t>("--rows", 1024, 1, 1 << 20),
          .fill = arguments.number("--fill", 0.01, 1e-9, 0.5)};
}

template <class Real>
using Multiply = Kernel<const Real*, const std::uint32_t*, const std::uint32_t*, const Real*, Real*,
                        std::uint32_t>;

template <class Real>
[[nodiscard]] Source source(bool is_cpu) {
  Source made = {.name = "spmv.cl",
                 .text = seatrial_kernels(),
                 .defines = {"REAL=" + type_name<Real>(), "GROUP=" + std::to_string(group),
                             "LANES=" + std::to_string(lanes(is_cpu))},
                 .kernels = {}};
  for (const auto& layout : layouts)
    made.kernels.push_back(Multiply<Real>::declared(layout.kernel));
  return made;
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(false), source<double>(false)};
}

// The product in higher precision, and the sum of the terms' magnitudes.
template <class Real>
using Wider = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

// A square matrix in CSR, a vector, and their product.
template <class Real>
struct Problem {
  explicit Problem(const Settings& settings) : rows(settings.rows) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> any(-1, 1);
    // Each position is used with the same probability, so the distance between them is geometric
    // (J. S. Vitter, "Faster methods for random sampling", 1984).
    std::geometric_distribution<std::uint64_t> gap(settings.fill);
    const auto places = std::uint64_t{rows} * rows;
    starts.push_back(0);
    for (auto place = gap(random); place < places; place += 1 + gap(random)) {
      while (starts.size() <= place / rows)
        starts.push_back(static_cast<std::uint32_t>(values.size()));
      columns.push_back(static_cast<std::uint32_t>(place % rows));
      values.push_back(static_cast<Real>(any(random)));
    }
    starts.resize(std::size_t{rows} + 1, static_cast<std::uint32_t>(values.size()));
    x.resize(rows);
    for (auto& each : x)
      each = static_cast<Real>(any(random));
    multiply();
  }

  std::uint32_t rows;
  std::vector<std::uint32_t> starts;
  std::vector<std::uint32_t> columns;
  std::vector<Real> values;
  std::vector<Real> x;
  std::vector<Wider<Real>> product;
  std::vector<Wider<Real>> magnitude;

private:
  void multiply() {
    product.resize(rows);
    magnitude.resize(rows);
    for (std::uint32_t row = 0; row < rows; ++row)
      for (auto k = starts[row]; k < starts[row + 1]; ++k) {
        const auto term = static_cast<Wider<Real>>(values[k]) * x[columns[k]];
        product[row] += term;
        magnitude[row] += std::fabs(term);
      }
  }
};

// The same matrix in ELLPACK-R: by column, short rows padded.
template <class Real>
struct Ellpack {
  explicit Ellpack(const Problem<Real>& problem) : lengths(problem.rows) {
    for (std::uint32_t row = 0; row < problem.rows; ++row)
      lengths[row] = problem.starts[row + 1] - problem.starts[row];
    const auto width = std::max(1U, *std::max_element(lengths.begin(), lengths.end()));
    values.resize(std::size_t{width} * problem.rows);
    columns.resize(values.size());
    for (std::uint32_t row = 0; row < problem.rows; ++row)
      for (std::uint32_t k = 0; k < lengths[row]; ++k) {
        const auto at = std::size_t{k} * problem.rows + row;
        values[at] = problem.values[problem.starts[row] + k];
        columns[at] = problem.columns[problem.starts[row] + k];
      }
  }

  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> columns;
  std::vector<Real> values;
};

template <class Real>
class Product : public Workload {
public:
  // `values`, `columns` and `extents` hold the matrix in this format.
  Product(Device& device, bool is_optimised, const Layout& layout, const Problem<Real>& problem,
          const std::vector<Real>& values, const std::vector<std::uint32_t>& columns,
          const std::vector<std::uint32_t>& extents)
      : problem_(problem), queue_(device.queue()),
        module_(
            device.build(source_for(device, source<Real>(device.facts().is_cpu), is_optimised))),
        multiply_(*module_, layout.kernel),
        groups_(device.facts().is_cpu
                    ? device.facts().compute_units
                    : (problem.rows + layout.rows_of_group - 1) / layout.rows_of_group),
        values_(on_device(device, *queue_, values)), columns_(on_device(device, *queue_, columns)),
        extents_(on_device(device, *queue_, extents)), x_(on_device(device, *queue_, problem.x)),
        y_(device, problem.rows) {}

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    multiply_(*queue_, {.groups = groups_, .items = group}, values_, columns_, extents_, x_, y_,
              problem_.rows);
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto entries = static_cast<double>(problem_.values.size());
    const auto bytes = entries * (sizeof(Real) + sizeof(std::uint32_t)) +
                       static_cast<double>(extents_.bytes() + x_.bytes() + y_.bytes());
    return {{"ops", 2 * entries}, {"bytes", bytes}};
  }
  void poison() override { poison_arrays(*queue_, y_); }
  [[nodiscard]] double error() override {
    const auto y = on_host(*queue_, y_);
    WorstError worst;
    for (std::uint32_t row = 0; row < problem_.rows; ++row) {
      const auto wrong = std::fabs(y[row] - problem_.product[row]);
      const bool is_zero = wrong == 0; // also for empty rows
      worst.add(is_zero ? 0 : static_cast<double>(wrong / problem_.magnitude[row]));
    }
    return worst.value();
  }

private:
  const Problem<Real>& problem_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Multiply<Real> multiply_;
  unsigned groups_;
  Array<Real> values_;
  Array<std::uint32_t> columns_;
  Array<std::uint32_t> extents_;
  Array<Real> x_;
  Array<Real> y_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const Problem<Real> problem(settings);
  const Ellpack<Real> ellpack(problem);
  program.note("entries", problem.values.size());
  WorstError worst;
  for (const auto& layout : layouts)
    worst.add(measured_each(program, team, chosen, "product",
                            json::Object().add("format", layout.name), [&](Device& device) {
                              return layout.is_ellpack
                                         ? std::make_unique<Product<Real>>(
                                               device, chosen.is_optimised(), layout, problem,
                                               ellpack.values, ellpack.columns, ellpack.lengths)
                                         : std::make_unique<Product<Real>>(
                                               device, chosen.is_optimised(), layout, problem,
                                               problem.values, problem.columns, problem.starts);
                            }));
  program.check("error", worst.value());
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("spmv", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
