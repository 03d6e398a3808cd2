// The memory that messages are sent from and received in: the host's, or that of a CUDA device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "mpi/program.hpp"

namespace seatrial::mpi {

enum class Where { host, device, managed };

struct MemorySettings {
  explicit MemorySettings(Arguments& arguments);

  Where first;  // of the ranks that send, or of all
  Where second; // of those that receive
  bool huge_pages;
  std::vector<int> devices; // of each rank of a node, in turns; empty: all, in the driver's order
};

// The device of a rank, opened if its messages lie there.
class RankDevice;

// Two buffers of a rank.
class MessageMemory {
public:
  // Collective. `is_second`: this rank is one of those that `second` is for. Throws Unsupported on
  // all ranks if one has no device, or if this MPI does not take its memory.
  MessageMemory(const MemorySettings& settings, bool is_second, std::size_t bytes);
  ~MessageMemory();
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

  // As MPI takes them.
  [[nodiscard]] std::byte* sent() const noexcept;
  [[nodiscard]] std::byte* received() const noexcept;

  // The beginning of what is sent gets this pattern, that of what is received other bytes than this
  // one (pattern.hpp).
  void fill_sent(std::size_t bytes, std::uint64_t seed);
  void poison_received(std::size_t bytes, std::uint64_t seed);
  // The number of bytes received that differ from the pattern.
  [[nodiscard]] std::size_t wrong(std::size_t bytes, std::uint64_t seed);

  [[nodiscard]] std::string_view huge_verdict() const;
  // The device: its name and PCI address; empty if the buffers are in the host's memory.
  [[nodiscard]] std::string device() const;

private:
  class Buffer;

  std::unique_ptr<RankDevice> device_;
  std::unique_ptr<Buffer> sent_;
  std::unique_ptr<Buffer> received_;
};

// Collective: notes the pages of the host's memory, or the devices of the ranks.
void note_memory(Program& program, const MessageMemory& memory);

} // namespace seatrial::mpi
