// untimed: -O1
#include "mpi/link_counters.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace seatrial::mpi {

namespace {

namespace fs = std::filesystem;

// Every file is a request to the adapter, and there may be thousands of virtual ports.
constexpr std::size_t most_folders = 128;

// Parts of the names of the counters that are read; the others count traffic.
constexpr std::array parts{
    std::string_view{"err"},    std::string_view{"discard"},     std::string_view{"drop"},
    std::string_view{"downed"}, std::string_view{"missed"},      std::string_view{"wait"},
    std::string_view{"cnp"},    std::string_view{"ecn"},         std::string_view{"out_of_"},
    std::string_view{"pause"},  std::string_view{"link_error_"},
};

[[nodiscard]] bool is_read(const std::string& name) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// The entries of a folder, sorted; empty if it cannot be read.
[[nodiscard]] std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  std::ranges::sort(found);
  return found;
}

void add(LinkCounters& found, const std::string& port, const fs::path& folder) {
  for (const auto& file : entries(folder)) {
    const auto name = file.filename().string();
    if (!is_read(name))
      continue;
    std::ifstream stream(file);
    if (std::uint64_t value = 0; stream >> value)
      found[{port, name}] = value;
  }
}

// The counters of TCP that tell of lost or damaged packets: of this node's own network, also where
// nodes share a kernel.
constexpr std::array tcp_counters{
    std::string_view{"TcpRetransSegs"},         std::string_view{"TcpInErrs"},
    std::string_view{"TcpExtTCPDSACKRecvSegs"}, std::string_view{"TcpExtTCPOFOQueue"},
    std::string_view{"TcpExtTCPTimeouts"},      std::string_view{"TcpExtTCPLostRetransmit"},
    std::string_view{"TcpExtTCPSynRetrans"},
};

// A line of names and one of values for each protocol, both beginning with "Tcp:".
void add_protocols(LinkCounters& found, const fs::path& file) {
  std::ifstream stream(file);
  std::string names, values;
  while (std::getline(stream, names) && std::getline(stream, values)) {
    std::istringstream words(names), numbers(values);
    std::string protocol, same, name, number;
    words >> protocol;
    numbers >> same;
    if (protocol != same || protocol.empty())
      return;
    protocol.pop_back();
    while (words >> name && numbers >> number) {
      const auto counter = protocol + name;
      if (std::ranges::find(tcp_counters, counter) == tcp_counters.end())
        continue;
      std::istringstream digits(number);
      if (std::uint64_t value = 0; digits >> value)
        found[{"TCP", counter}] = value;
    }
  }
}

} // namespace

LinkCounters link_counters(const fs::path& root) {
  std::vector<std::pair<std::string, fs::path>> folders;
  for (const auto& device : entries(root / "sys/class/infiniband"))
    for (const auto& port : entries(device / "ports"))
      for (const char* kind : {"counters", "hw_counters"})
        folders.emplace_back(device.filename().string() + " port " + port.filename().string(),
                             port / kind);
  for (const auto& interface : entries(root / "sys/class/net")) {
    std::error_code error;
    if (fs::exists(interface / "device", error))
      folders.emplace_back(interface.filename().string(), interface / "statistics");
  }
  folders.resize(std::min(folders.size(), most_folders));
  LinkCounters found;
  for (const auto& [port, folder] : folders)
    add(found, port, folder);
  add_protocols(found, root / "proc/self/net/snmp");
  add_protocols(found, root / "proc/self/net/netstat");
  return found;
}

std::vector<LinkGrowth> grown(const LinkCounters& before, const LinkCounters& after) {
  std::vector<LinkGrowth> found;
  for (const auto& [place, value] : after)
    if (const auto earlier = before.find(place);
        earlier != before.end() && earlier->second != value)
      found.push_back(
          {place.first, place.second,
           value > earlier->second ? static_cast<std::int64_t>(value - earlier->second) : -1});
  return found;
}

std::string lines(const std::vector<LinkGrowth>& growths) {
  std::ostringstream text;
  for (const auto& [port, counter, grew_by] : growths)
    text << grew_by << ' ' << counter << ' ' << port << '\n';
  return text.str();
}

std::vector<LinkGrowth> growths(const std::string& lines) {
  std::vector<LinkGrowth> found;
  std::istringstream text(lines);
  for (LinkGrowth own;
       text >> own.grew_by >> own.counter && std::getline(text >> std::ws, own.port);)
    found.push_back(own);
  return found;
}

} // namespace seatrial::mpi
