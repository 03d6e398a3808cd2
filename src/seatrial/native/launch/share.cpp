// share: starts the ranks of a node in one container.
//
// A launcher starts it once for each rank:
//   share --name NAME --option OPTION --holder PROGRAM --words N -- RUNTIME... RANK [arguments]
// The first N words behind `--` start a container. The first rank of a name leaves a process behind
// that starts the container with the holder in it, a program that writes its process id and waits
// for the end of its input. Each rank then runs the runtime with OPTION and this id in front of its
// other options, and so enters the container, whichever rank comes or ends first.
//
// Ranks find that process by an abstract socket (unix(7)), which leaves no file behind. Each holds
// its connection for as long as it runs; when the last is closed, the holder's input ends, and the
// container with it. A rank that comes later finds nobody and starts a container anew.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"

namespace {

using namespace seatrial;

constexpr pid_t no_container = 0; // is sent to a rank in place of the holder's id
constexpr int first_rank_limit_ms = 60'000;
constexpr int most_waiting = 4096;      // ranks of a node that connect at the same time
constexpr int above_the_programs = 100; // scripts redirect low descriptors
constexpr std::chrono::milliseconds retry{1};

[[nodiscard]] Failure system_failure(const char* what) {
  return {Exit::system, std::string(what) + ": " + std::strerror(errno)};
}

struct Settings {
  Settings(Arguments& arguments, int given_words)
      : name(arguments.required("--name")), option(arguments.required("--option")),
        holder(arguments.required("--holder")),
        words(arguments.number("--words", 0, 1, given_words)) {
    arguments.finish();
  }

  std::string name;
  std::string option;
  std::string holder;
  int words;
};

// A descriptor that is closed with its owner.
class Descriptor {
public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return number_; }
  void close() noexcept {
    if (number_ >= 0)
      ::close(std::exchange(number_, -1));
  }

private:
  int number_;
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw system_failure("pipe");
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read;
  Descriptor write;
};

struct Address {
  explicit Address(const std::string& name) {
    if (name.size() + 1 > sizeof socket.sun_path)
      throw Failure(Exit::usage, "the name " + name + " is too long");
    socket.sun_family = AF_UNIX;
    name.copy(&socket.sun_path[1], name.size()); // after a zero byte: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&socket);
  }
  sockaddr_un socket{};
  socklen_t size = 0;
};

// Anybody can bind a name, and connect to it.
[[nodiscard]] bool is_of_this_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

// A container that runs for as long as this object exists.
class Container {
public:
  explicit Container(std::vector<char*> command) : command_(std::move(command)) {
    command_.push_back(nullptr);
    Pipe input;
    Pipe output;
    Pipe messages;
    process_ = ::fork();
    if (process_ < 0)
      throw system_failure("fork");
    if (process_ == 0)
      become(input.read.get(), output.write.get(), messages.write.get());
    output.write.close();
    messages.write.close();
    input_ = std::move(input.write);
    if (::read(output.read.get(), &holder_, sizeof holder_) != sizeof holder_)
      holder_ = no_container;
    if (holder_ == no_container) // the runtime has ended, or its words are of no use
      pass_on(messages.read.get());
  }
  ~Container() {
    input_.close();
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  [[nodiscard]] pid_t holder() const noexcept { return holder_; }

private:
  [[noreturn]] void become(int input, int output, int messages) {
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(messages, STDERR_FILENO);
    ::execvp(command_[0], command_.data());
    std::fprintf(stderr, "share: cannot start %s: %s\n", command_[0], std::strerror(errno));
    ::_exit(static_cast<int>(Exit::launcher));
  }

  static void pass_on(int messages) {
    std::array<char, 4096> text{};
    for (ssize_t size = 0; (size = ::read(messages, text.data(), text.size())) > 0;)
      [[maybe_unused]] const auto written =
          ::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(size));
  }

  std::vector<char*> command_;
  Descriptor input_;
  pid_t process_ = -1;
  pid_t holder_ = no_container;
};

// Tells ranks the holder's id, until the last of them has ended, or none came.
void serve(Descriptor listener, pid_t holder) {
  std::vector<Descriptor> ranks;
  bool has_seen_one = false;
  do {
    std::vector<pollfd> watched = {{listener.get(), POLLIN, 0}};
    for (const auto& rank : ranks)
      watched.push_back({rank.get(), POLLIN, 0});
    const int ready =
        ::poll(watched.data(), watched.size(), has_seen_one ? -1 : first_rank_limit_ms);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return;
    for (auto at = ranks.size(); at > 0; --at) // they send nothing: this is their end
      if (watched[at].revents != 0)
        ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(at) - 1);
    if (watched[0].revents == 0)
      continue;
    Descriptor rank(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (rank.get() < 0 || !is_of_this_user(rank.get()))
      continue;
    has_seen_one = true;
    if (::send(rank.get(), &holder, sizeof holder, MSG_NOSIGNAL) == sizeof holder &&
        holder != no_container)
      ranks.push_back(std::move(rank));
  } while (!has_seen_one || !ranks.empty());
}

// Closes what was inherited, but for the standard streams.
void close_all_but(int kept) {
  std::vector<int> open;
  if (DIR* folder = ::opendir("/proc/self/fd")) {
    while (const dirent* entry = ::readdir(folder))
      if (const int number = std::atoi(entry->d_name);
          number > STDERR_FILENO && number != kept && number != ::dirfd(folder))
        open.push_back(number);
    ::closedir(folder);
  }
  for (const int number : open)
    ::close(number);
}

// Holds the container. It is neither a child of the rank, whose program may wait for its children,
// nor does it keep the rank's streams and the launcher's descriptors open, by whose end launchers
// notice that a rank has ended.
void hold(Descriptor listener, const std::vector<char*>& command) {
  ::setsid(); // signals for the group of the first rank are not for the others
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_IGN);
  close_all_but(listener.get());
  const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(nothing.get(), STDOUT_FILENO);
  const Container container(command);
  ::dup2(nothing.get(), STDERR_FILENO);
  serve(std::move(listener), container.holder());
}

void leave_behind(Descriptor listener, const std::vector<char*>& command) {
  const auto child = ::fork();
  if (child < 0)
    throw system_failure("fork");
  if (child == 0) {
    if (::fork() == 0) {
      try {
        hold(std::move(listener), command);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "share: %s\n", error.what());
      }
    }
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

[[nodiscard]] Descriptor new_socket(int flags) {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | flags, 0));
  if (made.get() < 0)
    throw system_failure("socket");
  return made;
}

// The holder's id, from the process that holds the container; the connection stays open in the
// programs that this process becomes.
[[nodiscard]] pid_t enter(const Settings& settings, const std::vector<char*>& container) {
  const Address address(settings.name);
  for (;; std::this_thread::sleep_for(retry)) {
    if (Descriptor listener = new_socket(SOCK_CLOEXEC);
        ::bind(listener.get(), address.get(), address.size) == 0) {
      if (::listen(listener.get(), most_waiting) != 0)
        throw system_failure("listen");
      leave_behind(std::move(listener), container);
    }
    Descriptor connection = new_socket(0);
    pid_t holder = no_container;
    if (::connect(connection.get(), address.get(), address.size) != 0 ||
        ::recv(connection.get(), &holder, sizeof holder, MSG_WAITALL) != sizeof holder)
      continue; // the last rank has just ended, or the first one is not ready yet
    if (!is_of_this_user(connection.get()))
      throw Failure(Exit::launcher, "another user has the name " + settings.name);
    if (holder == no_container)
      throw Failure(Exit::launcher, "no container for the ranks of this node was started");
    if (::fcntl(connection.get(), F_DUPFD, above_the_programs) < 0) // this one stays open
      throw system_failure("dup");
    return holder;
  }
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("share", argc, argv))
    return *status;
  int split = 1;
  while (split < argc && std::string_view(argv[split]) != "--")
    ++split;
  if (split + 2 >= argc)
    throw Failure(Exit::usage, "the program is missing: share [arguments] -- RUNTIME PROGRAM");
  Arguments arguments(split, argv);
  Settings settings(arguments, argc - split - 2);
  char** const first = argv + split + 1;
  std::vector<char*> container(first, first + settings.words);
  container.push_back(settings.holder.data());
  auto entering = settings.option + std::to_string(enter(settings, container));
  std::vector<char*> rank = {first[0], entering.data()};
  rank.insert(rank.end(), first + 1, argv + argc);
  rank.push_back(nullptr);
  ::execvp(rank[0], rank.data());
  throw Failure(Exit::launcher,
                std::string("cannot start ") + rank[0] + ": " + std::strerror(errno));
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("share", run, argc, argv);
}
