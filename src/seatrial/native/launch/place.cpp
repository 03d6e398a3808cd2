// place: binds a rank to its CPUs, records where it runs, and then runs the rank's program.
//
// A launcher starts it once for each rank:
//   place --rank-from NAME[,NAME] --cpus 0,1/2,3 --ranks 4 [--record DIR] -- PROGRAM [arguments]
// The rank is the value of the first of these variables that is set. The CPU lists are those of the
// ranks of one host and repeat for each host: rank r takes list r modulo their number. CPUs are
// numbered as by the kernel, because launchers number them differently: some count cores, some use
// the order of hwloc. Without --cpus nothing is bound. With --record a file rank-NNNNNN.jsonl
// records the host and the CPUs as read back, for programs that do not write a record themselves.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "affinity.hpp"
#include "arguments.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"
#include "record.hpp"
#include "wall_clock.hpp"

namespace {

using namespace seatrial;

constexpr int max_ranks = 1 << 24;

struct Settings {
  explicit Settings(Arguments& arguments)
      : rank_from(arguments.required("--rank-from")), cpus(arguments.find("--cpus").value_or("")),
        record(arguments.find("--record").value_or("")),
        ranks(arguments.number("--ranks", 0, 1, max_ranks)) {
    arguments.finish();
  }

  std::string rank_from;
  std::string cpus;
  std::string record;
  int ranks;
};

[[nodiscard]] std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[nodiscard]] int number_of(const std::string& text, const std::string& what, int most) {
  int value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || value < 0 || value > most)
    throw Failure(Exit::usage, what + " is '" + text + "': expected a number");
  return value;
}

[[nodiscard]] int rank_from_launcher(const std::string& names) {
  for (const auto& name : parts_of(names, ','))
    if (const char* value = std::getenv(name.c_str()))
      return number_of(value, name, max_ranks);
  throw Failure(Exit::launcher, "the launcher sets no rank: none of " + names +
                                    " is set in the ranks' environment");
}

void bind_to_all(const std::vector<int>& cpus) {
  constexpr int max_cpus = 1 << 16;
  int size = 0;
  for (const int cpu : cpus)
    size = std::max(size, cpu + 1);
  if (size > max_cpus)
    throw Failure(Exit::usage, "no CPU " + std::to_string(size - 1));
  seatrial::detail::CpuSet set(size);
  for (const int cpu : cpus)
    set.add(cpu);
  if (sched_setaffinity(0, set.bytes(), set.get()) != 0)
    throw Failure(Exit::launcher,
                  std::string("cannot bind the rank to its CPUs: ") + std::strerror(errno));
}

void place(const Settings& settings) {
  const int rank = rank_from_launcher(settings.rank_from);
  if (!settings.cpus.empty()) {
    const auto lists = parts_of(settings.cpus, '/');
    std::vector<int> cpus;
    for (const auto& cpu : parts_of(lists[static_cast<std::size_t>(rank) % lists.size()], ','))
      cpus.push_back(number_of(cpu, "a CPU of --cpus", max_ranks));
    bind_to_all(cpus);
  }
  if (!settings.record.empty()) {
    Record record(settings.record, rank);
    record.add(hello_event("place", {bound_cpus()}, rank, settings.ranks));
    record.add(note_event("started_at_s", wall_clock_s()));
    record.close();
  }
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("place", argc, argv))
    return *status;
  int split = 1;
  while (split < argc && std::string_view(argv[split]) != "--")
    ++split;
  if (split + 1 >= argc)
    throw Failure(Exit::usage, "the program is missing: place [arguments] -- PROGRAM");
  Arguments arguments(split, argv);
  place(Settings(arguments));
  ::execvp(argv[split + 1], argv + split + 1);
  throw Failure(Exit::launcher,
                std::string("cannot start ") + argv[split + 1] + ": " + std::strerror(errno));
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("place", run, argc, argv);
}
