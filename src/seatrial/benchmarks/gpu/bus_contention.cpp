// gpu.bus-contention: copies between host and devices while ranks exchange messages, and messages
// while devices copy; each alone and combined.
//
// Rank r drives device r modulo their number. Ranks i and i + ranks / 2 are a pair that exchanges
// messages. With one thread a rank enqueues copies and exchanges messages while they run; with two,
// a second thread only copies.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "clock.hpp"
#include "device/checked_copies.hpp"
#include "device/device_program.hpp"
#include "device/workload.hpp"
#include "mpi/exchange.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;
constexpr std::size_t min_rounds = 5;
constexpr double late_times = 20; // beyond this multiple of the slice one round is enough
constexpr std::uint64_t max_extension =
    64; // limit for extending the background work if it ends too soon
constexpr int ping_tag = 1;

using device::Copies;
using device::Copy;

struct Settings {
  device::DeviceArguments devices;
  std::uint64_t copy; // bytes; 0: chosen for the device
  std::size_t small;  // bytes per message of the latency test
  std::size_t large;  // bytes per message of the bandwidth test
  std::size_t window; // number of messages in flight
  bool has_copier;    // uses a second thread
  double sample_s;
};

// Drivers create threads, so MPI is initialised with thread support.
Settings prepare(Arguments& arguments) {
  Settings settings{.devices = device::DeviceArguments(arguments),
                    .copy = arguments.number<std::uint64_t>("--copy", 0, 0, std::uint64_t{1} << 36),
                    .small = arguments.number<std::size_t>("--small", 8, 1, MiB),
                    .large = arguments.number<std::size_t>("--large", MiB, 1, 1 << 30),
                    .window = arguments.number<std::size_t>("--window", 4, 1, 1 << 16),
                    .has_copier = arguments.number<int>("--threads", 1, 1, 2) == 2,
                    .sample_s = arguments.number("--sample", 5e-3, 1e-6, 3600.0)};
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (provided < MPI_THREAD_FUNNELED)
    throw Failure(Exit::system, "this MPI library does not support threads (MPI_THREAD_FUNNELED)");
  return settings;
}

enum class MessageTest { latency, bandwidth };

// The messages that one rank exchanges.
class Messages {
public:
  Messages(int rank, int ranks, const Settings& settings)
      : rank_(rank), leads_(rank < ranks / 2), other_(leads_ ? rank + ranks / 2 : rank - ranks / 2),
        exchange_(settings.large, settings.window), sent_(settings.small),
        received_(settings.small) {}

  void fill() {
    ++round_;
    exchange_.fill(seed_of(rank_), seed_of(other_));
    mpi::fill(sent_, seed_of(rank_));
    mpi::poison(received_, seed_of(other_));
  }

  void run(MessageTest message_test, std::uint64_t times) {
    if (message_test == MessageTest::bandwidth) {
      exchange_.run(other_, times);
      return;
    }
    for (std::uint64_t i = 0; i < times; ++i) {
      if (leads_)
        send();
      MPI_Recv(received_.data(), static_cast<int>(received_.size()), MPI_BYTE, other_, ping_tag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!leads_)
        send();
    }
  }

  void verify(MessageTest message_test) {
    wrong_ += message_test == MessageTest::bandwidth ? exchange_.wrong(seed_of(other_))
                                                     : mpi::wrong_bytes(received_, seed_of(other_));
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  void send() {
    MPI_Send(sent_.data(), static_cast<int>(sent_.size()), MPI_BYTE, other_, ping_tag,
             MPI_COMM_WORLD);
  }
  [[nodiscard]] std::uint64_t seed_of(int rank) const {
    return round_ << 24 | static_cast<std::uint64_t>(rank + 1);
  }

  int rank_;
  bool leads_;
  int other_;
  mpi::Exchange exchange_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  std::uint64_t round_ = 0;
  std::size_t wrong_ = 0;
};

// The times of the copies and of the messages that a rank ran together.
struct Durations {
  double copies_s = 0;
  double messages_s = 0;
};

// The copies and the messages of a rank, on one thread or on two.
class Rank {
public:
  Rank(device::Device& device, std::uint64_t bytes, int rank, int ranks, const Settings& settings)
      : copies_(device, bytes, rank), messages_(rank, ranks, settings) {
    if (!settings.has_copier)
      return;
    auto cpus = bound_cpus(); // two if ranks are bound
    if (cpus.size() == 2)
      team_.emplace(cpus);
    else
      has_free_copier_ = true;
  }

  // Collective. A count of 0 means no copies or no messages.
  Durations run(Copy copy, std::uint64_t copies, MessageTest message_test, std::uint64_t messages) {
    copies_.poison();
    messages_.fill();
    MPI_Barrier(MPI_COMM_WORLD);
    Durations took;
    const auto pass = [&] {
      took.messages_s = timed([&] { messages_.run(message_test, messages); }).elapsed_s();
    };
    if (copies == 0) {
      pass();
    } else if (messages > 0 && (team_ || has_free_copier_)) {
      at_once(pass, [&] {
        copies_.begin(copy, copies);
        took.copies_s = copies_.end_s();
      });
    } else {
      copies_.begin(copy, copies);
      if (messages > 0)
        pass();
      took.copies_s = copies_.end_s();
    }
    if (copies > 0)
      copies_.verify(copy);
    if (messages > 0)
      messages_.verify(message_test);
    return took;
  }

  [[nodiscard]] std::size_t wrong_copied() const { return copies_.wrong(); }
  [[nodiscard]] std::size_t wrong_passed() const { return messages_.wrong(); }

private:
  // MPI runs on the calling thread, member 0.
  void at_once(const std::function<void()>& pass, const std::function<void()>& copy) {
    if (team_) {
      team_->run([&](std::size_t member) { member == 0 ? pass() : copy(); });
      return;
    }
    std::exception_ptr failure;
    std::jthread copier([&] {
      try {
        copy();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    pass();
    copier.join();
    if (failure)
      std::rethrow_exception(failure);
  }

  Copies copies_;
  Messages messages_;
  std::optional<Team> team_;
  bool has_free_copier_ = false; // the copying thread is unbound
};

// One of the four rates: the amount of work per sample, and of the work run beside it.
struct Rate {
  const char* name;
  bool is_copy;
  Copy copy; // the copies measured, or run beside messages
  MessageTest message_test;
  std::uint64_t times = 1;
  std::uint64_t beside = 1;
  std::uint64_t max_beside = 1;
  std::vector<std::pair<double, double>> elapsed_s =
      {}; // alone, and combined: 0 if the other side had ended
};

class Measurement {
public:
  Measurement(mpi::Program& program, Rank& rank, double sample_s)
      : program_(program), rank_(rank), sample_s_(sample_s) {
    for (auto& rate : rates_) { // a warm-up loads code and memory
      program_.at(std::string("warm-up, ") + rate.name);
      static_cast<void>(alone_s(rate));
      rate.times = scaled(alone_s(rate), sample_s_);
    }
    for (auto& rate : rates_) { // three times as long as the measured work
      Rate other = rate;
      other.is_copy = !rate.is_copy;
      other.times = 1;
      rate.beside = scaled(alone_s(other), 3 * sample_s_);
      rate.max_beside = max_extension * rate.beside;
    }
  }

  void round(std::size_t number) {
    for (auto& rate : rates_) {
      program_.at(std::string(rate.name) + ", round " + std::to_string(number));
      const double alone = alone_s(rate);
      const auto took = rank_.run(rate.copy, rate.is_copy ? rate.times : rate.beside,
                                  rate.message_test, rate.is_copy ? rate.beside : rate.times);
      const double own_s = rate.is_copy ? took.copies_s : took.messages_s;
      const double others_s = rate.is_copy ? took.messages_s : took.copies_s;
      const bool is_beside = mpi::sum(others_s < own_s ? 1 : 0) == 0;
      rate.elapsed_s.emplace_back(alone, slowest(own_s) * (is_beside ? 1 : 0));
      if (!is_beside)
        rate.beside = std::min(2 * rate.beside, rate.max_beside);
    }
  }

  [[nodiscard]] std::size_t whole() const {
    std::size_t least = rates_[0].elapsed_s.size();
    for (const auto& rate : rates_)
      least =
          std::min(least, static_cast<std::size_t>(std::ranges::count_if(
                              rate.elapsed_s, [](const auto& each) { return each.second > 0; })));
    return least;
  }

  // `copied` and `passed` are the bytes of one copy, and of one message window, over all ranks.
  void report(double copied, double passed, const json::Object& devices) {
    for (const auto& rate : rates_)
      for (std::size_t i = 0; i < rate.elapsed_s.size(); ++i) {
        const double alone = rate.elapsed_s[i].first;
        const double beside = rate.elapsed_s[i].second;
        const auto times = static_cast<double>(rate.times);
        json::Object work;
        if (!rate.is_copy && rate.message_test == MessageTest::latency)
          work.add("ops", 2 * times);
        else
          work.add("bytes", times * (rate.is_copy ? copied : passed));
        const auto add = [&](const std::string& series, double elapsed_s) {
          program_.add(sample_event(series, i, elapsed_s)
                           .add("work", work)
                           .add("alone_s", alone)
                           .add("device", devices));
        };
        add(rate.name, alone);
        if (beside > 0) {
          add(rate.name + std::string("_loaded"), beside);
          add(rate.name + std::string("_kept"), beside);
        }
      }
  }

private:
  // The maximum over ranks: concurrent work is done when the slowest rank is.
  [[nodiscard]] static double slowest(double mine) {
    const auto all = mpi::gather({mine});
    return mpi::of_first(all.empty() ? 0 : std::ranges::max(all));
  }

  [[nodiscard]] double alone_s(const Rate& rate) {
    const auto took = rank_.run(rate.copy, rate.is_copy ? rate.times : 0, rate.message_test,
                                rate.is_copy ? 0 : rate.times);
    return slowest(rate.is_copy ? took.copies_s : took.messages_s);
  }

  [[nodiscard]] static std::uint64_t scaled(double trial_s, double wanted_s) {
    constexpr double most = 1 << 16;
    return static_cast<std::uint64_t>(std::clamp(wanted_s / std::max(trial_s, 1e-7), 0.0, most)) +
           1;
  }

  mpi::Program& program_;
  Rank& rank_;
  double sample_s_;
  std::array<Rate, 4> rates_ = {Rate{.name = "download",
                                     .is_copy = true,
                                     .copy = Copy::download,
                                     .message_test = MessageTest::bandwidth},
                                Rate{.name = "readback",
                                     .is_copy = true,
                                     .copy = Copy::readback,
                                     .message_test = MessageTest::bandwidth},
                                Rate{.name = "latency",
                                     .is_copy = false,
                                     .copy = Copy::both,
                                     .message_test = MessageTest::latency},
                                Rate{.name = "bandwidth",
                                     .is_copy = false,
                                     .copy = Copy::both,
                                     .message_test = MessageTest::bandwidth}};
};

// Opens the devices of all ranks; each rank uses its own.
void measure(mpi::Program& program, const Settings& settings) {
  if (program.ranks % 2 != 0)
    throw Failure(Exit::usage, "ranks exchange messages in pairs: their number must be even");
  try {
    const device::Devices devices(settings.devices.backend, settings.devices.platform,
                                  settings.devices.nvrtc);
    const device::ChosenDevices chosen(devices, settings.devices);
    auto& own = chosen[static_cast<std::size_t>(program.rank) % chosen.size()];
    const auto bytes = settings.copy != 0 ? settings.copy : own.facts().is_cpu ? 4 * MiB : 16 * MiB;
    mpi::require_memory(3 * bytes + 2 * settings.window * settings.large);
    std::vector<json::Object> documents;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      documents.push_back(chosen[i].facts().document());
    program.note("devices", documents);

    Rank rank(own, bytes, program.rank, program.ranks, settings);
    Measurement measurement(program, rank, settings.sample_s);
    mpi::Rounds rounds(program, min_rounds, late_times * program.slice_s);
    constexpr std::size_t max_idle = 10;
    std::size_t done = 0;
    while (done < measurement.whole() + max_idle && rounds.another(measurement.whole()))
      measurement.round(done++);
    const auto ranks = static_cast<double>(program.ranks);
    const auto used = std::min(chosen.size(), static_cast<std::size_t>(program.ranks));
    measurement.report(ranks * static_cast<double>(bytes),
                       ranks * static_cast<double>(settings.window * settings.large),
                       device::facts_for_limit(chosen, used));
    program.check("loaded_samples", static_cast<double>(measurement.whole()));
    program.check("error", mpi::sum(static_cast<double>(rank.wrong_copied())));
    program.check("wrong_bytes", mpi::sum(static_cast<double>(rank.wrong_passed())));
  } catch (const Unsupported& missing) {
    throw Failure(Exit::system, std::string("this rank has no device: ") + missing.what());
  }
}

} // namespace

int main(int argc, char** argv) {
  if (const std::string_view word = argc > 1 ? argv[1] : ""; word == "--list" && argc <= 3)
    return seatrial::device::detail::list_devices(argc == 3 ? argv[2] : "auto");
  return seatrial::mpi::run_program("bus_contention", argc, argv, prepare, measure);
}
