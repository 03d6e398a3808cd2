// gpu.collective: collective operations between devices, one per rank, by NCCL or by MPI.
//
// Ranks leave a barrier, start `times` operations one after another, and wait for the last. A rank
// has arrived when its first call returned (NCCL, whose calls return when the operation is in the
// stream) or began (MPI). The time counts from the arrival of the last rank to the end of the last
// one: a rank that comes late does not look like a slow link. How far the arrivals are apart, and
// which rank was last, is recorded beside it.
//
// Before each sample the buffers get new data and the results are overwritten; afterwards every
// element is compared. Samples of all sizes are interleaved.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clock_step.hpp"
#include "device/collective_buffers.hpp"
#include "device/device_program.hpp"
#include "device/nccl.hpp"
#include "mpi/agreed.hpp"
#include "mpi/common_clock.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/mpi_communicator.hpp"
#include "mpi/program.hpp"
#include "mpi/rank_on_node.hpp"
#include "mpi/rounds.hpp"
#include "round_order.hpp"

namespace {

using namespace seatrial;
using device::Collective;

constexpr double sample_s = 5e-3;
constexpr std::size_t min_rounds = 3;
constexpr double late_times = 8; // beyond this multiple of the slice one round is enough

enum class Buffers { device, managed, staged };

struct Settings {
  device::DeviceArguments devices;
  Collective collective;
  device::Element element;
  mpi::Reduction reduction;
  std::vector<std::size_t> sizes;
  bool uses_nccl;
  std::string nccl; // file of the library
  Buffers buffers;
};

template <class Value, std::size_t count>
[[nodiscard]] Value numbered(const std::array<std::string_view, count>& names,
                             std::string_view word) {
  return static_cast<Value>(std::distance(names.begin(), std::ranges::find(names, word)));
}

// Drivers and NCCL create threads, so MPI is initialised with thread support.
Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 40;
  const auto buffers = arguments.choice("--buffers", "device", {"device", "managed", "staged"});
  Settings settings{
      .devices = device::DeviceArguments(arguments),
      .collective =
          numbered<Collective>(device::collective_names,
                               arguments.choice("--collective", "all_reduce",
                                                {"all_reduce", "all_gather", "reduce_scatter",
                                                 "broadcast", "reduce", "alltoall", "sendrecv"})),
      .element = numbered<device::Element>(
          device::element_names,
          arguments.choice("--datatype", "float", {"float", "double", "int8", "int32", "int64"})),
      .reduction =
          mpi::reduction_named(arguments.choice("--reduction", "sum", {"sum", "max", "min"})),
      .sizes = arguments.numbers<std::size_t>("--sizes", 1, largest),
      .uses_nccl = arguments.choice("--library", "nccl", {"nccl", "mpi"}) == "nccl",
      .nccl = std::string(arguments.find("--nccl").value_or("")),
      .buffers = buffers == "device"    ? Buffers::device
                 : buffers == "managed" ? Buffers::managed
                                        : Buffers::staged};
  if (settings.uses_nccl && settings.buffers == Buffers::staged)
    throw Failure(Exit::usage, "--buffers staged is for --library mpi: NCCL works in devices");
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (provided < MPI_THREAD_FUNNELED)
    throw Failure(Exit::system, "this MPI library does not support threads (MPI_THREAD_FUNNELED)");
  return settings;
}

// One operation at one size, with the numbers of rank 0's samples.
struct Point {
  device::Operation operation;
  std::unique_ptr<mpi::Data> data;
  std::uint64_t times = 1;

  struct Sample {
    double elapsed_s;
    double apart_s; // from the arrival of the first rank to that of the last
    int last;
  };
  std::vector<Sample> samples = {};
};

// The device of a rank, and how it takes part.
class Member {
public:
  Member(device::Device& device, const Settings& settings) : device_(device), settings_(settings) {
    queue_ = mpi::on_all_ranks([&] { return device.queue(); });
    if (settings.uses_nccl)
      join_nccl();
    else if (settings.buffers == Buffers::staged)
      communicator_ = mpi::on_all_ranks([&] {
        return std::make_unique<mpi::StagedCommunicator>(
            device, *queue_, largest(&device::Shape::sent), largest(&device::Shape::received));
      });
    else
      communicator_ =
          mpi::on_all_ranks([&] { return std::make_unique<mpi::MpiCommunicator>(device); });
    buffers_ = mpi::on_all_ranks([&] {
      const auto where =
          settings.buffers == Buffers::managed ? device::Where::managed : device::Where::device;
      return std::make_unique<device::CollectiveBuffers>(
          device, *queue_, where, largest(&device::Shape::sent), largest(&device::Shape::received));
    });
  }

  [[nodiscard]] device::Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] device::CollectiveBuffers& buffers() const { return *buffers_; }

  [[nodiscard]] Point point(std::size_t size, bool is_in_place) const {
    const int rank = mpi::world_rank();
    const int ranks = mpi::world_size();
    const auto shape = shape_of(size);
    const auto own = static_cast<std::size_t>(rank) * shape.part;
    device::Operation operation{.collective = settings_.collective,
                                .element = settings_.element,
                                .reduction = settings_.reduction,
                                .shape = shape,
                                .send = {&buffers_->send(), 0},
                                .receive = {&buffers_->receive(), 0},
                                .is_in_place = is_in_place};
    const auto convention = communicator_->convention();
    if (is_in_place) {
      operation.send = {&buffers_->larger(),
                        settings_.collective == Collective::all_gather ? own : 0};
      const bool scatters =
          settings_.collective == Collective::reduce_scatter && convention.scatters_in_order;
      operation.receive = {&buffers_->larger(), scatters ? own : 0};
    }
    auto data = device::data_of(operation, *buffers_, rank, ranks, convention.root_receives);
    return {.operation = operation, .data = std::move(data)};
  }

private:
  [[nodiscard]] device::Shape shape_of(std::size_t size) const {
    return device::shape_of(settings_.collective, size, static_cast<std::size_t>(mpi::world_size()),
                            settings_.element);
  }
  [[nodiscard]] std::size_t largest(std::size_t device::Shape::*side) const {
    return shape_of(std::ranges::max(settings_.sizes)).*side;
  }

  void join_nccl() {
    nccl_ = mpi::on_all_ranks([&] {
      if (device_.facts().backend != "cuda")
        throw Unsupported("library", device_.facts().name + " is used by OpenCL, NCCL by CUDA; "
                                                            "library=mpi with buffers=staged "
                                                            "works with every device");
      return std::make_unique<device::cuda::NcclApi>(settings_.nccl);
    });
    device::cuda::NcclId id;
    if (mpi::world_rank() == 0)
      nccl_->make_id(&id);
    MPI_Bcast(id.bytes.data(), static_cast<int>(id.bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    communicator_ = std::make_unique<device::cuda::NcclCommunicator>(
        *nccl_, id, dynamic_cast<device::cuda::CudaQueue&>(*queue_), mpi::world_rank(),
        mpi::world_size());
  }

  device::Device& device_;
  const Settings& settings_;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<device::cuda::NcclApi> nccl_;
  std::unique_ptr<device::Communicator> communicator_;
  std::unique_ptr<device::CollectiveBuffers> buffers_;
};

class Measurement {
public:
  Measurement(mpi::Program& program, const Settings& settings, const Member& member)
      : program_(program), member_(member),
        is_asynchronous_(member.communicator().convention().is_asynchronous) {
    const bool has_places = settings.buffers != Buffers::staged &&
                            settings.collective != Collective::all_to_all &&
                            settings.collective != Collective::send_receive;
    for (const auto size : settings.sizes)
      for (const bool is_in_place : {false, true})
        if (has_places || !is_in_place)
          points_.push_back(member.point(size, is_in_place));
  }

  void run() {
    const double step_s = mpi::of_first(clock_step_s());
    for (auto& point : points_) {
      const auto what = "warm-up, " + title(point);
      static_cast<void>(batch(point, 1, what)); // connections are made by the first call
      point.times = repetitions_lasting(sample_s, step_s, 1, [&](std::uint64_t times) {
        return mpi::of_first(batch(point, times, what).elapsed_s);
      });
    }
    mpi::Rounds rounds(program_, min_rounds, late_times * program_.slice_s);
    for (std::size_t round = 0; rounds.another(round); ++round)
      for (const auto place : round_order(points_.size(), round)) {
        auto& point = points_[place];
        clock_.measure_again();
        point.samples.push_back(
            batch(point, point.times, title(point) + ", round " + std::to_string(round)));
      }
    clock_.measure_again(true);
  }

  void report() {
    double shortest_s = std::numeric_limits<double>::infinity();
    for (const auto& point : points_)
      for (std::size_t i = 0; i < point.samples.size(); ++i) {
        add(point, i);
        shortest_s = std::min(shortest_s, point.samples[i].elapsed_s);
      }
    note_arrivals();
    const auto error = clock_.error();
    program_.check("wrong_data", mpi::sum(wrong_));
    program_.check("clock_error", shortest_s > 0 ? error.seen_s / shortest_s : 1.0);
    program_.note("clock_error_s", error.seen_s);
    program_.note("common_clock",
                  clock_.all_common() ? "one clock for all ranks" : "measured between hosts");
  }

private:
  [[nodiscard]] static std::string title(const Point& point) {
    const auto& operation = point.operation;
    return std::string(device::collective_names[static_cast<std::size_t>(operation.collective)]) +
           ", " + std::to_string(operation.shape.size) + " B" +
           (operation.is_in_place ? ", in place" : "");
  }

  // Collective. The sample is rank 0's. The phase, `what`, says whether this rank has arrived: if
  // an operation hangs, those that wait in it wait for the others.
  [[nodiscard]] Point::Sample batch(Point& point, std::uint64_t times, const std::string& what) {
    program_.at(what);
    const auto inside = "in the operation: " + what;
    auto& communicator = member_.communicator();
    const auto seed = ++seed_;
    point.data->fill(seed);
    member_.buffers().upload(point.operation);
    const auto base = mpi::of_first(static_cast<double>(clock_.common_time()));
    MPI_Barrier(MPI_COMM_WORLD);
    auto arrived = clock_.common_time();
    communicator.start(point.operation);
    if (is_asynchronous_)
      arrived = clock_.common_time();
    program_.at(inside);
    for (std::uint64_t i = 1; i < times; ++i)
      communicator.start(point.operation);
    communicator.finish();
    const auto ended = clock_.common_time();
    member_.buffers().download(point.operation);
    // In place, a later operation starts from the results of the one before.
    if (!point.operation.is_in_place || times == 1)
      wrong_ += static_cast<double>(point.data->wrong(seed));
    else
      verify_once(point);
    return combined(base, arrived, ended);
  }

  // One more operation on new data, whose result is known.
  void verify_once(Point& point) {
    const auto seed = ++seed_;
    point.data->fill(seed);
    member_.buffers().upload(point.operation);
    member_.communicator().start(point.operation);
    member_.communicator().finish();
    member_.buffers().download(point.operation);
    wrong_ += static_cast<double>(point.data->wrong(seed));
  }

  [[nodiscard]] static Point::Sample combined(double base, mpi::Nanoseconds arrived,
                                              mpi::Nanoseconds ended) {
    const auto all =
        mpi::gather({static_cast<double>(arrived) - base, static_cast<double>(ended) - base});
    if (all.empty())
      return {};
    double first = all[0];
    double end = all[1];
    std::size_t last = 0;
    for (std::size_t at = 0; at < all.size(); at += 2) {
      first = std::min(first, all[at]);
      end = std::max(end, all[at + 1]);
      last = all[at] > all[last] ? at : last;
    }
    return {.elapsed_s = std::max(end - all[last], 1.0) * 1e-9,
            .apart_s = (all[last] - first) * 1e-9,
            .last = static_cast<int>(last / 2)};
  }

  void add(const Point& point, std::size_t i) {
    const auto& sample = point.samples[i];
    const auto& shape = point.operation.shape;
    const auto times = static_cast<double>(point.times);
    const auto bytes = times * static_cast<double>(shape.size);
    const auto add = [&](const char* series) {
      program_.add(sample_event(series, i, sample.elapsed_s)
                       .add("point", json::Object()
                                         .add("size_B", shape.size)
                                         .add("in_place", point.operation.is_in_place))
                       .add("work", json::Object()
                                        .add("ops", times)
                                        .add("bytes", bytes)
                                        .add("bus_bytes", bytes * shape.bus))
                       .add("apart_s", sample.apart_s)
                       .add("last_rank", sample.last));
    };
    add("time");
    if (program_.ranks > 1) // of one rank, nothing passes between devices
      add("moved");
  }

  // The rank that came last most often, and by how much, of all samples.
  void note_arrivals() {
    const auto hosts = mpi::gather_hosts();
    if (hosts.size() < 2)
      return;
    std::vector<std::size_t> times(hosts.size());
    std::size_t samples = 0;
    for (const auto& point : points_)
      for (const auto& sample : point.samples) {
        ++times[static_cast<std::size_t>(sample.last)];
        ++samples;
      }
    const auto most = std::ranges::max_element(times);
    const auto rank = static_cast<int>(std::distance(times.begin(), most));
    std::vector<double> apart_s;
    std::vector<double> elapsed_s;
    for (const auto& point : points_)
      for (const auto& sample : point.samples)
        if (sample.last == rank) {
          apart_s.push_back(sample.apart_s);
          elapsed_s.push_back(sample.elapsed_s);
        }
    program_.note("arrivals", json::Object()
                                  .add("rank", rank)
                                  .add("host", hosts[static_cast<std::size_t>(rank)])
                                  .add("samples", samples)
                                  .add("times", *most)
                                  .add("apart_s", middle(apart_s))
                                  .add("sample_s", middle(elapsed_s)));
  }

  [[nodiscard]] static double middle(std::vector<double>& values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, at);
    return *at;
  }

  mpi::Program& program_;
  const Member& member_;
  bool is_asynchronous_;
  mpi::CommonClock clock_;
  std::vector<Point> points_;
  std::uint64_t seed_ = 0;
  double wrong_ = 0;
};

// The settings of NCCL and of MPS that processes inherit.
[[nodiscard]] std::string library_variables() {
  std::string found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("NCCL_") || text.starts_with("CUDA_MPS_"))
      found.append(found.empty() ? "" : " ").append(text);
  }
  return found;
}

void measure(mpi::Program& program, const Settings& settings) {
  const auto largest = std::ranges::max(settings.sizes);
  mpi::require_memory((settings.buffers == Buffers::staged ? 4 : 2) * largest);
  const auto devices = mpi::on_all_ranks([&] {
    return std::make_unique<device::Devices>(settings.devices.backend, settings.devices.platform,
                                             settings.devices.nvrtc, settings.devices.is_as_gpu);
  });
  const auto chosen =
      mpi::on_all_ranks([&] { return device::ChosenDevices(*devices, settings.devices); });
  const auto own = static_cast<std::size_t>(mpi::rank_on_node());
  const bool shares = mpi::sum(own >= chosen.size() ? 1 : 0) > 0;
  if (settings.uses_nccl && shares)
    throw Skip("NCCL needs a device for each rank of a node; this one has " +
               std::to_string(chosen.size()));
  std::vector<json::Object> documents;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    documents.push_back(chosen[i].facts().document());
  program.note("devices", documents);
  program.note("ranks_share_devices", shares);
  if (const auto variables = library_variables(); !variables.empty())
    program.note("library_variables", variables);

  const Member member(chosen[own % chosen.size()], settings);
  program.note("library", member.communicator().name());
  Measurement measurement(program, settings, member);
  measurement.run();
  measurement.report();
}

} // namespace

int main(int argc, char** argv) {
  if (const std::string_view word = argc > 1 ? argv[1] : ""; word == "--list" && argc <= 3)
    return seatrial::device::detail::list_devices(argc == 3 ? argv[2] : "auto");
  return seatrial::mpi::run_program("collective", argc, argv, prepare, measure);
}
