// mpi.put, mpi.get, mpi.accumulate: one rank reads and writes another's memory.
//
// Rank 0 accesses the window of rank 1. There are two series: "time", where each operation
// completes before the next, and "bandwidth", where many operations complete together; all sizes
// are interleaved, and a sample lasts about a millisecond. Before each sample the buffer and the
// window are filled with new patterns; afterwards the target bytes are compared. Accumulate adds
// unsigned integers, so that every bit of the result is known.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/message.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "pages.hpp"
#include "round_order.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3;
constexpr std::size_t min_rounds = 3;
constexpr std::uint64_t trial_epochs = 4;
constexpr int target = 1;

enum class Operation { put, get, accumulate };
enum class Synchronization { flush, lock, fence, pscw };

struct Settings {
  Operation operation;
  Synchronization synchronization;
  bool allocates; // MPI allocates the window's memory; else we do
  std::uint64_t window;
  std::vector<std::size_t> sizes;
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 40;
  const auto operation = arguments.choice("--operation", "put", {"put", "get", "accumulate"});
  const auto synchronization =
      arguments.choice("--synchronization", "flush", {"flush", "lock", "fence", "pscw"});
  return {.operation = operation == "put"   ? Operation::put
                       : operation == "get" ? Operation::get
                                            : Operation::accumulate,
          .synchronization = synchronization == "flush"   ? Synchronization::flush
                             : synchronization == "lock"  ? Synchronization::lock
                             : synchronization == "fence" ? Synchronization::fence
                                                          : Synchronization::pscw,
          .allocates =
              arguments.choice("--memory", "allocate", {"allocate", "create"}) == "allocate",
          .window = arguments.number<std::uint64_t>("--window", 64, 1, 1 << 20),
          .sizes = arguments.numbers<std::size_t>("--sizes", 1, largest)};
}

// The window of rank 1, and the group for post-start-complete-wait.
class Window {
public:
  Window(bool allocates, std::byte* memory, std::size_t bytes) {
    void* base = memory;
    // Whole pages: MPICH 4.0.2 writes 8 bytes beyond a shared window whose size is not a multiple
    // of 16.
    const auto size = static_cast<MPI_Aint>(round_up(bytes, base_page()));
    if (allocates)
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window_);
    else
      MPI_Win_create(memory, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    data_ = static_cast<std::byte*>(base);
    MPI_Group everyone = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &everyone);
    const int other = 1 - mpi::world_rank();
    MPI_Group_incl(everyone, 1, &other, &other_);
    MPI_Group_free(&everyone);
  }
  ~Window() {
    MPI_Group_free(&other_);
    MPI_Win_free(&window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] MPI_Win get() const noexcept { return window_; }
  [[nodiscard]] MPI_Group other() const noexcept { return other_; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

private:
  MPI_Win window_ = MPI_WIN_NULL;
  MPI_Group other_ = MPI_GROUP_NULL;
  std::byte* data_ = nullptr;
};

class Access {
public:
  Access(const mpi::Program& program, const Settings& settings, std::byte* buffer,
         const Window& window)
      : rank_(program.rank), operation_(settings.operation),
        synchronization_(settings.synchronization), buffer_(buffer), window_(window) {}

  // This many epochs of this many operations each, verified; the total time on rank 0.
  double run(const mpi::Message& message, std::uint64_t epochs, std::uint64_t operations) {
    begin_sample(message.bytes);
    const bool is_passive = synchronization_ == Synchronization::flush;
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_passive && rank_ == 0)
      MPI_Win_lock_all(0, window_.get());
    epoch(message, operations); // absorbs the barrier's skew and the first touch
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < epochs; ++i)
      epoch(message, operations);
    const double elapsed_s = seconds(Clock::now() - start);
    if (is_passive && rank_ == 0)
      MPI_Win_unlock_all(window_.get());
    MPI_Barrier(MPI_COMM_WORLD);
    verify(message.bytes, (epochs + 1) * operations);
    return elapsed_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  // Rank 1 owns the window, but between two barriers it may load and store that memory only inside
  // an access epoch (MPI 4.0, 12.7: "Semantics and Correctness").
  template <class Action>
  void in_own_window(Action action) {
    if (rank_ != target)
      return;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window_.get());
    action(window_.data());
    MPI_Win_unlock(target, window_.get());
  }

  void begin_sample(std::size_t bytes) {
    ++seed_;
    const std::span buffer(buffer_, bytes);
    if (rank_ == 0)
      mpi::fill(buffer, operation_ == Operation::get ? ~seed_ : seed_);
    in_own_window([&](std::byte* data) {
      if (operation_ == Operation::accumulate)
        std::memset(data, 0, bytes);
      else
        mpi::fill({data, bytes}, operation_ == Operation::get ? seed_ : ~seed_);
    });
  }

  void verify(std::size_t bytes, std::uint64_t additions) {
    if (operation_ == Operation::get && rank_ == 0)
      wrong_ += mpi::wrong_bytes({buffer_, bytes}, seed_);
    if (operation_ == Operation::get)
      return;
    in_own_window([&](std::byte* data) {
      if (operation_ == Operation::put)
        wrong_ += mpi::wrong_bytes({data, bytes}, seed_);
      else if (bytes % sizeof(std::uint64_t) == 0)
        wrong_ += wrong_sums<std::uint64_t>({data, bytes}, additions);
      else
        wrong_ += wrong_sums<std::uint8_t>({data, bytes}, additions);
    });
  }

  // Unsigned sums wrap around: the pattern times the number of operations.
  template <class Element>
  [[nodiscard]] std::size_t wrong_sums(std::span<const std::byte> found,
                                       std::uint64_t additions) const {
    std::vector<std::byte> pattern(found.size());
    mpi::fill(pattern, seed_);
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < found.size(); at += sizeof(Element)) {
      Element sum = 0;
      Element one = 0;
      std::memcpy(&sum, found.data() + at, sizeof sum);
      std::memcpy(&one, pattern.data() + at, sizeof one);
      wrong += sum == static_cast<Element>(one * additions) ? 0 : sizeof(Element);
    }
    return wrong;
  }

  void epoch(const mpi::Message& message, std::uint64_t operations) {
    const bool is_origin = rank_ == 0;
    switch (synchronization_) {
    case Synchronization::flush:
      if (is_origin) {
        issue(message, operations);
        MPI_Win_flush(target, window_.get());
      }
      break;
    case Synchronization::lock:
      if (is_origin) {
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window_.get());
        issue(message, operations);
        MPI_Win_unlock(target, window_.get());
      }
      break;
    case Synchronization::fence:
      MPI_Win_fence(0, window_.get());
      if (is_origin)
        issue(message, operations);
      MPI_Win_fence(0, window_.get());
      break;
    case Synchronization::pscw:
      if (is_origin) {
        MPI_Win_start(window_.other(), 0, window_.get());
        issue(message, operations);
        MPI_Win_complete(window_.get());
      } else {
        MPI_Win_post(window_.other(), 0, window_.get());
        MPI_Win_wait(window_.get());
      }
      break;
    }
  }

  void issue(const mpi::Message& message, std::uint64_t operations) {
    const auto window = window_.get();
    const int count = message.count;
    const auto type = message.type;
    for (std::uint64_t i = 0; i < operations; ++i)
      switch (operation_) {
      case Operation::put:
        MPI_Put(buffer_, count, type, target, 0, count, type, window);
        break;
      case Operation::get:
        MPI_Get(buffer_, count, type, target, 0, count, type, window);
        break;
      case Operation::accumulate:
        MPI_Accumulate(buffer_, count, type, target, 0, count, type, MPI_SUM, window);
        break;
      }
  }

  int rank_;
  Operation operation_;
  Synchronization synchronization_;
  std::byte* buffer_;
  const Window& window_;
  std::uint64_t seed_ = 0;
  std::size_t wrong_ = 0;
};

// Sums use whole words if the size allows.
[[nodiscard]] MPI_Datatype element_of(Operation operation, std::size_t bytes) {
  if (operation != Operation::accumulate)
    return MPI_BYTE;
  return bytes % sizeof(std::uint64_t) == 0 ? MPI_UINT64_T : MPI_UINT8_T;
}

struct Series {
  const char* name;
  const mpi::Message& message;
  std::uint64_t operations; // per epoch
  std::uint64_t epochs = 0; // per sample
  std::vector<double> elapsed_s;
};

void measure(mpi::Program& program, const Settings& settings) {
  if (program.ranks != 2)
    throw Failure(Exit::usage,
                  "this benchmark needs 2 ranks, not " + std::to_string(program.ranks));
  const auto largest = std::ranges::max(settings.sizes);
  mpi::require_memory(2 * largest);
  const Pages buffer(largest, true);
  const Pages own(settings.allocates ? 1 : round_up(largest, base_page()), true);
  const Window window(settings.allocates, own.data(), largest);
  Access access(program, settings, buffer.data(), window);

  std::list<mpi::Message> messages; // must not be moved
  std::vector<Series> all;
  for (const auto bytes : settings.sizes) {
    const auto& message = messages.emplace_back(element_of(settings.operation, bytes), bytes);
    all.push_back({.name = "time", .message = message, .operations = 1, .elapsed_s = {}});
    all.push_back(
        {.name = "bandwidth", .message = message, .operations = settings.window, .elapsed_s = {}});
  }
  for (auto& series : all) {
    program.at("warm-up, " + std::to_string(series.message.bytes) + " B");
    access.run(series.message, trial_epochs, series.operations);
    series.epochs =
        repetitions_lasting(sample_s, mpi::of_first(clock_step_s()), trial_epochs, [&](auto n) {
          return mpi::of_first(access.run(series.message, n, series.operations));
        });
  }

  mpi::Rounds rounds(program, min_rounds);
  for (std::size_t round = 0; rounds.another(round); ++round) {
    for (const auto place : round_order(all.size(), round)) {
      auto& series = all[place];
      program.at(std::to_string(series.message.bytes) + " B, round " + std::to_string(round));
      series.elapsed_s.push_back(access.run(series.message, series.epochs, series.operations));
    }
  }

  for (const auto& series : all) {
    const auto operations = series.epochs * series.operations;
    for (std::size_t i = 0; i < series.elapsed_s.size(); ++i)
      program.add(sample_event(series.name, i, series.elapsed_s[i])
                      .add("point", json::Object().add("size_B", series.message.bytes))
                      .add("work", json::Object()
                                       .add("ops", operations)
                                       .add("bytes", operations * series.message.bytes)));
  }
  program.check("wrong_bytes", mpi::sum(static_cast<double>(access.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("one_sided", argc, argv, prepare, measure);
}
