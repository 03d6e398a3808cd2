// Zeros in pages of their own, huge ones where they fill at least one.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

#include "pages.hpp"

namespace seatrial::impact {

// The thread that makes it touches the pages first.
template <class T>
class Array {
public:
  explicit Array(std::size_t count = 0) : count_(count) {
    if (count == 0)
      return;
    const std::size_t bytes = count * sizeof(T);
    pages_ = std::make_unique<Pages>(bytes, bytes >= huge_page);
    std::memset(pages_->data(), 0, bytes);
  }
  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(pages_->data()); }
  [[nodiscard]] const T* data() const noexcept {
    return reinterpret_cast<const T*>(pages_->data());
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t at) noexcept { return data()[at]; }
  const T& operator[](std::size_t at) const noexcept { return data()[at]; }

private:
  std::unique_ptr<Pages> pages_;
  std::size_t count_;
};

} // namespace seatrial::impact
