// untimed: -O1
#include "mpi/message_memory.hpp"

#include <array>
#include <optional>
#include <span>

#include "device/cuda_api.hpp"
#include "device/cuda_context.hpp"
#include "failure.hpp"
#include "mpi/agreed.hpp"
#include "mpi/cuda_memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/rank_on_node.hpp"
#include "pages.hpp"
#include "unsupported.hpp"

namespace seatrial::mpi {

namespace cuda = device::cuda;

namespace {

Where where_named(std::string_view word) {
  return word == "device" ? Where::device : word == "managed" ? Where::managed : Where::host;
}

} // namespace

MemorySettings::MemorySettings(Arguments& arguments)
    : huge_pages(arguments.flag("--huge-pages", true)) {
  const auto words =
      arguments.choice("--buffers", "host",
                       {"host", "device", "managed", "host-device", "host-managed", "device-host",
                        "device-managed", "managed-host", "managed-device"});
  const auto between = words.find('-');
  first = where_named(words.substr(0, between));
  second = between == std::string_view::npos ? first : where_named(words.substr(between + 1));
  if (arguments.find("--message-devices"))
    devices = arguments.numbers<int>("--message-devices", 0, 1023);
}

class RankDevice {
public:
  explicit RankDevice(const std::vector<int>& wanted, int rank_on_node)
      : ordinal_(chosen(wanted, rank_on_node)), context_(api_, ordinal_) {
    context_.enter();
    constexpr unsigned non_blocking = 1;
    api_.create_stream(&stream_, non_blocking);
  }
  ~RankDevice() {
    if (context_.try_enter())
      static_cast<void>(api_.destroy_stream.status(stream_));
  }
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  [[nodiscard]] cuda::Address allocate(std::size_t bytes, Where where) {
    constexpr unsigned global = 1; // CU_MEM_ATTACH_GLOBAL
    constexpr int out_of_memory = 2;
    cuda::Address address = 0;
    context_.enter();
    try {
      if (where == Where::managed)
        api_.allocate_managed(&address, bytes, global);
      else
        api_.allocate(&address, bytes);
    } catch (const device::CallFailed& failed) {
      if (failed.code() != out_of_memory)
        throw;
      throw Skip(name() + " cannot allocate " + std::to_string(bytes >> 10) + " KiB");
    }
    return address;
  }
  void free(cuda::Address address) noexcept {
    if (context_.try_enter())
      static_cast<void>(api_.free.status(address));
  }
  void write(cuda::Address to, const std::vector<std::byte>& from, std::size_t bytes) {
    context_.enter();
    api_.write(to, from.data(), bytes, stream_);
    api_.wait_stream(stream_);
  }
  void read(std::vector<std::byte>& to, cuda::Address from, std::size_t bytes) {
    context_.enter();
    api_.read(to.data(), from, bytes, stream_);
    api_.wait_stream(stream_);
  }

  [[nodiscard]] std::string name() const {
    std::array<char, 256> name{};
    std::array<char, 64> pci{};
    api_.device_name(name.data(), static_cast<int>(name.size()) - 1, ordinal_);
    api_.device_pci(pci.data(), static_cast<int>(pci.size()) - 1, ordinal_);
    return std::string(name.data()) + " at " + pci.data();
  }

private:
  // A rank beyond the last device shares one with another rank.
  [[nodiscard]] int chosen(const std::vector<int>& wanted, int rank_on_node) const {
    int count = 0;
    api_.device_count(&count);
    if (count == 0)
      throw Unsupported("device", "the CUDA driver reports no device");
    int index = rank_on_node % count;
    if (!wanted.empty())
      index = wanted[static_cast<std::size_t>(rank_on_node) % wanted.size()];
    if (index >= count)
      throw Unsupported("device", "no device " + std::to_string(index) + ": the CUDA driver has " +
                                      std::to_string(count));
    int ordinal = 0;
    api_.device(&ordinal, index);
    return ordinal;
  }

  cuda::Api api_;
  int ordinal_;
  cuda::Context context_;
  cuda::Handle stream_ = nullptr;
};

class MessageMemory::Buffer {
public:
  Buffer(RankDevice* device, Where where, std::size_t bytes, bool huge_pages) : device_(device) {
    if (where == Where::host) {
      pages_.emplace(bytes, huge_pages);
      return;
    }
    address_ = device->allocate(bytes, where);
    mirror_.resize(bytes);
  }
  ~Buffer() {
    if (address_ != 0)
      device_->free(address_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* address() const noexcept {
    return pages_ ? pages_->data() : reinterpret_cast<std::byte*>(address_);
  }
  [[nodiscard]] std::string_view huge_verdict() const {
    return pages_ ? pages_->huge_verdict() : "not the host's memory";
  }

  // Changes its beginning on the host.
  template <class Change>
  void change(std::size_t bytes, Change change) {
    change(std::span(on_host(), bytes));
    if (!pages_ && bytes > 0)
      device_->write(address_, mirror_, bytes);
  }
  [[nodiscard]] std::span<const std::byte> contents(std::size_t bytes) {
    if (!pages_ && bytes > 0)
      device_->read(mirror_, address_, bytes);
    return {on_host(), bytes};
  }

private:
  [[nodiscard]] std::byte* on_host() noexcept { return pages_ ? pages_->data() : mirror_.data(); }

  RankDevice* device_;
  std::optional<Pages> pages_;
  cuda::Address address_ = 0;
  std::vector<std::byte> mirror_;
};

MessageMemory::MessageMemory(const MemorySettings& settings, bool is_second, std::size_t bytes) {
  const auto where = is_second ? settings.second : settings.first;
  if (settings.first != Where::host || settings.second != Where::host) {
    const int own = rank_on_node(); // collective
    device_ = on_all_ranks([&]() -> std::unique_ptr<RankDevice> {
      if (where == Where::host)
        return nullptr;
      require_cuda_memory();
      return std::make_unique<RankDevice>(settings.devices, own);
    });
  }
  const auto make = [&] {
    return std::make_unique<Buffer>(device_.get(), where, bytes, settings.huge_pages);
  };
  sent_ = on_all_ranks(make);
  received_ = on_all_ranks(make);
}

MessageMemory::~MessageMemory() = default;

std::byte* MessageMemory::sent() const noexcept {
  return sent_->address();
}

std::byte* MessageMemory::received() const noexcept {
  return received_->address();
}

void MessageMemory::fill_sent(std::size_t bytes, std::uint64_t seed) {
  sent_->change(bytes, [seed](std::span<std::byte> data) { fill(data, seed); });
}

void MessageMemory::poison_received(std::size_t bytes, std::uint64_t seed) {
  received_->change(bytes, [seed](std::span<std::byte> data) { poison(data, seed); });
}

std::size_t MessageMemory::wrong(std::size_t bytes, std::uint64_t seed) {
  return wrong_bytes(received_->contents(bytes), seed);
}

std::string_view MessageMemory::huge_verdict() const {
  return sent_->huge_verdict();
}

std::string MessageMemory::device() const {
  return device_ ? device_->name() : "";
}

void note_memory(Program& program, const MessageMemory& memory) {
  program.note("huge_pages", memory.huge_verdict());
  const auto mine = memory.device();
  const auto all = gather_lists(std::vector<char>(mine.begin(), mine.end()));
  std::vector<std::string> devices;
  bool has_any = false;
  for (const auto& one : all) {
    devices.emplace_back(one.begin(), one.end());
    has_any = has_any || !one.empty();
  }
  if (has_any)
    program.note("message_devices", devices);
}

} // namespace seatrial::mpi
