// repeats: makes the repeats of a plan on a node that has no Python, one program at a time.
//
//   repeats --plan FILE --programs FOLDER --into FOLDER
// The plan has a word and its values on each line. Values are percent-encoded; `%[folder]` stands
// for the folder of a repeat, `%[programs]` for FOLDER, `%[parent]` for the process id of this
// program.
//   pool MILLISECONDS                   a time budget, for the groups that follow
//   group LEAST MOST                    experiments that are repeated side by side, as often
//   experiment LIMIT_MILLISECONDS       one of them; its number is its position in the plan
//   argument TEXT, set NAME TEXT, unset NAME    its command, and changes of the environment
// A round takes the groups in random order, and makes one repeat of each experiment of a group in
// random order. An experiment leaves after a repeat that failed. A group is finished if all have
// left, at the most repeats, or if after the least its pool has no time for another round of it.
// FOLDER/EXPERIMENT-REPEAT is the folder of a repeat; when it has ended, a line is added to
// FOLDER/repeats: experiment, repeat, round, start in seconds since 1970, wall time in seconds,
// status as from wait(2), 1 if it hit its limit, and what it used: CPU time in seconds, minor and
// major faults, voluntary and involuntary switches, and resident memory in bytes.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"
#include "wall_clock.hpp"

namespace {

using namespace seatrial;

constexpr std::array ends = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr double grace_s = 10.0; // launchers of ranks end them and remove their files

struct Experiment {
  double limit_s = 0.0;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;
  int made = 0;
  bool has_left = false;
};

struct Group {
  std::size_t pool = 0;
  int least = 0;
  int most = 0;
  std::vector<std::size_t> experiments;
  int rounds = 0;
  double spent_s = 0.0;
};

struct Plan {
  std::vector<double> left_s; // of each pool
  std::vector<Group> groups;
  std::vector<Experiment> experiments;
};

[[noreturn]] void refuse(const std::string& line) {
  throw Failure(Exit::usage, "the plan has the line \"" + line.substr(0, 200) + "\"");
}

// A value of the plan, with its places filled.
[[nodiscard]] std::string decoded(const std::string& text, const std::string& folder,
                                  const std::string& programs, pid_t parent) {
  constexpr std::string_view folder_place = "%[folder]", programs_place = "%[programs]",
                             parent_place = "%[parent]";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.front() != '%') {
      result += text[at++];
    } else if (rest.starts_with(folder_place)) {
      result += folder;
      at += folder_place.size();
    } else if (rest.starts_with(programs_place)) {
      result += programs;
      at += programs_place.size();
    } else if (rest.starts_with(parent_place)) {
      result += std::to_string(parent);
      at += parent_place.size();
    } else {
      unsigned value = 0;
      const char* const first = text.data() + at + 1;
      if (rest.size() < 3 || std::from_chars(first, first + 2, value, 16).ptr != first + 2 ||
          value == 0)
        refuse(text);
      result += static_cast<char>(value);
      at += 3;
    }
  }
  return result;
}

[[nodiscard]] Plan read_plan(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw Failure(Exit::usage, "cannot read the plan " + path);
  Plan plan;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, first, second;
    words >> word >> first >> second;
    const auto number = [&](const std::string& text) {
      int value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size() || value < 0)
        refuse(line);
      return value;
    };
    const auto checked = [](const std::string& text) {
      static_cast<void>(decoded(text, "", "", 0));
      return text;
    };
    const auto last = [&]() -> Experiment& {
      if (plan.experiments.empty())
        refuse(line);
      return plan.experiments.back();
    };
    if (word == "pool") {
      plan.left_s.push_back(number(first) / 1e3);
    } else if (word == "group" && !plan.left_s.empty()) {
      plan.groups.push_back({.pool = plan.left_s.size() - 1,
                             .least = number(first),
                             .most = number(second),
                             .experiments = {}});
    } else if (word == "experiment" && !plan.groups.empty()) {
      plan.groups.back().experiments.push_back(plan.experiments.size());
      plan.experiments.push_back(
          {.limit_s = number(first) / 1e3, .arguments = {}, .set = {}, .unset = {}});
    } else if (word == "argument") {
      last().arguments.push_back(checked(first));
    } else if (word == "set") {
      last().set.emplace_back(first, checked(second));
    } else if (word == "unset") {
      last().unset.push_back(first);
    } else {
      refuse(line);
    }
  }
  for (const auto& experiment : plan.experiments)
    if (experiment.arguments.empty())
      throw Failure(Exit::usage, "the plan has an experiment without a command");
  return plan;
}

struct Ended {
  int status = 0;
  bool timed_out = false;
  double began_s = 0.0;
  double wall_s = 0.0;
  rusage used{};
};

class Stopped : public std::exception {
public:
  explicit Stopped(int signal) : signal_(signal) {}
  [[nodiscard]] int signal() const noexcept { return signal_; }

private:
  int signal_;
};

class Runner {
public:
  Runner(std::string into, std::string programs)
      : into_(std::move(into)), programs_(std::move(programs)) {
    sigemptyset(&watched_);
    sigaddset(&watched_, SIGCHLD);
    for (const int signal : ends)
      sigaddset(&watched_, signal);
    sigprocmask(SIG_BLOCK, &watched_, &before_);
    const auto path = into_ + "/repeats";
    log_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_ < 0)
      throw Failure(Exit::record, path + ": " + std::strerror(errno));
  }

  // One repeat, with its line; returns its wall time. Throws Stopped.
  double make(std::size_t number, Experiment& experiment, int round) {
    const auto folder = new_folder(number, experiment);
    const auto ended = run(experiment, folder);
    std::array<char, 512> line{};
    const auto& used = ended.used;
    const auto time_s = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    const auto size = std::snprintf(
        line.data(), line.size(), "%zu %d %d %.6f %.6f %d %d %.6f %ld %ld %ld %ld %lld\n", number,
        experiment.made, round, ended.began_s, ended.wall_s, ended.status, int{ended.timed_out},
        time_s(used.ru_utime) + time_s(used.ru_stime), used.ru_minflt, used.ru_majflt,
        used.ru_nvcsw, used.ru_nivcsw, 1024LL * used.ru_maxrss);
    if (::write(log_, line.data(), static_cast<std::size_t>(size)) != size || ::fsync(log_) != 0)
      throw Failure(Exit::record, into_ + "/repeats: " + std::strerror(errno));
    ++experiment.made;
    experiment.has_left = ended.status != 0 || ended.timed_out;
    return ended.wall_s;
  }

private:
  // What an earlier start of the job has made keeps its numbers.
  [[nodiscard]] std::string new_folder(std::size_t number, Experiment& experiment) const {
    for (;; ++experiment.made) {
      auto folder = into_ + "/" + std::to_string(number) + "-" + std::to_string(experiment.made);
      if (::mkdir(folder.c_str(), 0700) == 0)
        return folder;
      if (errno != EEXIST)
        throw Failure(Exit::record, folder + ": " + std::strerror(errno));
    }
  }

  [[nodiscard]] Ended run(const Experiment& experiment, const std::string& folder) {
    Ended ended;
    ended.began_s = wall_clock_s();
    const auto begin = Clock::now();
    const auto self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0)
      throw Failure(Exit::system, std::string("fork: ") + std::strerror(errno));
    if (child == 0)
      start(experiment, folder, self);
    ::setpgid(child, child);
    double limit_s = experiment.limit_s;
    int stopped_by = 0, next = SIGTERM;
    while (::wait4(child, &ended.status, WNOHANG, &ended.used) == 0) {
      const double left_s = limit_s - seconds(Clock::now() - begin);
      if (left_s <= 0.0) {
        ended.timed_out = ended.timed_out || stopped_by == 0;
        ::kill(-child, next);
        next = SIGKILL;
        limit_s = seconds(Clock::now() - begin) + grace_s;
        continue;
      }
      const auto whole_s = static_cast<time_t>(left_s);
      const timespec pause{whole_s,
                           static_cast<long>((left_s - static_cast<double>(whole_s)) * 1e9)};
      const int signal = sigtimedwait(&watched_, nullptr, &pause);
      if (signal > 0 && signal != SIGCHLD) {
        stopped_by = signal;
        limit_s = 0.0;
      }
    }
    ended.wall_s = seconds(Clock::now() - begin);
    ::kill(-child, SIGKILL); // what it left
    if (stopped_by != 0)
      throw Stopped(stopped_by);
    return ended;
  }

  [[noreturn]] void start(const Experiment& experiment, const std::string& folder,
                          pid_t parent) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    const auto redirect = [&](const char* name, int to) {
      const auto path = folder + "/" + name;
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0 || ::dup2(file, to) < 0)
        ::_exit(static_cast<int>(Exit::record));
    };
    redirect("stdout", STDOUT_FILENO);
    redirect("stderr", STDERR_FILENO);
    for (const auto& name : experiment.unset)
      ::unsetenv(name.c_str());
    for (const auto& [name, value] : experiment.set)
      ::setenv(name.c_str(), decoded(value, folder, programs_, parent).c_str(), 1);
    std::vector<std::string> words;
    words.reserve(experiment.arguments.size());
    for (const auto& argument : experiment.arguments)
      words.push_back(decoded(argument, folder, programs_, parent));
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (auto& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::getppid() == parent)
      ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "%s cannot be started: %s\n", argv[0], std::strerror(errno));
    std::fflush(stderr);
    ::_exit(static_cast<int>(Exit::launcher));
  }

  std::string into_;
  std::string programs_;
  sigset_t watched_{};
  sigset_t before_{};
  int log_ = -1;
};

// Takes account of what an earlier start of the job has made; returns its last round.
[[nodiscard]] int resume(Plan& plan, const std::string& into) {
  std::ifstream file(into + "/repeats");
  int last_round = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::size_t number = 0;
    int repeat = 0, round = 0, status = 0, timed_out = 0;
    double began_s = 0.0, wall_s = 0.0;
    if (!(words >> number >> repeat >> round >> began_s >> wall_s >> status >> timed_out) ||
        number >= plan.experiments.size())
      continue;
    auto& experiment = plan.experiments[number];
    experiment.made = std::max(experiment.made, repeat + 1);
    experiment.has_left = status != 0 || timed_out != 0;
    last_round = std::max(last_round, round);
    for (auto& group : plan.groups)
      if (std::ranges::find(group.experiments, number) != group.experiments.end()) {
        group.spent_s += wall_s;
        group.rounds = std::max(group.rounds, experiment.made);
        plan.left_s[group.pool] -= wall_s;
      }
  }
  return last_round;
}

void make_all(Plan& plan, Runner& runner, int last_round) {
  std::mt19937_64 random{std::random_device{}()};
  std::vector<Group*> open;
  for (auto& group : plan.groups)
    open.push_back(&group);
  const auto is_finished = [&](const Group& group) {
    const double next_s = group.rounds == 0 ? 0.0 : group.spent_s / group.rounds;
    return group.rounds >= group.most ||
           (group.rounds >= group.least && next_s > plan.left_s[group.pool]) ||
           std::ranges::all_of(group.experiments, [&](std::size_t number) {
             return plan.experiments[number].has_left;
           });
  };
  for (int round = last_round + 1; !open.empty(); ++round) {
    std::ranges::shuffle(open, random);
    for (Group* const group : open) {
      if (is_finished(*group))
        continue;
      auto members = group->experiments;
      std::ranges::shuffle(members, random);
      for (const auto number : members) {
        if (plan.experiments[number].has_left)
          continue;
        const double wall_s = runner.make(number, plan.experiments[number], round);
        group->spent_s += wall_s;
        plan.left_s[group->pool] -= wall_s;
      }
      ++group->rounds;
    }
    std::erase_if(open, [&](const Group* group) { return is_finished(*group); });
    std::printf("round %d: %zu of %zu groups go on\n", round, open.size(), plan.groups.size());
    std::fflush(stdout);
  }
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("repeats", argc, argv))
    return *status;
  Arguments arguments(argc, argv);
  auto plan = read_plan(std::string(arguments.required("--plan")));
  const std::string into(arguments.required("--into"));
  const std::string programs(arguments.required("--programs"));
  arguments.finish();
  const int last_round = resume(plan, into);
  Runner runner(into, programs);
  try {
    make_all(plan, runner, last_round);
  } catch (const Stopped& stopped) {
    std::fprintf(stderr, "repeats: stopped by signal %d\n", stopped.signal());
    return 128 + stopped.signal();
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("repeats", run, argc, argv);
}
