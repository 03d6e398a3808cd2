// The OpenCL backend, version 1.2 and later, through the ICD loader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/dialect.hpp"
#include "device/opencl_api.hpp"
#include "device/opencl_context.hpp"
#include "device/opencl_image.hpp"
#include "device/out_of_memory.hpp"

namespace seatrial::device::opencl {

// Host-accessible memory stays mapped except while a kernel uses it.
class OpenClMemory : public Memory {
public:
  OpenClMemory(const Context& context, std::size_t bytes, Where where)
      : Memory(bytes), context_(context) {
    const auto& api = context_.api();
    const bool is_of_host = where != Where::device;
    if (where == Where::managed)
      throw Unsupported("managed memory", "OpenCL 1.2 has no managed memory");
    handle_ = api.create_buffer(context_.handle(),
                                constant::read_write | (is_of_host ? constant::host_memory : 0),
                                bytes, nullptr);
    if (!is_of_host)
      return;
    queue_ = api.create_queue(context_.handle(), context_.device(), 0);
    host_ = api.map(queue_, handle_, 1, constant::map_both, 0, bytes, 0, nullptr, nullptr);
  }
  ~OpenClMemory() override {
    const auto& api = context_.api();
    if (queue_ != nullptr) {
      static_cast<void>(api.unmap.status(queue_, handle_, host_, 0, nullptr, nullptr));
      static_cast<void>(api.finish.status(queue_));
      static_cast<void>(api.release_queue.status(queue_));
    }
    static_cast<void>(api.release_memory.status(handle_));
  }

  [[nodiscard]] void* host() const noexcept override { return host_; }
  [[nodiscard]] Handle handle() const noexcept { return handle_; }

  void unmap_for(Handle queue) const {
    if (host_ != nullptr)
      context_.api().unmap(queue, handle_, host_, 0, nullptr, nullptr);
  }
  void take_from(Handle queue) const {
    if (host_ != nullptr)
      host_ = context_.api().map(queue, handle_, 0, constant::map_both, 0, bytes(), 0, nullptr,
                                 nullptr);
  }

private:
  const Context& context_;
  Handle handle_ = nullptr;
  Handle queue_ = nullptr;
  mutable void* host_ = nullptr;
};

[[nodiscard]] inline const OpenClMemory& ours(const Memory& memory) {
  return static_cast<const OpenClMemory&>(memory);
}

class OpenClKernel : public KernelHandle {
public:
  OpenClKernel(const Context& context, Handle program, const std::string& name)
      : context_(context), handle_(context.api().create_kernel(program, name.c_str())) {}
  ~OpenClKernel() override { static_cast<void>(context_.api().release_kernel.status(handle_)); }

  // OpenCL does not report registers; spills appear as private memory.
  [[nodiscard]] Resources resources() const override {
    const auto of = [&](unsigned what) {
      std::uint64_t value = 0;
      context_.api().group_info(handle_, context_.device(), what, sizeof value, &value, nullptr);
      return value;
    };
    return {
        .registers = 0, .spilled = of(constant::used_private), .local = of(constant::used_local)};
  }

  // Throws Failure if the source's declaration differs.
  void check(const Declaration& declaration, const std::string& real) const {
    unsigned count = 0;
    const auto& api = context_.api();
    api.kernel_info(handle_, constant::parameters, sizeof count, &count, nullptr);
    std::string seen;
    std::string wanted;
    for (const auto& type : declaration.types)
      wanted.append(wanted.empty() ? "" : ", ").append(type);
    for (unsigned i = 0; i < count; ++i)
      seen.append(seen.empty() ? "" : ", ").append(parameter(i, real));
    if (seen != wanted)
      throw Failure(Exit::software, declaration.name + " takes " + seen + ", not " + wanted);
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  // The type of a parameter in the dialect.
  [[nodiscard]] std::string parameter(unsigned i, const std::string& real) const {
    const auto& ask = context_.api().argument_info;
    unsigned space = 0;
    Flags qualifiers = 0;
    ask(handle_, i, constant::address_space, sizeof space, &space, nullptr);
    ask(handle_, i, constant::qualifiers, sizeof qualifiers, &qualifiers, nullptr);
    auto type = text_of(ask, handle_, i, constant::type_text);
    const bool is_pointer = type.ends_with('*');
    if (is_pointer)
      type.pop_back();
    for (const auto& [theirs, name] : {std::pair<std::string, std::string>{"real", real},
                                       {"uint", "u32"},
                                       {"ulong", "u64"},
                                       {"image2d_t", "TEXTURE"},
                                       {"long", "i64"}})
      if (type == theirs)
        type = name;
    if (!is_pointer)
      return type;
    if (space != constant::in_global)
      return "a pointer to another address space";
    return ((qualifiers & constant::is_const) != 0 ? "const " : "") + type + "*";
  }

  const Context& context_;
  Handle handle_;
};

class OpenClModule : public Module {
public:
  OpenClModule(const Context& context, const Source& source) : context_(context) {
    const auto& api = context_.api();
    const std::string text = std::string(seatrial_dialect_opencl()) +
                             std::string(seatrial_dialect_common()) + std::string(source.shared) +
                             "#line 1 \"" + source.name + "\"\n" + std::string(source.text);
    const char* start = text.data();
    const std::size_t length = text.size();
    program_ = api.create_program(context_.handle(), 1, &start, &length);
    std::string options = "-cl-std=CL1.2 -cl-kernel-arg-info";
    for (const auto& define : source.defines)
      options.append(" -D").append(define);
    if (!source.is_optimised)
      options.append(" -cl-opt-disable");
    const auto device = context_.device();
    const int status =
        api.build_program.status(program_, 1, &device, options.c_str(), nullptr, nullptr);
    if (status == constant::build_failed)
      throw Failure(Exit::software,
                    source.name + " does not compile:\n" +
                        text_of(api.build_info, program_, context_.device(), constant::log));
    if (status != 0)
      throw CallFailed("clBuildProgram returned " + std::to_string(status) + " (" +
                           api.meaning(status) + ") for " + source.name,
                       status);
    for (const auto& declaration : source.kernels)
      OpenClKernel(context_, program_, declaration.name).check(declaration, real_of(source));
  }
  ~OpenClModule() override { static_cast<void>(context_.api().release_program.status(program_)); }

  [[nodiscard]] std::unique_ptr<KernelHandle> kernel(const std::string& name) override {
    return std::make_unique<OpenClKernel>(context_, program_, name);
  }

private:
  // The type behind the dialect's `real`.
  [[nodiscard]] static std::string real_of(const Source& source) {
    for (const auto& define : source.defines)
      if (define.starts_with("REAL="))
        return define.substr(5);
    return "real";
  }

  const Context& context_;
  Handle program_ = nullptr;
};

class OpenClMark : public Mark {
public:
  OpenClMark(const Api& api, Handle queue) : api_(api) { api_.marker(queue, 0, nullptr, &event_); }
  ~OpenClMark() override { static_cast<void>(api_.release_event.status(event_)); }

  // Time on the device's clock; waits for this marker.
  [[nodiscard]] const Handle& event() const noexcept { return event_; }
  [[nodiscard]] double since(const OpenClMark& earlier) const {
    api_.wait(1, &event_);
    return 1e-9 * static_cast<double>(at() - earlier.at());
  }

private:
  [[nodiscard]] std::int64_t at() const {
    std::int64_t nanoseconds = 0;
    api_.event_time(event_, constant::ended_at, sizeof nanoseconds, &nanoseconds, nullptr);
    return nanoseconds;
  }

  const Api& api_;
  Handle event_ = nullptr;
};

class OpenClQueue : public Queue {
public:
  explicit OpenClQueue(const Context& context)
      : api_(context.api()),
        queue_(api_.create_queue(context.handle(), context.device(), constant::profiling)) {}
  ~OpenClQueue() override {
    static_cast<void>(api_.finish.status(queue_));
    static_cast<void>(api_.release_queue.status(queue_));
  }

  void write(Memory& to, std::size_t at, const void* from, std::size_t bytes) override {
    api_.write(queue_, ours(to).handle(), 0, at, bytes, from, 0, nullptr, nullptr);
  }
  void read(void* to, const Memory& from, std::size_t at, std::size_t bytes) override {
    api_.read(queue_, ours(from).handle(), 0, at, bytes, to, 0, nullptr, nullptr);
  }
  void write_rows(Memory& to, const void* from, const Rectangle& rectangle) override {
    copy_rows(api_.write_rectangle, ours(to).handle(), from, rectangle);
  }
  void read_rows(void* to, const Memory& from, const Rectangle& rectangle) override {
    copy_rows(api_.read_rectangle, ours(from).handle(), to, rectangle);
  }
  void copy(Memory& to, std::size_t to_at, const Memory& from, std::size_t from_at,
            std::size_t bytes) override {
    api_.copy(queue_, ours(from).handle(), ours(to).handle(), from_at, to_at, bytes, 0, nullptr,
              nullptr);
  }
  void fill(Memory& to, std::size_t at, std::uint32_t pattern, std::size_t bytes) override {
    api_.fill(queue_, ours(to).handle(), &pattern, sizeof pattern, at, bytes, 0, nullptr, nullptr);
  }

  void launch(KernelHandle& kernel, const Grid& grid,
              std::span<const Argument> arguments) override {
    const auto handle = static_cast<OpenClKernel&>(kernel).handle();
    for (unsigned i = 0; i < arguments.size(); ++i) {
      const auto& argument = arguments[i];
      if (argument.image != nullptr) {
        const auto image = ours(*argument.image).handle();
        api_.set_argument(handle, i, sizeof image, &image);
        continue;
      }
      if (argument.memory == nullptr) {
        api_.set_argument(handle, i, argument.size, &argument.bits);
        continue;
      }
      const auto memory = ours(*argument.memory).handle();
      api_.set_argument(handle, i, sizeof memory, &memory);
      ours(*argument.memory).unmap_for(queue_);
    }
    const std::array<std::size_t, 2> group = {grid.items, grid.items_y};
    const std::array<std::size_t, 2> all = {static_cast<std::size_t>(grid.groups) * grid.items,
                                            static_cast<std::size_t>(grid.groups_y) * grid.items_y};
    api_.launch(queue_, handle, 2, nullptr, all.data(), group.data(), 0, nullptr, nullptr);
    for (const auto& argument : arguments)
      if (argument.memory != nullptr)
        ours(*argument.memory).take_from(queue_);
  }

  [[nodiscard]] std::unique_ptr<Mark> mark() override {
    return std::make_unique<OpenClMark>(api_, queue_);
  }
  void wait_for(const Mark& mark) override {
    api_.barrier(queue_, 1, &static_cast<const OpenClMark&>(mark).event(), nullptr);
  }
  [[nodiscard]] double seconds_between(const Mark& earlier, const Mark& later) override {
    return static_cast<const OpenClMark&>(later).since(static_cast<const OpenClMark&>(earlier));
  }
  [[nodiscard]] Handle handle() const noexcept { return queue_; }

  void flush() override { api_.flush(queue_); }
  void finish() override { api_.finish(queue_); }

private:
  template <class Pointer>
  void copy_rows(const Api::CopyRectangle<Pointer>& call, Handle buffer, Pointer host,
                 const Rectangle& rectangle) {
    const std::array<std::size_t, 3> origin = {rectangle.at % rectangle.pitch,
                                               rectangle.at / rectangle.pitch, 0};
    const std::array<std::size_t, 3> host_origin{};
    const std::array<std::size_t, 3> region = {rectangle.bytes, rectangle.rows, 1};
    call(queue_, buffer, 0, origin.data(), host_origin.data(), region.data(), rectangle.pitch, 0,
         rectangle.host_pitch, 0, host, 0, nullptr, nullptr);
  }

  const Api& api_;
  Handle queue_;
};

class OpenClDevice : public Device {
public:
  OpenClDevice(const Api& api, int index, Handle platform, Handle device, bool is_as_gpu)
      : api_(api), platform_(platform), device_(device), facts_(facts_of(api, index, device)) {
    if (is_as_gpu)
      facts_.is_cpu = false;
  }

  [[nodiscard]] const Facts& facts() const noexcept override { return facts_; }
  // OpenCL does not report free memory.
  [[nodiscard]] std::uint64_t free_bytes() const override { return facts_.memory_bytes; }
  [[nodiscard]] std::unique_ptr<Memory> allocate(std::size_t bytes, Where where) override {
    // The buffer is too large, the device or its host memory is full, or allocation failed.
    return or_out_of_memory(facts_, bytes, {-61, -4, -5, -6}, [&]() -> std::unique_ptr<Memory> {
      return std::make_unique<OpenClMemory>(context(), bytes, where);
    });
  }
  [[nodiscard]] std::unique_ptr<Image> image(std::size_t width, std::size_t height,
                                             std::span<const float> texels) override {
    return std::make_unique<OpenClImage>(context(), width, height, texels);
  }
  [[nodiscard]] std::unique_ptr<Queue> queue() override {
    return std::make_unique<OpenClQueue>(context());
  }
  [[nodiscard]] std::unique_ptr<Module> build(const Source& source) override {
    return std::make_unique<OpenClModule>(context(), source);
  }
  [[nodiscard]] bool can_reach(const Device&) const override { return false; }
  void reach(const Device&, bool) override {
    throw Unsupported("peer access", "OpenCL has no peer access between devices");
  }

private:
  [[nodiscard]] static Facts facts_of(const Api& api, int index, Handle device) {
    const auto number = [&]<class Number>(unsigned what, Number otherwise) {
      Number value{};
      return api.device_info.status(device, what, sizeof value, &value, nullptr) == 0 ? value
                                                                                      : otherwise;
    };
    Facts facts;
    facts.backend = "opencl";
    facts.index = index;
    facts.name = text_of(api.device_info, device, constant::name);
    facts.vendor = text_of(api.device_info, device, constant::vendor);
    facts.driver = text_of(api.device_info, device, constant::driver);
    facts.memory_bytes = number(constant::memory_bytes, std::uint64_t{0});
    facts.cache_bytes = number(constant::cache_bytes, std::uint64_t{0});
    facts.local_bytes = number(constant::local_bytes, std::uint64_t{0});
    facts.compute_units = number(constant::compute_units, 0U);
    facts.largest_group = static_cast<unsigned>(number(constant::largest_group, std::size_t{0}));
    facts.warp = number(constant::warp_nv, 0U);
    facts.clock_Hz = 1e6 * number(constant::clock_MHz, 0U);
    facts.capability = static_cast<int>(10 * number(constant::capability_major, 0U) +
                                        number(constant::capability_minor, 0U));
    facts.has_fp64 = number(constant::fp64, Flags{0}) != 0;
    facts.is_cpu = (number(constant::device_type, Flags{0}) & constant::type_cpu) != 0;
    facts.shares_memory_with_host = number(constant::unified, 0U) != 0;
    const auto pci = number(constant::pci_khr, std::array<unsigned, 4>{});
    if (!facts.is_cpu && (pci[0] | pci[1] | pci[2]) != 0) {
      std::array<char, 40> text{};
      std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", pci[0], pci[1], pci[2], pci[3]);
      facts.pci = text.data();
    }
    return facts;
  }

  [[nodiscard]] const Context& context() const {
    if (!context_)
      context_.emplace(api_, platform_, device_);
    return *context_;
  }

  const Api& api_;
  Handle platform_;
  Handle device_;
  Facts facts_;
  mutable std::optional<Context> context_;
};

struct FoundDevice {
  Handle platform;
  Handle device;
};

// Every available device of the platforms whose name contains `words`, in the loader's order.
[[nodiscard]] inline std::vector<FoundDevice> found_devices(const Api& api,
                                                            std::string_view words) {
  unsigned count = 0;
  const int status = api.platforms.status(0, nullptr, &count);
  if (status == constant::no_platform || count == 0)
    throw Unsupported("driver", "the OpenCL loader finds no driver (/etc/OpenCL/vendors); a "
                                "GPU driver includes one, and PoCL runs on any CPU (Debian: "
                                "pocl-opencl-icd)");
  std::vector<Handle> platforms(count);
  api.platforms(count, platforms.data(), nullptr);
  std::vector<FoundDevice> found;
  for (const auto platform : platforms) {
    const auto name = text_of(api.platform_info, platform, constant::platform_name);
    unsigned there = 0;
    if (name.find(words) == std::string::npos ||
        api.devices.status(platform, constant::all_types, 0, nullptr, &there) != 0)
      continue;
    std::vector<Handle> devices(there);
    api.devices(platform, constant::all_types, there, devices.data(), nullptr);
    for (const auto device : devices) {
      unsigned is_available = 0;
      api.device_info(device, constant::available, sizeof is_available, &is_available, nullptr);
      if (is_available != 0)
        found.push_back({platform, device});
    }
  }
  return found;
}

} // namespace seatrial::device::opencl
