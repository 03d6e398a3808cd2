// link_probe: the rate and the round trip that a network path gives to TCP.
//
//   link_probe --serve PORT
//   link_probe --to ADDRESS --port PORT --for SECONDS --pings N
// The second form connects to the first, twice. The first connection carries N round trips of one
// byte, after a tenth of them as warm-up, and their median is `round_trip_s`. On the second one it
// sends for so many seconds; the receiver counts. The start is not counted: until then TCP opens
// its window, and a token bucket lets its burst pass. `bytes` arrived in `elapsed_s`, so their
// quotient is the rate of the payload; headers are not in it. It prints one JSON object.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arguments.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "json.hpp"

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

// The sender says how long it sends, so that the start can be left out.
void count(const Socket& peer) {
  double seconds_sent = 0.0;
  peer.receive_all(&seconds_sent, sizeof seconds_sent);
  std::vector<char> block(block_B);
  const auto begin = Clock::now();
  auto from = begin;
  auto last = begin;
  std::uint64_t counted = 0;
  while (const auto size = peer.receive(block.data(), block.size())) {
    last = Clock::now();
    if (seconds(last - begin) < not_counted * seconds_sent) {
      from = last;
      continue;
    }
    if (seconds(last - begin) <= seconds_sent)
      counted += size;
    else
      break; // what is still in queues
  }
  const Counted answer{counted, seconds(last - from)};
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

[[nodiscard]] double median_round_trip_s(const sockaddr_in& address, int pings) {
  const auto peer = connected(address, asks_echo);
  std::vector<double> trips;
  for (int k = -pings / 10; k < pings; ++k) {
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

[[nodiscard]] Counted received(const sockaddr_in& address, double for_s) {
  const auto peer = connected(address, asks_count);
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
  return answer;
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
  arguments.finish();
  const double round_trip_s = median_round_trip_s(address, pings);
  const auto [bytes, elapsed_s] = received(address, for_s);
  const auto answer = json::Object()
                          .add("round_trip_s", round_trip_s)
                          .add("bytes", bytes)
                          .add("elapsed_s", elapsed_s);
  std::printf("%s\n", answer.text().c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "link_probe: %s\n", failure.what());
    return static_cast<int>(failure.status());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "link_probe: %s\n", error.what());
    return static_cast<int>(Exit::software);
  }
}
