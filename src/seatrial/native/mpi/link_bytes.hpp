// The bytes that the network interfaces of this node have sent and received: proof that messages
// between nodes did not take another way.
//
// Counted are the interfaces of the kernel but lo (/proc/net/dev, proc_net(5)) and InfiniBand,
// Omni-Path and RoCE ports (Linux, Documentation/ABI/stable/sysfs-class-infiniband: words of four
// bytes), for Amazon's adapters the bytes in their hw_counters. Some bytes are counted by both: the
// sum is at least what passed. Adapters without such counters make it unknown.
#pragma once

#include <string>

namespace seatrial::mpi {

struct LinkBytes {
  double sent = 0;
  double received = 0;
  std::string unknown; // why they are not known; empty if they are
};

[[nodiscard]] LinkBytes link_bytes();

} // namespace seatrial::mpi
