// link_probe: the rate and the round trip that a network path gives to TCP.
//
//   link_probe --serve PORT
//   link_probe --to ADDRESS --port PORT --for SECONDS --pings N [--at TIME]
// The second form connects to the first, twice. The first connection carries N round trips of one
// byte, after a tenth of them as warm-up, and their median is `round_trip_s`; they end early when
// they have taken as long as will be sent. On the second one it
// sends for so many seconds; the receiver counts. The start is not counted: until then TCP opens
// its window, and a token bucket lets its burst pass. `bytes` arrived in `elapsed_s`, so their
// quotient is the rate of the payload; headers are not in it. With --at the sending begins at that
// time of CLOCK_MONOTONIC, or `late_s` after it. It prints one JSON object.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arguments.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "json.hpp"
#include "launch/helper_main.hpp"

namespace {

using namespace seatrial;

constexpr char asks_echo = 'e';
constexpr char asks_count = 'c';
constexpr double not_counted = 0.3; // of the time that is sent
constexpr double connect_for_s = 5.0;
constexpr std::size_t block_B = 256 << 10;

// What the receiver answers. Both ends are this program, on one machine.
struct Counted {
  std::uint64_t bytes;
  double elapsed_s;
};

[[noreturn]] void fail(const std::string& what) {
  throw Failure(Exit::system, what + ": " + std::strerror(errno));
}

class Socket {
public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor < 0)
      fail("no socket");
  }
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }

  [[nodiscard]] int get() const noexcept { return descriptor_; }

  void set(int level, int option) const {
    const int one = 1;
    if (::setsockopt(descriptor_, level, option, &one, sizeof one) != 0)
      fail("a socket option is refused");
  }

  // Returns the number of bytes, 0 at the end of the stream.
  [[nodiscard]] std::size_t receive(void* to, std::size_t size) const {
    const auto received = ::recv(descriptor_, to, size, 0);
    if (received < 0)
      fail("the connection broke");
    return static_cast<std::size_t>(received);
  }

  void receive_all(void* to, std::size_t size) const {
    auto* at = static_cast<char*>(to);
    while (size > 0) {
      const auto received = receive(at, size);
      if (received == 0)
        throw Failure(Exit::system, "the other end closed the connection");
      at += received;
      size -= received;
    }
  }

  void send_all(const void* from, std::size_t size) const {
    const auto* at = static_cast<const char*>(from);
    while (size > 0) {
      const auto sent = ::send(descriptor_, at, size, MSG_NOSIGNAL);
      if (sent < 0)
        fail("the connection broke");
      at += sent;
      size -= static_cast<std::size_t>(sent);
    }
  }

private:
  int descriptor_;
};

[[nodiscard]] sockaddr_in address_of(const std::string& text, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
    throw Failure(Exit::usage, "--to is '" + text + "': expected an IPv4 address");
  return address;
}

void echo(const Socket& peer) {
  char byte = 0;
  while (peer.receive(&byte, 1) == 1)
    peer.send_all(&byte, 1);
}

// What the kernel has received so far, read by us or not: a reader that waits for a CPU changes
// nothing.
[[nodiscard]] std::uint64_t received_so_far(const Socket& peer) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(peer.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    fail("the counters of a connection cannot be read");
  return info.tcpi_bytes_received;
}

// The sender says how long it sends, so that the start can be left out.
void count(const Socket& peer) {
  double for_s = 0.0;
  peer.receive_all(&for_s, sizeof for_s);
  std::vector<char> block(block_B);
  const auto begin = Clock::now();
  std::optional<Clock::time_point> from;
  std::uint64_t at_from = 0;
  Counted answer{};
  while (peer.receive(block.data(), block.size()) > 0) {
    const auto now = Clock::now();
    const double passed_s = seconds(now - begin);
    if (!from && passed_s >= not_counted * for_s) {
      from = now;
      at_from = received_so_far(peer);
    } else if (from && passed_s >= for_s) {
      answer = {received_so_far(peer) - at_from, seconds(now - *from)};
      break;
    }
  }
  peer.send_all(&answer, sizeof answer);
  while (peer.receive(block.data(), block.size()) > 0) {
  } // else the answer is lost: closing with unread data resets the connection
}

void serve(int port) {
  const Socket listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  listening.set(SOL_SOCKET, SO_REUSEADDR);
  const auto address = address_of("0.0.0.0", port);
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.get(), 16) != 0)
    fail("port " + std::to_string(port) + " cannot be used");
  for (;;) {
    const Socket peer(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    peer.set(IPPROTO_TCP, TCP_NODELAY);
    try {
      char wish = 0;
      if (peer.receive(&wish, 1) == 1)
        wish == asks_echo ? echo(peer) : count(peer);
    } catch (const Failure&) { // this client's; the next one may do better
    }
  }
}

// The other end may just be starting.
[[nodiscard]] Socket connected(const sockaddr_in& address, char wish) {
  const auto begin = Clock::now();
  for (;;) {
    Socket peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      peer.set(IPPROTO_TCP, TCP_NODELAY);
      peer.send_all(&wish, 1);
      return peer;
    }
    if (seconds(Clock::now() - begin) > connect_for_s)
      fail("no connection");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

[[nodiscard]] double median_round_trip_s(const sockaddr_in& address, int pings, double most_s) {
  const auto peer = connected(address, asks_echo);
  std::vector<double> trips;
  const auto begin = Clock::now();
  for (int k = -pings / 10; k < pings; ++k) {
    if (!trips.empty() && seconds(Clock::now() - begin) > most_s)
      break;
    char byte = 0;
    const auto trip = timed([&] {
      peer.send_all(&byte, 1);
      peer.receive_all(&byte, 1);
    });
    if (k >= 0)
      trips.push_back(trip.elapsed_s());
  }
  const auto middle = trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2);
  std::nth_element(trips.begin(), middle, trips.end());
  return *middle;
}

struct Sent {
  Counted counted;
  double late_s;
};

// `at_s` on CLOCK_MONOTONIC: several senders start together.
[[nodiscard]] Sent sent(const sockaddr_in& address, double for_s, double at_s) {
  const auto peer = connected(address, asks_count);
  const double early_s = at_s - seconds(Clock::now().time_since_epoch());
  if (early_s > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(early_s));
  peer.send_all(&for_s, sizeof for_s);
  const std::vector<char> block(block_B);
  pollfd ready{peer.get(), POLLIN | POLLOUT, 0};
  for (;;) { // the receiver decides when it has enough, and answers; it never waits for us
    if (::poll(&ready, 1, -1) < 0)
      fail("no answer");
    if (ready.revents & (POLLIN | POLLERR | POLLHUP))
      break;
    if (::send(peer.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
        errno != EAGAIN)
      fail("the connection broke");
  }
  Counted answer{};
  peer.receive_all(&answer, sizeof answer);
  const linger at_once{1, 0}; // what is still queued is of no use
  ::setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return {answer, at_s > 0 ? std::max(0.0, -early_s) : 0.0};
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("link_probe", argc, argv))
    return *status;
  Arguments arguments(argc, argv);
  if (arguments.find("--serve")) {
    const int port = arguments.number("--serve", 0, 1, 65535);
    arguments.finish();
    serve(port);
  }
  const std::string to(arguments.required("--to"));
  const auto address = address_of(to, arguments.number("--port", 0, 1, 65535));
  const double for_s = arguments.number("--for", 0.2, 0.001, 3600.0);
  const int pings = arguments.number("--pings", 100, 10, 1000000);
  const double at_s = arguments.number("--at", 0.0, 0.0, 1e12);
  arguments.finish();
  const double round_trip_s = median_round_trip_s(address, pings, for_s);
  const auto [counted, late_s] = sent(address, for_s, at_s);
  const auto answer = json::Object()
                          .add("round_trip_s", round_trip_s)
                          .add("bytes", counted.bytes)
                          .add("elapsed_s", counted.elapsed_s)
                          .add("late_s", late_s);
  std::printf("%s\n", answer.text().c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("link_probe", run, argc, argv);
}
