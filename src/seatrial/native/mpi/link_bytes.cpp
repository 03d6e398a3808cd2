// untimed: -O1
#include "mpi/link_bytes.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace seatrial::mpi {

namespace {

namespace fs = std::filesystem;

constexpr double word_bytes = 4;
constexpr int after_received = 7; // counters between the received and the sent bytes

[[nodiscard]] std::optional<double> number_in(const fs::path& file) {
  std::ifstream stream(file);
  double value = 0;
  if (stream >> value)
    return value;
  return std::nullopt;
}

void add_interfaces(LinkBytes& found) {
  std::ifstream stream("/proc/net/dev");
  if (!stream)
    found.unknown = "/proc/net/dev cannot be read";
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos)
      continue; // the two lines of headings
    std::string name;
    std::istringstream(line.substr(0, colon)) >> name;
    std::istringstream counters(line.substr(colon + 1));
    double received = 0;
    double sent = 0;
    counters >> received;
    for (int i = 0; i < after_received; ++i)
      counters >> sent;
    if (name != "lo" && counters >> sent) {
      found.received += received;
      found.sent += sent;
    }
  }
}

void add_port(LinkBytes& found, const fs::path& port) {
  const auto sent = number_in(port / "counters/port_xmit_data");
  const auto received = number_in(port / "counters/port_rcv_data");
  const auto sent_bytes = number_in(port / "hw_counters/tx_bytes");
  const auto received_bytes = number_in(port / "hw_counters/rx_bytes");
  if (sent && received) {
    found.sent += word_bytes * *sent;
    found.received += word_bytes * *received;
  } else if (sent_bytes && received_bytes) {
    found.sent += *sent_bytes;
    found.received += *received_bytes;
  } else {
    found.unknown = port.string() + " has no counters of bytes that can be read";
  }
}

void add_ports(LinkBytes& found) {
  std::error_code missing;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", missing)) {
    std::error_code none;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none))
      add_port(found, port.path());
  }
  const fs::directory_iterator slingshot("/sys/class/cxi", missing);
  if (!missing && slingshot != fs::directory_iterator())
    found.unknown = "the bytes of Slingshot adapters are not counted";
}

} // namespace

LinkBytes link_bytes() {
  LinkBytes found;
  add_interfaces(found);
  add_ports(found);
  return found;
}

} // namespace seatrial::mpi
