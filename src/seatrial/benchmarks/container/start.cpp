// container.start: the time from starting a container's runtime to the first instruction inside,
// and of the same program without a container.
// untimed: -O1
#include <algorithm>
#include <array>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "affinity.hpp"
#include "child.hpp"
#include "hello.hpp"
#include "page_cache.hpp"
#include "program.hpp"
#include "record.hpp"
#include "tasks.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t fewest_rounds = 3;
constexpr std::size_t most_rounds = 1000;
constexpr std::size_t most_at_once = 4096;

struct Settings {
  std::string record;
  std::vector<std::string> words; // the runtime, its arguments, and the program inside
  std::string bare;               // the same program outside
  std::string image;              // its file or folder; empty: known to the runtime only
  int expected = 0;               // the program's exit status
  std::size_t at_once = 1;
  bool is_cold = false;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  static std::list<std::string> names; // the arguments keep references to the names
  Settings settings{
      .record = std::string(arguments.required("--record")),
      .words = {},
      .bare = std::string(arguments.required("--bare")),
      .image = std::string(arguments.find("--image").value_or("")),
      .expected = arguments.number<int>("--expect", 0, 0, 255),
      .at_once = arguments.number<std::size_t>("--at-once", 1, 1, most_at_once),
      .is_cold = arguments.choice("--cache", "warm", {"warm", "cold"}) == "cold",
  };
  const auto count = arguments.number<std::size_t>("--words", 0, 1, 1 << 16);
  for (std::size_t i = 0; i < count; ++i)
    settings.words.emplace_back(
        arguments.required(names.emplace_back("--word-" + std::to_string(i))));
  if (settings.words.empty())
    throw Failure(Exit::usage, "--words: no runtime to start");
  return settings;
}

// A pipe for a program's standard output, which no other child inherits.
class OutputPipe {
public:
  OutputPipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0)
      throw Failure(Exit::system, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  ~OutputPipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  [[nodiscard]] int input() const noexcept { return ends_[1]; }

  // What was written until now: the program has ended.
  [[nodiscard]] std::string taken() const {
    std::string text;
    std::array<char, 4096> block{};
    for (ssize_t got = 0; (got = ::read(ends_[0], block.data(), block.size())) > 0;)
      text.append(block.data(), static_cast<std::size_t>(got));
    return text;
  }

private:
  std::array<int, 2> ends_{};
};

// When a program's first instructions ran: it writes a timespec of CLOCK_MONOTONIC, and nothing
// else.
[[nodiscard]] Clock::time_point first_instruction(const std::string& what,
                                                  const std::string& output) {
  struct {
    std::int64_t seconds;
    std::int64_t nanoseconds;
  } read{};
  if (output.size() != sizeof(read))
    throw Failure(Exit::software, what + " wrote " + std::to_string(output.size()) +
                                      " bytes instead of the " + std::to_string(sizeof(read)) +
                                      " of a time: " + output.substr(0, 200));
  std::memcpy(&read, output.data(), sizeof(read));
  return Clock::time_point(std::chrono::seconds(read.seconds) +
                           std::chrono::nanoseconds(read.nanoseconds));
}

// Several starts of one command at the same time.
class Starts {
public:
  Starts(std::vector<std::string> words, std::size_t count, int expected)
      : what_(words.front()), expected_(expected), ones_(count) {
    const auto path = program_on_path(what_);
    if (!path)
      throw Failure(Exit::system, what_ + ": no such program");
    for (auto& one : ones_)
      one.child = std::make_unique<Child>(*path, words);
  }

  // From the first call that starts one to the first instruction of the last. Each is started and
  // awaited by a thread of its own.
  [[nodiscard]] double run() {
    std::barrier together(static_cast<std::ptrdiff_t>(ones_.size()));
    {
      std::vector<std::jthread> threads;
      for (auto& one : ones_)
        threads.emplace_back([&] {
          together.arrive_and_wait();
          try {
            one.end = one.child->run([](pid_t) {}, one.output.input());
          } catch (...) {
            one.problem = std::current_exception();
          }
        });
    }
    return whole();
  }

  // The share of all starts whose times are in order: call, first instruction, end.
  [[nodiscard]] double share_in_order() const noexcept {
    return static_cast<double>(in_order_) / static_cast<double>(all_);
  }

private:
  struct One {
    std::unique_ptr<Child> child;
    OutputPipe output;
    ChildEnd end;
    std::exception_ptr problem;
  };

  [[nodiscard]] double whole() {
    Interval interval;
    for (std::size_t i = 0; i < ones_.size(); ++i) {
      const auto& one = ones_[i];
      if (one.problem)
        std::rethrow_exception(one.problem);
      check(one.end);
      const auto first = first_instruction(what_, one.output.taken());
      const auto& call = one.end.interval;
      ++all_;
      in_order_ += call.start < first && first < call.end ? 1 : 0;
      interval.start = i == 0 ? call.start : std::min(interval.start, call.start);
      interval.end = i == 0 ? first : std::max(interval.end, first);
    }
    return interval.elapsed_s();
  }

  // Only the program inside ends with this status, so the runtime has started it.
  void check(const ChildEnd& end) const {
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == expected_)
      return;
    const auto text = end.failure_text();
    throw Failure(Exit::system, what_ + " " + (text.empty() ? "ended with exit status 0" : text) +
                                    " instead of " + std::to_string(expected_));
  }

  std::string what_;
  int expected_;
  std::vector<One> ones_;
  std::size_t all_ = 0;
  std::size_t in_order_ = 0;
};

// Where the image's pages are dropped before each start; does nothing for a warm start. Throws Skip
// where the kernel keeps them.
class Cold {
public:
  explicit Cold(const Settings& settings) {
    if (!settings.is_cold)
      return;
    if (settings.image.empty())
      throw Skip("cache: cold needs the image's files, and only the runtime knows those of a "
                 "stored image; give the path of an image");
    image_ = files_below(settings.image);
    bare_ = {settings.bare};
    const auto pages = drop_pages(image_, true);
    (void)drop_pages(bare_, true);
    if (pages.all == 0)
      throw Skip("cache: cold: " + settings.image + " has no file that this user may read");
    if (pages.share_resident() > most_resident)
      throw Skip("cache: cold: the kernel keeps " + std::to_string(pages.resident) + " of the " +
                 std::to_string(pages.all) + " pages of " + settings.image +
                 " in memory (a file system in memory, files that running programs map, or files "
                 "of another user)");
  }

  // One start, and what of the image was in memory just before it.
  [[nodiscard]] json::Object sample(std::string_view series, std::size_t index, Starts& starts) {
    if (image_.empty())
      return sample_event(series, index, starts.run());
    (void)drop_pages(bare_);
    const double share = drop_pages(image_).share_resident();
    return sample_event(series, index, starts.run()).add("image_in_memory", share);
  }

private:
  static constexpr double most_resident = 0.1;

  std::vector<std::string> image_;
  std::vector<std::string> bare_;
};

void measure(Program& program, const Settings& settings) {
  allow_cpus(0, program.cpus);
  std::vector<std::vector<int>> usable;
  for (const int cpu : bound_cpus())
    usable.push_back({cpu});
  { // at once: what is known of a run must not be lost if the runtime fails
    Record record(settings.record);
    record.add(hello_event("start", usable));
    record.close();
  }
  Cold cold(settings);
  Starts bare({settings.bare}, settings.at_once, settings.expected);
  Starts contained(settings.words, settings.at_once, settings.expected);
  (void)cold.sample("bare", 0, bare); // the first starts also read what stays in memory
  (void)cold.sample("start", 0, contained);
  double used_s = 0.0;
  for (std::size_t i = 0; i < most_rounds && (i < fewest_rounds || used_s < program.slice_s); ++i) {
    used_s += timed([&] {
                program.add(cold.sample("bare", i, bare));
                program.add(cold.sample("start", i, contained));
              }).elapsed_s();
  }
  program.check("clock_in_order", std::min(bare.share_in_order(), contained.share_in_order()));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("start", argc, argv, prepare, measure);
}
