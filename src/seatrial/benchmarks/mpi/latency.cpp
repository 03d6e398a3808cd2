// mpi.latency: half the round-trip time of a ping-pong, by message size.
//
// Rank 0 sends and rank 1 answers with the same size, with blocking calls and separate send and
// receive buffers, the usual definition. A sample is a series of trips that lasts about a
// millisecond, so that the time to read the clock is negligible. Samples of all sizes, and of a
// cache line bouncing between the same two ranks, are interleaved, so that a disturbance of the
// machine affects all of them. Before each sample both send buffers are filled with a new pattern
// and the receive buffers with different bytes; afterwards both ranks check the received data.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/message.hpp"
#include "mpi/message_memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/shared_line.hpp"
#include "round_order.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3;
constexpr std::size_t min_rounds = 3;
constexpr double late_times = 8; // beyond this multiple of the slice one round is enough
constexpr std::size_t large_message = std::size_t{16}
                                      << 20; // one trip is enough to estimate its time
constexpr std::uint64_t bounce_trips = 50;   // round trips on each line
constexpr int tag = 1;

struct Settings {
  std::vector<std::size_t> sizes;
  std::string datatype;
  mpi::MemorySettings memory;
  bool bounces; // both ranks are on one host, on separate CPUs
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 40;
  return {.sizes = arguments.numbers<std::size_t>("--sizes", 0, largest),
          .datatype = std::string(arguments.find("--datatype").value_or("MPI_CHAR")),
          .memory = mpi::MemorySettings(arguments),
          .bounces = arguments.flag("--bounce", true)};
}

// Rank 0 sends first, rank 1 answers: the time of this many round trips.
double run_trips(int rank, const mpi::MessageMemory& memory, const mpi::Message& message,
                 std::uint64_t trips) {
  const MPI_Datatype type = message.type;
  const int count = message.count;
  std::byte* const sent = memory.sent();
  std::byte* const received = memory.received();
  const auto start = Clock::now();
  if (rank == 0)
    for (std::uint64_t i = 0; i < trips; ++i) {
      MPI_Send(sent, count, type, 1, tag, MPI_COMM_WORLD);
      MPI_Recv(received, count, type, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  else
    for (std::uint64_t i = 0; i < trips; ++i) {
      MPI_Recv(received, count, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(sent, count, type, 0, tag, MPI_COMM_WORLD);
    }
  return seconds(Clock::now() - start);
}

class PingPong {
public:
  PingPong(int rank, mpi::MessageMemory& memory) : rank_(rank), memory_(memory) {}

  // One sample, with verified data; the time of all trips on rank 0.
  double run(const mpi::Message& message, std::uint64_t trips) {
    ++seed_;
    const auto mine = 2 * seed_ + static_cast<std::uint64_t>(rank_);
    const auto others = mine ^ 1;
    memory_.fill_sent(message.bytes, mine);
    memory_.poison_received(message.bytes, others);
    MPI_Barrier(MPI_COMM_WORLD);
    run_trips(rank_, memory_, message, 1); // absorbs the barrier's skew
    const double elapsed_s = run_trips(rank_, memory_, message, trips);
    wrong_ += memory_.wrong(message.bytes, others);
    return elapsed_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  int rank_;
  mpi::MessageMemory& memory_;
  std::uint64_t seed_ = 0;
  std::size_t wrong_ = 0;
};

struct Size {
  std::unique_ptr<mpi::Message> message;
  std::uint64_t trips = 0; // round trips per sample
  std::vector<double> elapsed_s;
  std::vector<double> bounce_s;
};

void add_samples(mpi::Program& program, const std::vector<Size>& sizes, bool with_bounces) {
  for (const auto& size : sizes)
    for (std::size_t i = 0; i < size.elapsed_s.size(); ++i) {
      const auto add = [&](const char* series) {
        auto sample = sample_event(series, i, size.elapsed_s[i])
                          .add("point", json::Object().add("size_B", size.message->bytes))
                          .add("work", json::Object().add("ops", 2 * size.trips));
        if (with_bounces)
          sample.add("bounce_s", size.bounce_s[i]);
        program.add(sample);
      };
      add("one_way");
      if (with_bounces)
        add("bounces");
    }
}

void measure(mpi::Program& program, const Settings& settings) {
  if (program.ranks != 2)
    throw Failure(Exit::usage, "a ping-pong needs 2 ranks, not " + std::to_string(program.ranks));
  const auto largest = std::ranges::max(settings.sizes);
  mpi::require_memory(2 * largest);
  mpi::MessageMemory memory(settings.memory, program.rank == 1, largest + 1);
  PingPong ping_pong(program.rank, memory);
  std::optional<mpi::SharedLine> line;
  if (settings.bounces)
    line.emplace(MPI_COMM_WORLD);

  std::vector<Size> sizes;
  for (const auto bytes : settings.sizes) {
    program.at("warm-up, " + std::to_string(bytes) + " B");
    auto& size = sizes.emplace_back();
    size.message = std::make_unique<mpi::Message>(mpi::element_type(settings.datatype), bytes);
    const std::uint64_t trips = bytes < large_message ? 8 : 1;
    if (bytes < large_message)
      ping_pong.run(*size.message, trips);
    size.trips = repetitions_lasting(sample_s, mpi::of_first(clock_step_s()), trips, [&](auto n) {
      return mpi::of_first(ping_pong.run(*size.message, n));
    });
  }

  mpi::Rounds rounds(program, min_rounds, late_times * program.slice_s);
  for (std::size_t round = 0; rounds.another(round); ++round) {
    for (const auto place : round_order(sizes.size(), round)) {
      auto& size = sizes[place];
      program.at(std::to_string(size.message->bytes) + " B, round " + std::to_string(round));
      size.elapsed_s.push_back(ping_pong.run(*size.message, size.trips));
      if (line)
        size.bounce_s.push_back(line->measure(bounce_trips));
    }
  }

  add_samples(program, sizes, line.has_value());
  mpi::note_memory(program, memory);
  program.check("wrong_bytes", mpi::sum(static_cast<double>(ping_pong.wrong())));
  program.check("lost_bounces", mpi::sum(line ? static_cast<double>(line->lost()) : 0.0));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("latency", argc, argv, prepare, measure);
}
