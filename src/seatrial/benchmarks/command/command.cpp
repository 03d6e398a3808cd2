// command: the wall time of any program, with what it used, its libraries and its inputs.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <list>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "affinity.hpp"
#include "child.hpp"
#include "clock.hpp"
#include "file_identity.hpp"
#include "hello.hpp"
#include "mapped_files.hpp"
#include "program.hpp"
#include "program_files.hpp"
#include "record.hpp"
#include "task_looks_json.hpp"
#include "tasks.hpp"
#include "watch.hpp"

namespace {

using namespace seatrial;

using Words = std::vector<std::string>;

struct Settings {
  std::string record;
  Words words;
  Words prepare; // before each run; empty: none
  Words cleanup; // after the last run
  std::string input;
  int expected = 0; // exit status
  std::size_t warm_ups = 0;
  std::size_t most_runs = 1;
};

// Reads an argument list: `--words 2 --word-0 sleep --word-1 3`.
[[nodiscard]] Words word_list(Arguments& arguments, std::string_view count_name,
                              const std::string& lead) {
  static std::list<std::string> names; // the arguments keep references to the names
  Words words;
  const auto count = arguments.number<std::size_t>(count_name, 0, 0, 1 << 16);
  for (std::size_t i = 0; i < count; ++i)
    words.emplace_back(arguments.required(names.emplace_back(lead + std::to_string(i))));
  if (count > 0 && words.front().empty())
    throw Failure(Exit::usage, std::string(count_name) + ": no program to run");
  return words;
}

[[nodiscard]] Settings prepare(Arguments& arguments) {
  Settings settings{
      .record = std::string(arguments.required("--record")),
      .words = word_list(arguments, "--words", "--word-"),
      .prepare = word_list(arguments, "--prepare", "--prepare-"),
      .cleanup = word_list(arguments, "--cleanup", "--cleanup-"),
      .input = std::string(arguments.find("--input").value_or("/dev/null")),
      .expected = arguments.number<int>("--expect", 0, 0, 255),
      .warm_ups = arguments.number<std::size_t>("--warmup", 0, 0, 1 << 20),
      .most_runs = arguments.number<std::size_t>("--runs", 1, 1, 1 << 20),
  };
  if (settings.words.empty())
    throw Failure(Exit::usage, "--words: no program to run");
  return settings;
}

// Writes events at once: what is known of a run must not be lost if the program fails.
void write_now(const Settings& settings, const std::vector<json::Object>& events) {
  Record record(settings.record);
  for (const auto& event : events)
    record.add(event);
  record.close();
}

// One entry with all CPUs that the program may use: it binds its threads itself.
[[nodiscard]] std::vector<std::vector<int>> usable_cpus() {
  std::vector<std::vector<int>> each;
  for (const int cpu : bound_cpus())
    each.push_back({cpu});
  return each;
}

// This process's peak resident memory in bytes; 0 if the kernel does not report it. A child that
// shares our memory until exec starts its own count there (Linux, fs/exec.c, exec_mmap), so the
// peak of a child that needs less is unknown.
[[nodiscard]] std::int64_t own_peak_B() {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t kib = 0;
    if (words >> key >> kib && key == "VmHWM:")
      return kib * 1024;
  }
  return 0;
}

struct Runs {
  std::vector<ChildEnd> ends;
  std::int64_t own_peak_B = 0; // of this process when the last one was started
};

// One run: its wall time, what it used (getrusage(2)), and its peak memory if that is known.
void add_samples(Program& program, const ChildEnd& end, std::size_t index,
                 std::int64_t own_peak_B) {
  const auto& usage = end.usage;
  const double elapsed_s = end.interval.elapsed_s();
  auto sample = sample_event("wall", index, elapsed_s)
                    .add("user_s", in_seconds(usage.ru_utime))
                    .add("system_s", in_seconds(usage.ru_stime))
                    .add("minor_faults", usage.ru_minflt)
                    .add("major_faults", usage.ru_majflt)
                    .add("voluntary_switches", usage.ru_nvcsw)
                    .add("involuntary_switches", usage.ru_nivcsw);
  const auto peak_B = std::int64_t{usage.ru_maxrss} * 1024;
  if (peak_B > own_peak_B)
    sample.add("max_rss_B", peak_B);
  program.add(sample);
  if (peak_B > own_peak_B)
    program.add(sample_event("memory", index, elapsed_s)
                    .add("work", json::Object().add("max_rss_B", peak_B)));
}

// Arguments that name files not written by the program: the scripts and inputs of the run.
[[nodiscard]] json::Object inputs(const Settings& settings, double start_s) {
  constexpr std::size_t most = 64;
  constexpr off_t largest_hashed = 4 << 20;
  constexpr double step_s = 0.01; // file time stamps advance by kernel ticks
  json::Object found;
  std::vector<std::string_view> seen;
  for (const std::string_view word : std::span(settings.words).subspan(1)) {
    struct stat status {};
    const OpenFile file{std::string(word)};
    if (seen.size() == most || !file.is_regular(status) ||
        in_seconds(status.st_mtim) > start_s - step_s ||
        std::ranges::find(seen, word) != seen.end())
      continue;
    seen.push_back(word);
    found.add(word, content_identity(file.get(), status, largest_hashed));
  }
  return found;
}

// {name: {path, id, code}} of the libraries or of the programs; only programs have `code`.
[[nodiscard]] json::Object as_json(const std::vector<SeenFile>& files, bool programs) {
  json::Object all;
  std::vector<std::string> names;
  for (const auto& file : files) {
    if (file.is_program != programs)
      continue;
    const bool taken = std::ranges::find(names, file.name) != names.end();
    names.push_back(taken ? file.path : file.name);
    auto entry = json::Object().add("path", file.path).add("id", file.id);
    if (!file.code.empty())
      entry.add("code", file.code);
    all.add(names.back(), entry);
  }
  return all;
}

// The program's exit status, unless it has a different meaning for this process.
[[nodiscard]] Exit status_of(const ChildEnd& end) noexcept {
  const auto status = static_cast<Exit>(end.shell_exit_status());
  const bool is_taken =
      status == Exit::wrong_cpu || status == Exit::record || status == Exit::parent_gone;
  return is_taken ? Exit::system : status;
}

// Everything about the runs that was not timed.
[[nodiscard]] std::vector<json::Object> notes(const Settings& settings, const std::string& path,
                                              Watch& watch, const std::vector<ChildEnd>& runs,
                                              double start_s) {
  MappedFiles files;
  const bool is_listed = add_listed(interpreter_of(path), files);
  const bool is_seen = !watch.files().files().empty();
  files.add(path, true);
  files.absorb(watch.files());
  files.complete();
  return {note_event("libraries", as_json(files.files(), false)),
          note_event("libraries_listed", is_listed),
          note_event("libraries_seen", is_seen),
          note_event("programs", as_json(files.files(), true)),
          note_event("input_files", inputs(settings, start_s)),
          note_event("looks", looks(watch.tasks(), runs))};
}

[[nodiscard]] std::string found_program(const std::string& name) {
  const auto path = program_on_path(name);
  if (!path)
    throw Failure(Exit::system, name + ": no such program");
  return *path;
}

// A command around the runs, which must succeed. Its output is dropped; its errors are kept.
class Helper {
public:
  Helper(const char* what, const Words& words) : what_(what) {
    if (!words.empty())
      child_.emplace(found_program(words.front()), words);
  }

  void run() {
    if (!child_)
      return;
    const auto end = child_->run([](pid_t) {}, nowhere_.get());
    if (const auto failure = end.failure_text(); !failure.empty())
      throw Failure(status_of(end), std::string("the ") + what_ + " command " + failure);
  }

private:
  const char* what_;
  std::optional<Child> child_;
  const OpenFile nowhere_{"/dev/null", O_WRONLY};
};

// Our standard output and error, which the program shares. Only the output of its last run is kept.
class LastOutput {
public:
  LastOutput() {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      struct stat status {};
      const bool is_file = ::fstat(descriptors[i], &status) == 0 && S_ISREG(status.st_mode);
      ends_[i] = is_file ? status.st_size : -1;
    }
  }

  void drop() const noexcept {
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] >= 0 && ::ftruncate(descriptors[i], ends_[i]) == 0)
        ::lseek(descriptors[i], ends_[i], SEEK_SET);
  }

private:
  static constexpr std::array descriptors{STDOUT_FILENO, STDERR_FILENO};
  std::array<off_t, 2> ends_{};
};

// The program that is measured, with the commands around it.
class Measured {
public:
  Measured(const Settings& settings, std::string path)
      : settings_(settings), path_(std::move(path)), child_(path_, settings.words, settings.input),
        prepare_("prepare", settings.prepare), cleanup_("cleanup", settings.cleanup) {}

  // One run after the prepare command. `started` is called with its process id.
  template <class Started>
  [[nodiscard]] ChildEnd run(Started started) {
    if (has_run_)
      output_.drop();
    has_run_ = true;
    prepare_.run();
    return child_.run(started);
  }

  // Throws Failure for an end that is not the expected one.
  void check(const ChildEnd& end) const {
    if (is_expected(end))
      return;
    if (const auto failure_text = end.failure_text(); !failure_text.empty())
      throw Failure(status_of(end), path_ + " " + failure_text + instead());
    if (settings_.expected != 0)
      throw Failure(Exit::software, path_ + " ended with exit status 0" + instead());
  }

  [[nodiscard]] bool is_expected(const ChildEnd& end) const noexcept {
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == settings_.expected;
  }

  void clean_up() { cleanup_.run(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
  [[nodiscard]] std::string instead() const {
    return settings_.expected == 0 ? "" : " instead of " + std::to_string(settings_.expected);
  }

  const Settings& settings_;
  std::string path_;
  Child child_;
  Helper prepare_;
  Helper cleanup_;
  LastOutput output_;
  bool has_run_ = false;
};

// Whether the runs of a repeat are enough: the time for samples is used up, or for the first four
// runs four times as much. With three turns or more, sides are compared turn by turn.
[[nodiscard]] bool are_enough(std::size_t runs, double used_s, double next_s, double slice_s) {
  constexpr std::size_t fewest = 4;
  const double allowed_s = runs < fewest ? fewest * slice_s : slice_s;
  return used_s + next_s > allowed_s;
}

// The runs of one repeat: the program is started again until they are enough, or a run fails. The
// programs that it is compared with run in turns with it.
[[nodiscard]] std::vector<ChildEnd> timed_runs(Program& program, std::size_t most_runs,
                                               Measured& measured, Watch& watch) {
  std::vector<ChildEnd> runs;
  double used_s = 0.0;
  program.phase.begin();
  while (true) {
    const auto whole = timed([&] {
      runs.push_back(measured.run([&](pid_t process) { watch.follow(process); }));
      watch.follow(0);
    });
    used_s += whole.elapsed_s();
    program.phase.end();
    if (runs.size() == most_runs || !measured.is_expected(runs.back()) ||
        are_enough(runs.size(), used_s, whole.elapsed_s(), program.slice_s))
      return runs;
    program.turns.pass();
  }
}

// Warms up, measures, and notes what was run, also if it failed.
[[nodiscard]] Runs measured_runs(Program& program, const Settings& settings, Measured& measured) {
  for (std::size_t i = 0; i < settings.warm_ups; ++i)
    measured.check(measured.run([](pid_t) {}));
  timespec start{};
  clock_gettime(CLOCK_REALTIME, &start);
  Watch watch;
  Runs runs{.ends = timed_runs(program, settings.most_runs, measured, watch),
            .own_peak_B = own_peak_B()};
  watch.stop();
  write_now(settings, notes(settings, measured.path(), watch, runs.ends, in_seconds(start)));
  measured.check(runs.ends.back());
  return runs;
}

void measure(Program& program, const Settings& settings) {
  allow_cpus(0, program.cpus);
  write_now(settings, {hello_event("command", usable_cpus())});
  Measured measured(settings, found_program(settings.words.front()));
  Runs runs;
  try {
    runs = measured_runs(program, settings, measured);
  } catch (...) {
    measured.clean_up();
    throw;
  }
  measured.clean_up();
  for (std::size_t i = 0; i < runs.ends.size(); ++i)
    add_samples(program, runs.ends[i], i, runs.own_peak_B);
  program.check("exit_status", WEXITSTATUS(runs.ends.back().status));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("command", argc, argv, prepare, measure);
}
