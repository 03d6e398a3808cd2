// guest_agent: the first process of a guest that `seatrial vm up` started.
//
// It mounts what Linux needs, loads the kernel modules listed in /seatrial/modules, turns on the
// virtual functions of every device that has some, and then runs the commands that come through the
// ports named seatrial.N (virtio-serial). A process serves each port; a command ends when the
// client that sent it is gone.
//
// With --serve it runs the commands that come through its standard input, as ssh has started it in
// any other guest, until that ends.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.hpp"
#include "hello.hpp"
#include "launch/guest_frames.hpp"
#include "launch/helper_main.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t most_waiting_B = std::size_t{256} << 10U;
constexpr std::size_t most_left_in_pipes_B = std::size_t{1} << 20U;
constexpr int look_again_ms = 1000;
constexpr int most_looks = 100;
constexpr int look_again_us = 1000;
constexpr const char* usual_path = "/usr/sbin:/usr/bin:/sbin:/bin";

void say(const std::string& text) {
  std::fprintf(stderr, "guest_agent: %s\n", text.c_str());
}

void mount_at(const char* type, const char* place, const char* options = "") {
  ::mkdir(place, 0755);
  if (::mount(type, place, type, MS_NOSUID, options) != 0 && errno != EBUSY)
    say(std::string("cannot mount ") + place + ": " + std::strerror(errno));
}

void mount_all() {
  mount_at("proc", "/proc");
  mount_at("sysfs", "/sys");
  mount_at("devtmpfs", "/dev");
  mount_at("devpts", "/dev/pts", "mode=620,ptmxmode=666");
  mount_at("tmpfs", "/dev/shm", "mode=1777");
  mount_at("tmpfs", "/tmp", "mode=1777");
  mount_at("cgroup2", "/sys/fs/cgroup");
}

void load_modules() {
  std::ifstream list("/seatrial/modules");
  for (std::string path; std::getline(list, path);) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || (::syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
      say("cannot load " + path + ": " + std::strerror(errno));
    if (file >= 0)
      ::close(file);
  }
}

// Each device gets all the virtual functions it can have: the topology says how many these are. No
// driver takes them, so they stay as they are.
void turn_on_functions() {
  std::error_code unreadable;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/bus/pci/devices", unreadable)) {
    int most = 0;
    if (!(std::ifstream(entry.path() / "sriov_totalvfs") >> most) || most < 1)
      continue;
    std::ofstream(entry.path() / "sriov_drivers_autoprobe") << "0\n";
    std::ofstream count(entry.path() / "sriov_numvfs");
    if (!(count << most << std::endl))
      say("cannot turn on the virtual functions of " + entry.path().filename().string());
  }
}

void raise_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP;
  if (socket < 0 || ::ioctl(socket, SIOCSIFFLAGS, &request) != 0)
    say(std::string("cannot use the loopback interface: ") + std::strerror(errno));
  if (socket >= 0)
    ::close(socket);
}

// The device files of the ports, in the order of their names.
[[nodiscard]] std::vector<std::string> ports() {
  std::map<std::string, std::string> found;
  std::error_code unreadable;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/class/virtio-ports", unreadable)) {
    std::string name;
    std::ifstream(entry.path() / "name") >> name;
    if (name.starts_with("seatrial."))
      found[name] = "/dev/" + entry.path().filename().string();
  }
  std::vector<std::string> paths;
  for (const auto& [name, path] : found)
    paths.push_back(path);
  return paths;
}

// Kills the processes of a session (setsid(2)). Returns whether there were any.
[[nodiscard]] bool kill_session(pid_t session) {
  std::error_code unreadable;
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
    pid_t pid = 0;
    const auto name = entry.path().filename().string();
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{} && pid > 1 &&
        ::getsid(pid) == session && pid != session)
      found = ::kill(pid, SIGKILL) == 0 || found;
  }
  return found;
}

// The words and variables of a command, as they were sent.
struct Command {
  std::string folder;
  std::vector<std::string> words;
  std::vector<std::string> variables;

  [[nodiscard]] static std::optional<Command> from(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\0', begin);
      if (end == std::string_view::npos)
        return std::nullopt;
      parts.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    std::size_t count = 0;
    if (parts.size() < 3 ||
        std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), count).ec !=
            std::errc{} ||
        count < 1 || count > parts.size() - 2)
      return std::nullopt;
    const auto words = parts.begin() + 2;
    const auto variables = words + static_cast<std::ptrdiff_t>(count);
    return Command{parts[0], {words, variables}, {variables, parts.end()}};
  }
};

[[nodiscard]] std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (auto& text : texts)
    found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

enum class Host : bool { port, streams };

// Serves one port, or the standard streams: one command after the other.
class Server {
public:
  Server(int from_host, int to_host, Host host) : port_(from_host), out_(to_host), host_(host) {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGIO);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = ::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
    if (host_ == Host::streams) {
      ::fcntl(port_, F_SETFL, ::fcntl(port_, F_GETFL) | O_NONBLOCK);
      ::fcntl(out_, F_SETFL, ::fcntl(out_, F_GETFL) | O_NONBLOCK);
      return;
    }
    // The kernel sends SIGIO when a client comes or goes: without one, poll(2) would not wait.
    ::fcntl(port_, F_SETOWN, ::getpid());
    ::fcntl(port_, F_SETFL, ::fcntl(port_, F_GETFL) | O_NONBLOCK | O_ASYNC);
  }

  // Returns when the standard streams have ended; a port never does.
  void serve() {
    while (!ended_)
      step();
    drop_session();
  }

private:
  void step() {
    const bool is_port = host_ == Host::port;
    const auto wanted =
        static_cast<short>(is_port && !to_host_.empty() ? POLLIN | POLLOUT : POLLIN);
    pollfd host{port_, wanted, 0};
    if (is_port && ::poll(&host, 1, 0) >= 0 && (host.revents & POLLHUP) != 0) {
      drop_session();
      host.fd = -1;
    }
    const bool has_room = to_host_.size() < most_waiting_B;
    std::array watched = {pollfd{signals_, POLLIN, 0},
                          host,
                          pollfd{input_waiting_.empty() ? -1 : input_, POLLOUT, 0},
                          pollfd{has_room ? output_ : -1, POLLIN, 0},
                          pollfd{has_room ? errors_ : -1, POLLIN, 0},
                          pollfd{is_port || to_host_.empty() ? -1 : out_, POLLOUT, 0}};
    ::poll(watched.data(), watched.size(), look_again_ms);
    signalfd_siginfo ignored{};
    while (::read(signals_, &ignored, sizeof ignored) > 0) {
    }
    if ((watched[1].revents & (is_port ? POLLIN : POLLIN | POLLHUP | POLLERR)) != 0)
      read_host();
    write_host();
    write_input();
    if (has_room) {
      pass_on(output_, guest::output);
      pass_on(errors_, guest::errors);
    }
    reap();
  }

  void read_host() {
    std::array<char, 65536> bytes{};
    const auto got = ::read(port_, bytes.data(), bytes.size());
    if (host_ == Host::streams && (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)))
      ended_ = true;
    if (got <= 0)
      return;
    frames_.add({bytes.data(), static_cast<std::size_t>(got)});
    while (const auto frame = frames_.next())
      handle(*frame);
  }

  void handle(const guest::Frame& frame) {
    switch (frame.kind) {
    case guest::begin_session:
      drop_session();
      send(guest::begun, frame.payload);
      break;
    case guest::describe_command:
      described_ += frame.payload;
      break;
    case guest::start_command:
      start();
      break;
    case guest::input:
      input_waiting_ += frame.payload;
      break;
    case guest::input_ended:
      input_ended_ = true;
      break;
    case guest::send_signal:
      if (child_ > 0 && !frame.payload.empty())
        ::kill(-child_, static_cast<unsigned char>(frame.payload[0]));
      break;
    default:
      break;
    }
  }

  void start() {
    auto command = Command::from(described_);
    described_.clear();
    if (!command || child_ > 0)
      return send(guest::ended, "n" + guest::number_text(EINVAL));
    std::array<std::array<int, 2>, 4> pipes{};
    for (auto& pipe : pipes)
      if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
        return send(guest::ended, "n" + guest::number_text(static_cast<std::uint32_t>(errno)));
    auto& [in, out, err, failed] = pipes;
    child_ = ::fork();
    if (child_ == 0)
      become(*command, host_, in[0], out[1], err[1], failed[1]);
    for (const int ours_no_more : {in[0], out[1], err[1], failed[1]})
      ::close(ours_no_more);
    int why = errno;
    const bool is_failed = child_ < 0 || ::read(failed[0], &why, sizeof why) == sizeof why;
    ::close(failed[0]);
    input_ = in[1], output_ = out[0], errors_ = err[0];
    for (const int end : {input_, output_, errors_})
      ::fcntl(end, F_SETFL, O_NONBLOCK);
    if (is_failed) {
      if (child_ > 0)
        ::waitpid(child_, nullptr, 0);
      close_streams();
      child_ = -1;
      send(guest::ended, "n" + guest::number_text(static_cast<std::uint32_t>(why)));
    }
  }

  [[noreturn]] static void become(Command& command, Host host, int in, int out, int err,
                                  int failed) {
    const auto fail = [failed] {
      const int why = errno;
      [[maybe_unused]] const auto told = ::write(failed, &why, sizeof why);
      ::_exit(127);
    };
    ::setsid();
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0)
      fail();
    auto words = pointers(command.words);
    auto variables = pointers(command.variables);
    if (host == Host::port) { // by ssh, the user has an environment
      ::clearenv();
      ::setenv("PATH", usual_path, 1);
      ::setenv("HOME", "/root", 1);
    }
    for (char* const variable : variables)
      if (variable != nullptr)
        ::putenv(variable);
    ::execvp(words[0], words.data());
    fail();
    std::abort();
  }

  void write_host() {
    while (!to_host_.empty()) {
      const auto put =
          ::write(out_, to_host_.data(), std::min<std::size_t>(to_host_.size(), 32768));
      if (put < 0 && host_ == Host::streams && errno != EAGAIN && errno != EINTR)
        ended_ = true;
      if (put <= 0)
        return;
      to_host_.erase(0, static_cast<std::size_t>(put));
    }
  }

  void write_input() {
    if (input_ >= 0 && !input_waiting_.empty()) {
      const auto put = ::write(input_, input_waiting_.data(), input_waiting_.size());
      if (put > 0) {
        input_waiting_.erase(0, static_cast<std::size_t>(put));
        send(guest::taken, guest::number_text(static_cast<std::uint32_t>(put)));
      } else if (errno != EAGAIN && errno != EINTR) { // it no longer reads
        close_stream(input_);
      }
    }
    if (input_ < 0 && !input_waiting_.empty()) {
      send(guest::taken, guest::number_text(static_cast<std::uint32_t>(input_waiting_.size())));
      input_waiting_.clear();
    }
    if (input_ended_ && input_waiting_.empty())
      close_stream(input_);
  }

  // Whether something was read.
  bool pass_on(int& stream, char kind) {
    if (stream < 0)
      return false;
    std::array<char, guest::longest_payload_B> bytes{};
    const auto got = ::read(stream, bytes.data(), bytes.size());
    if (got > 0)
      send(kind, {bytes.data(), static_cast<std::size_t>(got)});
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
      close_stream(stream);
    return got > 0;
  }

  // Orphans come to the first process, not here: only the command is waited for. What it wrote
  // before it ended comes first, and what others still write is not waited for.
  void reap() {
    int status = 0;
    if (child_ <= 0 || ::waitpid(child_, &status, WNOHANG) != child_)
      return;
    for (std::size_t read = 0; read < most_left_in_pipes_B; read += guest::longest_payload_B)
      if (!pass_on(output_, guest::output) && !pass_on(errors_, guest::errors))
        break;
    close_streams();
    child_ = -1;
    const bool is_killed = WIFSIGNALED(status);
    const int number = is_killed ? WTERMSIG(status) : WEXITSTATUS(status);
    send(guest::ended,
         (is_killed ? "s" : "x") + guest::number_text(static_cast<std::uint32_t>(number)));
  }

  void drop_session() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      // The leader stays a zombie meanwhile, so no other session gets its number. What a killed
      // process has just started is found by looking again.
      for (int looks = 0; kill_session(child_) && looks < most_looks; ++looks)
        ::usleep(look_again_us);
      ::waitpid(child_, nullptr, 0);
    }
    child_ = -1;
    close_streams();
    described_.clear();
    to_host_.clear();
  }

  void close_streams() {
    for (int* const stream : {&input_, &output_, &errors_})
      close_stream(*stream);
    input_waiting_.clear();
    input_ended_ = false;
  }

  static void close_stream(int& stream) {
    if (stream >= 0)
      ::close(stream);
    stream = -1;
  }

  void send(char kind, std::string_view payload) { to_host_ += guest::frame_text(kind, payload); }

  int port_;
  int out_;
  Host host_;
  bool ended_ = false;
  int signals_ = -1;
  guest::FrameReader frames_;
  std::string described_;
  std::string to_host_;
  pid_t child_ = -1;
  int input_ = -1;
  int output_ = -1;
  int errors_ = -1;
  std::string input_waiting_;
  bool input_ended_ = false;
};

[[nodiscard]] pid_t start_server(const std::string& path) {
  const pid_t server = ::fork();
  if (server != 0)
    return server;
  const int port = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (port < 0) {
    say("cannot open " + path + ": " + std::strerror(errno));
    ::_exit(1);
  }
  ::signal(SIGPIPE, SIG_IGN);
  Server(port, port, Host::port).serve();
  ::_exit(0);
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("guest_agent", argc, argv))
    return *status;
  if (argc == 2 && std::string_view(argv[1]) == "--serve") {
    ::signal(SIGPIPE, SIG_IGN);
    Server(STDIN_FILENO, STDOUT_FILENO, Host::streams).serve();
    return 0;
  }
  if (::getpid() != 1)
    throw Failure(Exit::usage, "it is the first process of a guest: seatrial vm up starts it");
  mount_all();
  load_modules();
  turn_on_functions();
  raise_loopback();
  constexpr std::string_view name = "guest";
  [[maybe_unused]] const auto named = ::sethostname(name.data(), name.size());
  std::map<pid_t, std::string> servers;
  for (const auto& path : ports())
    servers[start_server(path)] = path;
  if (servers.empty())
    say("no port of seatrial was found");
  for (;;) {
    const pid_t ended = ::wait(nullptr);
    if (const auto server = servers.find(ended); server != servers.end()) {
      const auto path = server->second;
      servers.erase(server);
      servers[start_server(path)] = path;
    } else if (ended < 0) {
      ::pause();
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("guest_agent", run, argc, argv);
}
