// mpi.bandwidth, mpi.bidirectional and mpi.multi-pair: message streams between pairs of ranks.
//
// Rank p streams to rank p + pairs. A window of non-blocking sends is in flight at once and the
// receiver acknowledges each window with one byte, as in osu_bw and osu_mbw_mr; with --both 1 both
// ranks of a pair send and there is no acknowledgement, as in osu_bibw. As in these, all messages
// use one send and one receive buffer. A sample consists of enough windows to last about a
// millisecond; samples of all sizes are interleaved. Before each sample the send buffers are filled
// with a new pattern, and the receive buffers with different bytes; afterwards they are compared.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "round_order.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3;
constexpr std::size_t min_rounds = 3;
constexpr double late_times = 8; // beyond this multiple of the slice one round is enough
constexpr std::size_t large_message = std::size_t{16} << 20; // warms up with fewer messages
constexpr int message_tag = 1;
constexpr int answer_tag = 2;

struct Settings {
  std::vector<std::size_t> sizes;
  std::string datatype;
  mpi::MemorySettings memory;
  int window;
  int pairs;
  bool both; // both ranks of a pair send
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 40;
  return {.sizes = arguments.numbers<std::size_t>("--sizes", 1, largest),
          .datatype = std::string(arguments.find("--datatype").value_or("MPI_CHAR")),
          .memory = mpi::MemorySettings(arguments),
          .window = arguments.number("--window", 64, 1, 1 << 20),
          .pairs = arguments.number("--pairs", 1, 1, 1 << 20),
          .both = arguments.flag("--both", false)};
}

// One rank's end of a pair.
class End {
public:
  End(int rank, const Settings& settings, std::size_t largest)
      : rank_(rank), peer_(rank < settings.pairs ? rank + settings.pairs : rank - settings.pairs),
        sends_(settings.both || rank < settings.pairs),
        receives_(settings.both || rank >= settings.pairs),
        memory_(settings.memory, rank >= settings.pairs, largest),
        requests_(2 * static_cast<std::size_t>(settings.window)) {}

  // One sample, with verified data: the time of this many windows on this rank.
  double run(const mpi::Message& message, int window, std::uint64_t windows) {
    ++seed_;
    if (sends_)
      memory_.fill_sent(message.bytes, seed_of(rank_));
    if (receives_)
      memory_.poison_received(message.bytes, seed_of(peer_));
    MPI_Barrier(MPI_COMM_WORLD);
    stream(message, message.bytes < large_message ? window : 1); // passes the first touch
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < windows; ++i)
      stream(message, window);
    const double elapsed_s = seconds(Clock::now() - start);
    if (receives_)
      wrong_ += memory_.wrong(message.bytes, seed_of(peer_));
    return elapsed_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }
  [[nodiscard]] const mpi::MessageMemory& memory() const noexcept { return memory_; }

private:
  [[nodiscard]] std::uint64_t seed_of(int rank) const noexcept {
    return (seed_ << 24) + static_cast<std::uint64_t>(rank);
  }

  void stream(const mpi::Message& message, int window) {
    if (sends_ && receives_) {
      post_receives(message, window, requests_.data());
      post_sends(message, window, requests_.data() + window);
      MPI_Waitall(window, requests_.data() + window, MPI_STATUSES_IGNORE);
      MPI_Waitall(window, requests_.data(), MPI_STATUSES_IGNORE);
    } else if (sends_) {
      post_sends(message, window, requests_.data());
      MPI_Waitall(window, requests_.data(), MPI_STATUSES_IGNORE);
      MPI_Recv(&answer_, 1, MPI_CHAR, peer_, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      post_receives(message, window, requests_.data());
      MPI_Waitall(window, requests_.data(), MPI_STATUSES_IGNORE);
      MPI_Send(&answer_, 1, MPI_CHAR, peer_, answer_tag, MPI_COMM_WORLD);
    }
  }

  void post_sends(const mpi::Message& message, int window, MPI_Request* requests) {
    for (int i = 0; i < window; ++i)
      MPI_Isend(memory_.sent(), message.count, message.type, peer_, message_tag, MPI_COMM_WORLD,
                requests + i);
  }

  void post_receives(const mpi::Message& message, int window, MPI_Request* requests) {
    for (int i = 0; i < window; ++i)
      MPI_Irecv(memory_.received(), message.count, message.type, peer_, message_tag, MPI_COMM_WORLD,
                requests + i);
  }

  int rank_;
  int peer_;
  bool sends_;
  bool receives_;
  mpi::MessageMemory memory_;
  std::vector<MPI_Request> requests_;
  char answer_ = 0;
  std::uint64_t seed_ = 0;
  std::size_t wrong_ = 0;
};

struct Size {
  std::unique_ptr<mpi::Message> message;
  std::uint64_t windows = 0; // windows per sample
  std::vector<double> elapsed_s{};
};

// Collective: adds the samples of one size, from the times of all ranks that measure. The mean over
// the pairs is the main figure, as in osu_mbw_mr; the slowest pair is reported too.
void add_samples(mpi::Program& program, const Settings& settings, const Size& size) {
  const auto all = mpi::gather(size.elapsed_s);
  const auto pairs = static_cast<std::size_t>(settings.pairs);
  const std::uint64_t messages =
      size.windows * static_cast<std::uint64_t>(settings.window) * (settings.both ? 2 : 1);
  const auto add = [&](const char* series, std::size_t i, double elapsed_s, std::uint64_t ops) {
    program.add(
        sample_event(series, i, elapsed_s)
            .add("point", json::Object().add("size_B", size.message->bytes))
            .add("work", json::Object().add("bytes", ops * size.message->bytes).add("ops", ops)));
  };
  if (program.rank != 0)
    return;
  const std::size_t rounds = size.elapsed_s.size();
  for (std::size_t i = 0; i < rounds; ++i) {
    double sum_s = 0;
    double slowest_s = 0;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double pair_s = all[pair * rounds + i];
      sum_s += pair_s;
      slowest_s = std::max(slowest_s, pair_s);
    }
    add("bandwidth", i, sum_s / static_cast<double>(pairs), messages * pairs);
    if (pairs > 1)
      add("slowest_pair", i, slowest_s, messages);
  }
}

void measure(mpi::Program& program, const Settings& settings) {
  if (program.ranks != 2 * settings.pairs)
    throw Failure(Exit::usage, std::to_string(settings.pairs) +
                                   " pairs have twice as many ranks, "
                                   "not " +
                                   std::to_string(program.ranks));
  const auto largest = std::ranges::max(settings.sizes);
  mpi::require_memory(2 * largest);
  End end(program.rank, settings, largest);

  std::vector<Size> sizes;
  for (const auto bytes : settings.sizes) {
    program.at("warm-up, " + std::to_string(bytes) + " B");
    auto& size = sizes.emplace_back();
    size.message = std::make_unique<mpi::Message>(mpi::element_type(settings.datatype), bytes);
    size.windows = repetitions_lasting(sample_s, mpi::of_first(clock_step_s()), 1, [&](auto n) {
      return mpi::of_first(end.run(*size.message, settings.window, n));
    });
  }

  mpi::Rounds rounds(program, min_rounds, late_times * program.slice_s);
  for (std::size_t round = 0; rounds.another(round); ++round) {
    for (const auto place : round_order(sizes.size(), round)) {
      auto& size = sizes[place];
      program.at(std::to_string(size.message->bytes) + " B, round " + std::to_string(round));
      size.elapsed_s.push_back(end.run(*size.message, settings.window, size.windows));
    }
  }

  for (const auto& size : sizes)
    add_samples(program, settings, size);
  mpi::note_memory(program, end.memory());
  program.check("wrong_bytes", mpi::sum(static_cast<double>(end.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("bandwidth", argc, argv, prepare, measure);
}
