// An OpenCL device's context.
#pragma once

#include <array>

#include "device/opencl_api.hpp"

namespace seatrial::device::opencl {

class Context {
public:
  Context(const Api& api, Handle platform, Handle device) : api_(api), device_(device) {
    const std::array<Word, 3> properties = {constant::platform, reinterpret_cast<Word>(platform),
                                            0};
    handle_ = api_.create_context(properties.data(), 1, &device_, nullptr, nullptr);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { static_cast<void>(api_.release_context.status(handle_)); }

  [[nodiscard]] const Api& api() const noexcept { return api_; }
  [[nodiscard]] Handle device() const noexcept { return device_; }
  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  const Api& api_;
  Handle device_;
  Handle handle_ = nullptr;
};

} // namespace seatrial::device::opencl
