// Counters of the links of this node that tell of errors, discards, congestion and retries: of
// InfiniBand, Omni-Path and RoCE ports (Linux, Documentation/ABI/stable/sysfs-class-infiniband) and
// of network interfaces that are hardware (Documentation/ABI/testing/sysfs-class-net-statistics);
// and those of TCP (Documentation/networking/snmp_counter.rst), named as nstat(8) does.
// What each of them means is in model/machine/link_counters.toml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace seatrial::mpi {

// Port ("mlx5_0 port 1", "eth0", "TCP") and counter -> value.
using LinkCounters = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// Never fails: what cannot be read is missing.
[[nodiscard]] LinkCounters link_counters(const std::filesystem::path& root = "/");

struct LinkGrowth {
  std::string port;
  std::string counter;
  std::int64_t grew_by; // negative: not known, the counter was reset in between
};

[[nodiscard]] std::vector<LinkGrowth> grown(const LinkCounters& before, const LinkCounters& after);

// As lines of text, and back.
[[nodiscard]] std::string lines(const std::vector<LinkGrowth>& growths);
[[nodiscard]] std::vector<LinkGrowth> growths(const std::string& lines);

} // namespace seatrial::mpi
