// mpi.incast: all other ranks send to one rank, as fast as it can receive.
//
// Each sender keeps a window of messages in flight until the sample time is over and the receiver
// signals it to stop. Messages that arrive during the sample are counted per sender, so that the
// receiver's bandwidth and the share of the slowest sender refer to the same interval.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t min_samples = 5;
constexpr int stop_tag = 1;
constexpr int data_tag = 2; // and up: each message in flight of a sender has its own tag

struct Settings {
  std::size_t bytes;
  std::size_t window;
  double sample_s;
  int receiver; // its rank
};

Settings prepare(Arguments& arguments) {
  return {.bytes = arguments.number<std::size_t>("--bytes", 1 << 18, 1, std::size_t{1} << 30),
          .window = arguments.number<std::size_t>("--window", 2, 1, 1 << 16),
          .sample_s = arguments.number("--sample", 0.02, 0.001, 3600.0),
          .receiver = arguments.number("--receiver", 0, 0, mpi::CommonArguments::max_ranks)};
}

// A sender's pattern: different in each sample, and for each of its messages in flight.
std::uint64_t pattern_of(std::uint64_t sample, int rank, std::size_t slot) {
  return mpi::pattern_word(sample, static_cast<std::size_t>(rank) << 20 | slot);
}

// Sends until the receiver signals it to stop.
class Sender {
public:
  Sender(int rank, const Settings& settings)
      : rank_(rank), receiver_(settings.receiver), bytes_(settings.bytes), window_(settings.window),
        memory_(settings.bytes * settings.window, false), requests_(window_, MPI_REQUEST_NULL) {}

  void run(std::uint64_t sample) {
    for (std::size_t slot = 0; slot < window_; ++slot)
      mpi::fill({message(slot), bytes_}, pattern_of(sample, rank_, slot));
    int stopped = 0;
    MPI_Request stop = MPI_REQUEST_NULL;
    MPI_Irecv(nullptr, 0, MPI_BYTE, receiver_, stop_tag, MPI_COMM_WORLD, &stop);
    for (std::size_t sent = 0; stopped == 0 || sent < window_; ++sent) {
      send(sent % window_, bytes_);
      if (stopped == 0)
        MPI_Test(&stop, &stopped, MPI_STATUS_IGNORE);
    }
    if (stopped == 0)
      MPI_Wait(&stop, MPI_STATUS_IGNORE);
    for (std::size_t slot = 0; slot < window_; ++slot) // an empty message ends each slot's messages
      send(slot, 0);
    MPI_Waitall(static_cast<int>(window_), requests_.data(), MPI_STATUSES_IGNORE);
  }

private:
  std::byte* message(std::size_t slot) { return memory_.data() + slot * bytes_; }

  // Sends once the previous message in this slot has completed.
  void send(std::size_t slot, std::size_t bytes) {
    MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE);
    MPI_Isend(message(slot), static_cast<int>(bytes), MPI_BYTE, receiver_,
              data_tag + static_cast<int>(slot), MPI_COMM_WORLD, &requests_[slot]);
  }

  int rank_;
  int receiver_;
  std::size_t bytes_;
  std::size_t window_;
  Pages memory_;
  std::vector<MPI_Request> requests_;
};

// The senders are numbered from 0, in the order of their ranks, which skip the receiver.
int rank_of(std::size_t sender, int receiver) {
  const auto number = static_cast<int>(sender);
  return number < receiver ? number : number + 1;
}

struct Arrived {
  double elapsed_s;
  std::vector<std::uint64_t> messages; // messages of each sender during the sample
};

// Receives and counts messages. Each message in flight of each sender has its own buffer.
class Receiver {
public:
  Receiver(int senders, const Settings& settings)
      : senders_(static_cast<std::size_t>(senders)), receiver_(settings.receiver),
        bytes_(settings.bytes), window_(settings.window), sample_s_(settings.sample_s),
        memory_(settings.bytes * settings.window * senders_, false),
        requests_(senders_ * window_, MPI_REQUEST_NULL), indices_(requests_.size()),
        statuses_(requests_.size()) {}

  Arrived run(std::uint64_t sample) {
    for (std::size_t place = 0; place < requests_.size(); ++place) {
      mpi::poison({message(place), bytes_}, pattern_at(sample, place));
      expect(place);
    }
    still_open_ = requests_.size();
    warm_up();
    Arrived arrived{.elapsed_s = 0, .messages = std::vector<std::uint64_t>(senders_)};
    const auto start = Clock::now();
    while (arrived.elapsed_s < sample_s_) {
      take([&](std::size_t sender) { ++arrived.messages[sender]; });
      arrived.elapsed_s = seconds(Clock::now() - start);
    }
    for (std::size_t sender = 0; sender < senders_; ++sender)
      MPI_Send(nullptr, 0, MPI_BYTE, rank_of(sender, receiver_), stop_tag, MPI_COMM_WORLD);
    while (still_open_ > 0)
      take([](std::size_t) {});
    for (std::size_t place = 0; place < requests_.size(); ++place)
      wrong_ += mpi::wrong_bytes({message(place), bytes_}, pattern_at(sample, place));
    return arrived;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  std::byte* message(std::size_t place) { return memory_.data() + place * bytes_; }

  [[nodiscard]] std::uint64_t pattern_at(std::uint64_t sample, std::size_t place) const {
    return pattern_of(sample, rank_of(place / window_, receiver_), place % window_);
  }

  void expect(std::size_t place) {
    MPI_Irecv(message(place), static_cast<int>(bytes_), MPI_BYTE,
              rank_of(place / window_, receiver_), data_tag + static_cast<int>(place % window_),
              MPI_COMM_WORLD, &requests_[place]);
  }

  // Calls `arrived` with the sender of each message that has arrived, and posts the next receive.
  template <class Arrived>
  void take(Arrived arrived) {
    int count = 0;
    MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(),
                 statuses_.data());
    for (int i = 0; i < count; ++i) {
      const auto place = static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]);
      int bytes = 0;
      MPI_Get_count(&statuses_[static_cast<std::size_t>(i)], MPI_BYTE, &bytes);
      if (bytes == 0) {
        --still_open_;
        continue;
      }
      arrived(place / window_);
      expect(place);
    }
  }

  // All senders send before the clock starts.
  void warm_up() {
    std::vector<bool> has_sent(senders_);
    for (std::size_t silent = senders_; silent > 0;)
      take([&](std::size_t sender) {
        silent -= has_sent[sender] ? 0 : 1;
        has_sent[sender] = true;
      });
  }

  std::size_t senders_;
  int receiver_;
  std::size_t bytes_;
  std::size_t window_;
  double sample_s_;
  Pages memory_;
  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::size_t still_open_ = 0; // slots that have not ended
  std::size_t wrong_ = 0;
};

void add_sample(mpi::Program& program, const Settings& settings, std::size_t index,
                const Arrived& arrived) {
  const auto all =
      std::accumulate(arrived.messages.begin(), arrived.messages.end(), std::uint64_t{0});
  const auto least = std::ranges::min_element(arrived.messages);
  const auto work = json::Object()
                        .add("bytes", all * settings.bytes)
                        .add("least_bytes", *least * settings.bytes)
                        .add("senders", arrived.messages.size());
  for (const char* series : {"bandwidth", "fairness"})
    program.add(
        sample_event(series, index, arrived.elapsed_s)
            .add("work", work)
            .add("slowest", rank_of(static_cast<std::size_t>(least - arrived.messages.begin()),
                                    settings.receiver)));
}

// On rank 0 what arrived at the receiver in each sample; empty on the others.
std::vector<Arrived> gathered(const std::vector<Arrived>& mine, std::size_t senders) {
  std::vector<double> numbers;
  for (const auto& arrived : mine) {
    numbers.push_back(arrived.elapsed_s);
    numbers.insert(numbers.end(), arrived.messages.begin(), arrived.messages.end());
  }
  std::vector<Arrived> found;
  for (const auto& of_rank : mpi::gather_lists(numbers))
    for (auto row = of_rank.begin(); row != of_rank.end();
         row += static_cast<std::ptrdiff_t>(senders) + 1)
      found.push_back({.elapsed_s = *row,
                       .messages = {row + 1, row + 1 + static_cast<std::ptrdiff_t>(senders)}});
  return found;
}

void measure(mpi::Program& program, const Settings& settings) {
  if (settings.receiver >= program.ranks)
    throw Failure(Exit::usage, "--receiver: no such rank");
  const auto senders = static_cast<std::size_t>(program.ranks - 1);
  const bool receives = program.rank == settings.receiver;
  mpi::require_memory(settings.bytes * settings.window * (receives ? senders : 1));
  std::vector<Arrived> found;
  std::size_t wrong = 0;
  mpi::Rounds samples(program, min_samples);
  if (receives) {
    Receiver receiver(program.ranks - 1, settings);
    for (std::size_t i = 0; samples.another(i); ++i) {
      program.at("receiving, sample " + std::to_string(i));
      found.push_back(receiver.run(i + 1));
    }
    wrong = receiver.wrong();
  } else {
    Sender sender(program.rank, settings);
    for (std::size_t i = 0; samples.another(i); ++i) {
      program.at("sending, sample " + std::to_string(i));
      sender.run(i + 1);
    }
  }
  const auto all = gathered(found, senders);
  for (std::size_t i = 0; i < all.size(); ++i)
    add_sample(program, settings, i, all[i]);
  program.check("wrong_bytes", mpi::sum(static_cast<double>(wrong)));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("incast", argc, argv, prepare, measure);
}
