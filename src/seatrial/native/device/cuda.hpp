// The CUDA backend: the driver API, and NVRTC to compile kernels at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_api.hpp"
#include "device/cuda_context.hpp"
#include "device/cuda_image.hpp"
#include "device/device.hpp"
#include "device/nvrtc.hpp"
#include "device/out_of_memory.hpp"

namespace seatrial::device::cuda {

class CudaMemory : public Memory {
public:
  CudaMemory(const Context& context, std::size_t bytes, Where where)
      : Memory(bytes), context_(context), where_(where) {
    constexpr unsigned portable = 1; // CU_MEMHOSTALLOC_PORTABLE: pinned for every device
    constexpr unsigned mapped = 2;   // CU_MEMHOSTALLOC_DEVICEMAP
    constexpr unsigned global = 1;   // CU_MEM_ATTACH_GLOBAL
    context_.enter();
    const auto& api = context_.api();
    switch (where) {
    case Where::device:
      api.allocate(&address_, bytes);
      break;
    case Where::managed:
      api.allocate_managed(&address_, bytes, global);
      host_ = reinterpret_cast<void*>(address_);
      break;
    case Where::pinned:
    case Where::mapped:
      api.allocate_host(&host_, bytes, where == Where::mapped ? portable | mapped : portable);
      if (where == Where::mapped)
        api.address_of_host(&address_, host_, 0);
    }
  }
  ~CudaMemory() override {
    if (!context_.try_enter())
      return;
    if (where_ == Where::pinned || where_ == Where::mapped)
      static_cast<void>(context_.api().free_host.status(host_));
    else
      static_cast<void>(context_.api().free.status(address_));
  }

  [[nodiscard]] void* host() const noexcept override { return host_; }
  [[nodiscard]] Address address() const noexcept { return address_; }
  [[nodiscard]] const Context& context() const noexcept { return context_; }

private:
  const Context& context_;
  Where where_;
  Address address_ = 0;
  void* host_ = nullptr;
};

[[nodiscard]] inline const CudaMemory& ours(const Memory& memory) {
  return static_cast<const CudaMemory&>(memory);
}

class CudaKernel : public KernelHandle {
public:
  CudaKernel(const Api& api, Handle module, const std::string& name) : api_(api) {
    api_.function(&handle_, module, name.c_str());
  }

  [[nodiscard]] Resources resources() const override {
    const auto of = [&](int attribute) {
      int value = 0;
      api_.function_attribute(&value, attribute, handle_);
      return static_cast<unsigned>(value);
    };
    return {.registers = of(attribute::function_registers),
            .spilled = of(attribute::function_spilled),
            .local = of(attribute::function_local)};
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  const Api& api_;
  Handle handle_ = nullptr;
};

class CudaModule : public Module {
public:
  CudaModule(const Context& context, std::span<const char> code) : context_(context) {
    context_.enter();
    context_.api().load(&handle_, code.data());
  }
  ~CudaModule() override {
    if (context_.try_enter())
      static_cast<void>(context_.api().unload.status(handle_));
  }

  [[nodiscard]] std::unique_ptr<KernelHandle> kernel(const std::string& name) override {
    context_.enter();
    return std::make_unique<CudaKernel>(context_.api(), handle_, name);
  }

private:
  const Context& context_;
  Handle handle_ = nullptr;
};

class CudaMark : public Mark {
public:
  CudaMark(const Context& context, Handle stream) : context_(context) {
    context_.api().create_event(&handle_, 0);
    context_.api().record(handle_, stream);
  }
  ~CudaMark() override {
    if (context_.try_enter())
      static_cast<void>(context_.api().destroy_event.status(handle_));
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  const Context& context_;
  Handle handle_ = nullptr;
};

class CudaQueue : public Queue {
public:
  explicit CudaQueue(const Context& context) : context_(context), api_(context.api()) {
    constexpr unsigned non_blocking = 1; // does not synchronise with the default stream
    context_.enter();
    api_.create_stream(&stream_, non_blocking);
  }
  ~CudaQueue() override {
    if (context_.try_enter())
      static_cast<void>(api_.destroy_stream.status(stream_));
  }

  void write(Memory& to, std::size_t at, const void* from, std::size_t bytes) override {
    context_.enter();
    api_.write(ours(to).address() + at, from, bytes, stream_);
  }

  void read(void* to, const Memory& from, std::size_t at, std::size_t bytes) override {
    context_.enter();
    api_.read(to, ours(from).address() + at, bytes, stream_);
  }

  void write_rows(Memory& to, const void* from, const Rectangle& rectangle) override {
    copy_rows({.memory = image::on_host, .host = from, .pitch = rectangle.host_pitch},
              in_device(to, rectangle), rectangle);
  }
  void read_rows(void* to, const Memory& from, const Rectangle& rectangle) override {
    copy_rows(in_device(from, rectangle),
              {.memory = image::on_host, .host = to, .pitch = rectangle.host_pitch}, rectangle);
  }

  void copy(Memory& to, std::size_t to_at, const Memory& from, std::size_t from_at,
            std::size_t bytes) override {
    context_.enter();
    const auto& target = ours(to);
    const auto& source = ours(from);
    if (&target.context() == &source.context())
      api_.copy(target.address() + to_at, source.address() + from_at, bytes, stream_);
    else
      api_.copy_peer(target.address() + to_at, target.context().handle(),
                     source.address() + from_at, source.context().handle(), bytes, stream_);
  }

  void fill(Memory& to, std::size_t at, std::uint32_t pattern, std::size_t bytes) override {
    context_.enter();
    api_.fill(ours(to).address() + at, pattern, bytes / sizeof pattern, stream_);
  }

  void launch(KernelHandle& kernel, const Grid& grid,
              std::span<const Argument> arguments) override {
    constexpr std::size_t most = 32;
    std::array<std::uint64_t, most> values;
    std::array<void*, most> addresses;
    if (arguments.size() > most)
      throw Failure(Exit::software, "a kernel with more than 32 arguments");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& argument = arguments[i];
      values[i] = argument.memory != nullptr  ? ours(*argument.memory).address()
                  : argument.image != nullptr ? ours(*argument.image).handle()
                                              : argument.bits;
      addresses[i] = &values[i];
    }
    context_.enter();
    api_.launch(static_cast<CudaKernel&>(kernel).handle(), grid.groups, grid.groups_y, 1,
                grid.items, grid.items_y, 1, 0, stream_, addresses.data(), nullptr);
  }

  [[nodiscard]] std::unique_ptr<Mark> mark() override {
    context_.enter();
    return std::make_unique<CudaMark>(context_, stream_);
  }

  void wait_for(const Mark& mark) override {
    context_.enter();
    api_.stream_wait_event(stream_, static_cast<const CudaMark&>(mark).handle(), 0);
  }

  [[nodiscard]] double seconds_between(const Mark& earlier, const Mark& later) override {
    context_.enter();
    const auto first = static_cast<const CudaMark&>(earlier).handle();
    const auto last = static_cast<const CudaMark&>(later).handle();
    api_.wait_event(last);
    float milliseconds = 0;
    api_.elapsed_ms(&milliseconds, first, last);
    return 1e-3 * static_cast<double>(milliseconds);
  }

  // For libraries that use its stream and context.
  [[nodiscard]] Handle enter() const {
    context_.enter();
    return stream_;
  }
  [[nodiscard]] bool try_enter() const noexcept { return context_.try_enter(); }

  void flush() override {} // a stream starts work at once
  void finish() override {
    context_.enter();
    api_.wait_stream(stream_);
  }

private:
  [[nodiscard]] static End2D in_device(const Memory& memory, const Rectangle& rectangle) {
    return {.memory = image::on_device,
            .device = ours(memory).address() + rectangle.at,
            .pitch = rectangle.pitch};
  }
  void copy_rows(const End2D& from, const End2D& to, const Rectangle& rectangle) {
    const Copy2D copy = {
        .from = from, .to = to, .width_bytes = rectangle.bytes, .height = rectangle.rows};
    context_.enter();
    api_.copy_2d_async(&copy, stream_);
  }

  const Context& context_;
  const Api& api_;
  Handle stream_ = nullptr;
};

class CudaDevice : public Device {
public:
  CudaDevice(const Api& api, int index, std::string nvrtc)
      : api_(api), ordinal_(ordinal_of(api, index)), facts_(facts_of(api, index, ordinal_)),
        nvrtc_path_(std::move(nvrtc)) {}

  [[nodiscard]] const Facts& facts() const noexcept override { return facts_; }

  [[nodiscard]] std::uint64_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    context().enter();
    api_.memory_info(&free, &total);
    return free;
  }

  [[nodiscard]] std::unique_ptr<Memory> allocate(std::size_t bytes, Where where) override {
    constexpr int out_of_memory = 2;
    return or_out_of_memory(facts_, bytes, {out_of_memory}, [&]() -> std::unique_ptr<Memory> {
      return std::make_unique<CudaMemory>(context(), bytes, where);
    });
  }

  [[nodiscard]] std::unique_ptr<Image> image(std::size_t width, std::size_t height,
                                             std::span<const float> texels) override {
    return std::make_unique<CudaImage>(context(), width, height, texels);
  }

  [[nodiscard]] std::unique_ptr<Queue> queue() override {
    return std::make_unique<CudaQueue>(context());
  }

  [[nodiscard]] std::unique_ptr<Module> build(const Source& source) override {
    if (!nvrtc_)
      nvrtc_.emplace(nvrtc_path_);
    const auto compiled = nvrtc_->compile(source, facts_.capability);
    return std::make_unique<CudaModule>(context(), compiled.code);
  }

  [[nodiscard]] bool can_reach(const Device& other) const override {
    const auto* peer = dynamic_cast<const CudaDevice*>(&other);
    int answer = 0;
    if (peer != nullptr && peer != this)
      api_.can_access(&answer, ordinal_, peer->ordinal_);
    return answer != 0;
  }

  void reach(const Device& other, bool is_on) override {
    constexpr int already_on = 704;  // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    constexpr int already_off = 705; // CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    const auto peer = static_cast<const CudaDevice&>(other).context().handle();
    context().enter();
    try {
      if (is_on)
        api_.enable_peer(peer, 0);
      else
        api_.disable_peer(peer);
    } catch (const CallFailed& failed) {
      if (failed.code() != (is_on ? already_on : already_off))
        throw;
    }
  }

private:
  [[nodiscard]] static int ordinal_of(const Api& api, int index) {
    int ordinal = 0;
    api.device(&ordinal, index);
    return ordinal;
  }

  [[nodiscard]] static Facts facts_of(const Api& api, int index, int ordinal) {
    const auto of = [&](int attribute) {
      int value = 0;
      api.attribute(&value, attribute, ordinal);
      return static_cast<unsigned>(value);
    };
    std::array<char, 256> name{};
    api.device_name(name.data(), static_cast<int>(name.size()) - 1, ordinal);
    std::array<char, 64> pci{};
    api.device_pci(pci.data(), static_cast<int>(pci.size()) - 1, ordinal);
    std::size_t memory = 0;
    api.device_memory(&memory, ordinal);
    int version = 0;
    api.driver_version(&version);
    Facts facts;
    facts.backend = "cuda";
    facts.index = index;
    facts.name = name.data();
    facts.vendor = "NVIDIA";
    facts.driver =
        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    facts.pci = pci.data();
    facts.memory_bytes = memory;
    facts.cache_bytes = of(attribute::cache_bytes);
    facts.local_bytes = of(attribute::local_bytes);
    facts.compute_units = of(attribute::multiprocessors);
    facts.warp = of(attribute::warp);
    facts.largest_group = of(attribute::max_group);
    facts.clock_Hz = 1e3 * of(attribute::clock_kHz);
    facts.memory_clock_Hz = 1e3 * of(attribute::memory_clock_kHz);
    facts.memory_bus_bits = of(attribute::bus_bits);
    facts.capability = static_cast<int>(10 * of(attribute::major) + of(attribute::minor));
    facts.copy_engines = of(attribute::copy_engines);
    facts.has_fp64 = true;
    facts.shares_memory_with_host = of(attribute::integrated) != 0;
    return facts;
  }

  // Created on first use: a context takes time and device memory.
  [[nodiscard]] const Context& context() const {
    if (!context_)
      context_.emplace(api_, ordinal_);
    return *context_;
  }

  const Api& api_;
  int ordinal_;
  Facts facts_;
  std::string nvrtc_path_;
  std::optional<Nvrtc> nvrtc_;
  mutable std::optional<Context> context_;
};

[[nodiscard]] inline int device_count(const Api& api) {
  int count = 0;
  api.device_count(&count);
  return count;
}

} // namespace seatrial::device::cuda
