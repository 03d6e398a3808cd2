// A CUDA device's primary context.
#pragma once

#include "device/cuda_api.hpp"

namespace seatrial::device::cuda {

// A context stays current on a thread until another one is set: setting the same one again costs
// nothing.
class Context {
public:
  Context(const Api& api, int ordinal) : api_(api), ordinal_(ordinal) {
    api_.retain(&handle_, ordinal_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (current() == handle_)
      current() = nullptr;
    static_cast<void>(api_.release.status(ordinal_));
  }

  void enter() const {
    if (current() == handle_)
      return;
    api_.set_current(handle_);
    current() = handle_;
  }
  // For destructors, which must not throw.
  [[nodiscard]] bool try_enter() const noexcept {
    try {
      enter();
      return true;
    } catch (...) {
      return false;
    }
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }
  [[nodiscard]] const Api& api() const noexcept { return api_; }

private:
  [[nodiscard]] static Handle& current() noexcept {
    thread_local Handle handle = nullptr;
    return handle;
  }

  const Api& api_;
  int ordinal_;
  Handle handle_ = nullptr;
};

} // namespace seatrial::device::cuda
