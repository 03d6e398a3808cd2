// mpi.latency: half the round trip of a ping-pong, over message sizes.
//
// Rank 0 sends, rank 1 answers with as much, each from one buffer into another, blocking, as the
// field defines it. A sample is a series of trips that lasts about a millisecond, so that reading
// the clock is lost in it; all sizes take their samples in turn, and between them a cache line
// bounces between the same two ranks, so that a disturbance of the machine falls on all alike.
// Before each sample both send buffers get a pattern that nobody sent before, and after it both
// look whether the other's arrived.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clock.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/shared_line.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3;
constexpr std::size_t least_rounds = 3;
constexpr std::uint64_t trial_trips = 8;
constexpr std::uint64_t bounce_trips = 100; // there and back on each line
constexpr int tag = 1;

struct Settings {
  std::vector<std::size_t> sizes;
  bool bounces; // both ranks are on one host
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 30;
  return {.sizes = arguments.numbers<std::size_t>("--sizes", 0, largest),
          .bounces = arguments.flag("--bounce", true)};
}

struct Buffers {
  std::byte* sent;
  std::byte* received;
};

double ping_pong(int rank, const Buffers& buffers, int bytes, std::uint64_t trips) {
  const auto start = Clock::now();
  if (rank == 0)
    for (std::uint64_t i = 0; i < trips; ++i) {
      MPI_Send(buffers.sent, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
      MPI_Recv(buffers.received, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  else
    for (std::uint64_t i = 0; i < trips; ++i) {
      MPI_Recv(buffers.received, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffers.sent, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
  return seconds(Clock::now() - start);
}

struct Size {
  std::size_t bytes;
  std::uint64_t trips = 0; // there and back, in one sample
  std::vector<double> elapsed_s;
  std::vector<double> bounce_s;
};

class PingPong {
public:
  PingPong(mpi::Program& program, Buffers buffers) : program_(program), buffers_(buffers) {}

  // One sample, verified; the time of all trips on rank 0.
  double run(std::size_t bytes, std::uint64_t trips) {
    ++seed_;
    const auto mine = 2 * seed_ + static_cast<std::uint64_t>(program_.rank);
    mpi::fill({buffers_.sent, bytes}, mine);
    mpi::fill({buffers_.received, bytes}, ~mine);
    const int count = static_cast<int>(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    ping_pong(program_.rank, buffers_, count, 1); // past the barrier's skew
    const double elapsed_s = ping_pong(program_.rank, buffers_, count, trips);
    wrong_ += mpi::wrong_bytes({buffers_.received, bytes}, mine ^ 1);
    return elapsed_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  mpi::Program& program_;
  Buffers buffers_;
  std::uint64_t seed_ = 0;
  std::size_t wrong_ = 0;
};

void measure(mpi::Program& program, const Settings& settings) {
  const auto largest = std::ranges::max(settings.sizes);
  const Pages sent(largest + 1, true);
  const Pages received(largest + 1, true);
  PingPong ping_pong(program, {sent.data(), received.data()});
  std::optional<mpi::SharedLine> line;
  if (settings.bounces)
    line.emplace(MPI_COMM_WORLD);

  std::vector<Size> sizes;
  for (const auto bytes : settings.sizes) {
    program.at("warm-up, " + std::to_string(bytes) + " B");
    ping_pong.run(bytes, trial_trips);
    const double trial_s = mpi::of_first(ping_pong.run(bytes, trial_trips));
    sizes.push_back({.bytes = bytes,
                     .trips = static_cast<std::uint64_t>(trial_trips * sample_s / trial_s) + 1,
                     .elapsed_s = {},
                     .bounce_s = {}});
  }

  const auto begin = Clock::now();
  for (std::size_t round = 0;; ++round) {
    const bool goes_on = round < least_rounds || seconds(Clock::now() - begin) < program.slice_s;
    if (mpi::of_first(goes_on ? 1.0 : 0.0) == 0.0)
      break;
    for (auto& size : sizes) {
      program.at(std::to_string(size.bytes) + " B, round " + std::to_string(round));
      size.elapsed_s.push_back(ping_pong.run(size.bytes, size.trips));
      if (line)
        size.bounce_s.push_back(line->measure(bounce_trips));
    }
  }

  for (const auto& size : sizes)
    for (std::size_t i = 0; i < size.elapsed_s.size(); ++i) {
      auto sample = mpi::Program::sample("one_way", i, size.elapsed_s[i])
                        .add("point", json::Object().add("size_B", size.bytes))
                        .add("work", json::Object().add("ops", 2 * size.trips));
      if (line)
        sample.add("bounce_s", size.bounce_s[i]);
      program.add(sample);
    }
  program.check("wrong_bytes", mpi::sum(static_cast<double>(ping_pong.wrong())));
  program.check("lost_bounces", mpi::sum(line ? static_cast<double>(line->lost()) : 0.0));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("latency", argc, argv, prepare, measure);
}
