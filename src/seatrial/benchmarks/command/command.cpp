// command: the wall time of any program, once per repeat, with its libraries and inputs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "affinity.hpp"
#include "child.hpp"
#include "elf_file.hpp"
#include "file_identity.hpp"
#include "hello.hpp"
#include "mapped_files.hpp"
#include "program.hpp"
#include "record.hpp"
#include "tasks.hpp"
#include "watch.hpp"

namespace {

using namespace seatrial;

struct Settings {
  std::string record;
  std::vector<std::string> words;
  int expected = 0; // exit status
};

// Reads an argument list: `--words 2 --word-0 sleep --word-1 3`.
[[nodiscard]] Settings prepare(Arguments& arguments) {
  static std::vector<std::string> names; // the arguments keep references to the names
  const auto count = arguments.number<std::size_t>("--words", 0, 1, 1 << 16);
  names.reserve(count);
  Settings settings{.record = std::string(arguments.required("--record")),
                    .words = {},
                    .expected = arguments.number<int>("--expect", 0, 0, 255)};
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("--word-" + std::to_string(i));
    settings.words.emplace_back(arguments.required(names.back()));
  }
  if (settings.words.empty() || settings.words.front().empty())
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

[[nodiscard]] double in_seconds(const timespec& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

[[nodiscard]] double in_seconds(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
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

[[nodiscard]] json::Object sample_of(const ChildEnd& end) {
  const auto& usage = end.usage;
  auto sample = sample_event("wall", 0, end.interval.elapsed_s())
                    .add("user_s", in_seconds(usage.ru_utime))
                    .add("system_s", in_seconds(usage.ru_stime))
                    .add("minor_faults", usage.ru_minflt)
                    .add("major_faults", usage.ru_majflt)
                    .add("voluntary_switches", usage.ru_nvcsw)
                    .add("involuntary_switches", usage.ru_nivcsw);
  const auto peak_B = std::int64_t{usage.ru_maxrss} * 1024;
  if (peak_B > own_peak_B())
    sample.add("max_rss_B", peak_B);
  return sample;
}

[[nodiscard]] std::optional<ElfFile> elf_at(const std::string& path) {
  const OpenFile file(path);
  return file.get() < 0 ? std::nullopt : read_elf_file(file.get());
}

// The program that is actually run: for a script, its interpreter.
[[nodiscard]] std::string interpreter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(256, '\0'); // Linux reads this much
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (!line.starts_with("#!"))
    return path;
  std::istringstream words(line.substr(2, line.find('\n') - 2));
  std::string interpreter;
  words >> interpreter;
  return interpreter.starts_with('/') ? interpreter : path;
}

// Whether a loader supports `--list`, which prints the libraries it would load and runs nothing.
[[nodiscard]] bool can_list(const std::string& loader) {
  const auto name = detail::file_name(loader);
  return name.starts_with("ld-linux") || name.starts_with("ld64.so") || name.starts_with("ld-musl");
}

// The standard output of a short command; none on failure.
[[nodiscard]] std::optional<std::string> output_of(const std::string& path,
                                                   const std::vector<std::string>& words) {
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  if (output < 0)
    return std::nullopt;
  std::optional<std::string> text;
  try {
    if (Child(path, words).run([](pid_t) {}, output).failure_text().empty())
      text = detail::all_of("/proc/self/fd/" + std::to_string(output), 1 << 20);
  } catch (const Failure&) { // the measurement itself is not affected
  }
  ::close(output);
  return text;
}

// Adds the libraries that the loader maps before the program starts, found by repeating its search:
// `     libm.so.6 => /lib/libm.so.6 (0x7f10c0)`. Returns whether they are known, also for a static
// program. They are found however short the run is.
[[nodiscard]] bool add_listed(const std::string& program, MappedFiles& files) {
  const auto elf = elf_at(program);
  if (!elf)
    return false;
  if (elf->interpreter.empty())
    return true;
  if (!can_list(elf->interpreter))
    return false;
  const auto text = output_of(elf->interpreter, {elf->interpreter, "--list", program});
  if (!text)
    return false;
  detail::for_each_line(*text, [&](std::string_view line) {
    const auto begin = line.find('/');
    const auto stop = line.rfind(" (0x");
    if (begin != line.npos && stop != line.npos && stop > begin)
      files.add(std::string(line.substr(begin, stop - begin)), false);
  });
  return true;
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

// What the threads did while they were looked at: how long they had a CPU or were ready to have
// one, and the longest waits for files. Beside it the time of all, without our own.
[[nodiscard]] json::Object looks(const TaskLooks& tasks, const ChildEnd& end) {
  const auto counted = tasks.counted();
  std::vector<json::Object> waits;
  for (const auto& wait : tasks.waits())
    waits.push_back(
        json::Object().add("in", wait.kind).add("path", wait.path).add("wait_s", wait.seconds));
  return json::Object()
      .add("program_s", end.interval.elapsed_s())
      .add("program_cpu_s", in_seconds(end.usage.ru_utime) + in_seconds(end.usage.ru_stime))
      .add("major_faults", end.usage.ru_majflt)
      .add("covered_s", tasks.covered_s())
      .add("threads", tasks.threads())
      .add("cpu_s", counted.cpu_s)
      .add("delay_s", counted.delay_s)
      .add("allowed", tasks.allowed())
      .add("waits", waits);
}

// The program's exit status, unless it has a different meaning for this process.
[[nodiscard]] Exit status_of(const ChildEnd& end) noexcept {
  const auto status = static_cast<Exit>(end.shell_exit_status());
  const bool is_taken =
      status == Exit::wrong_cpu || status == Exit::record || status == Exit::parent_gone;
  return is_taken ? Exit::system : status;
}

// Everything about the run that was not timed.
[[nodiscard]] std::vector<json::Object> notes(const Settings& settings, const std::string& path,
                                              Watch& watch, const ChildEnd& end, double start_s) {
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
          note_event("looks", looks(watch.tasks(), end))};
}

void measure(Program& program, const Settings& settings) {
  allow_cpus(0, program.cpus);
  write_now(settings, {hello_event("command", usable_cpus())});
  const auto path = program_on_path(settings.words.front());
  if (!path)
    throw Failure(Exit::system, settings.words.front() + ": no such program");
  timespec start{};
  clock_gettime(CLOCK_REALTIME, &start);
  Child child(*path, settings.words);
  Watch watch;
  const auto end = child.run([&](pid_t process) { watch.follow(process); });
  watch.stop();
  write_now(settings, notes(settings, *path, watch, end, in_seconds(start)));
  const bool has_exited = WIFEXITED(end.status);
  const bool is_expected = has_exited && WEXITSTATUS(end.status) == settings.expected;
  if (const auto failure_text = end.failure_text(); !is_expected && !failure_text.empty())
    throw Failure(status_of(end), *path + " " + failure_text);
  if (!is_expected && settings.expected != 0)
    throw Failure(Exit::software, *path + " ended with exit status 0 instead of " +
                                      std::to_string(settings.expected));
  program.add(sample_of(end));
  program.check("exit_status", WEXITSTATUS(end.status));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("command", argc, argv, prepare, measure);
}
