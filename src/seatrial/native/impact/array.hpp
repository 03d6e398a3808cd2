// Zeros in pages of their own, huge ones where they fill at least one.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

#include "pages.hpp"

namespace seatrial::impact {

// The thread that makes it touches the pages first. Arrays that are used together have different
// numbers `which`: their n-th elements are then in different sets of a cache.
template <class T>
class Array {
public:
  explicit Array(std::size_t count = 0, std::size_t which = 0) : count_(count) {
    if (count == 0)
      return;
    const std::size_t bytes = which * skew + count * sizeof(T);
    pages_ = std::make_unique<Pages>(bytes, bytes >= huge_page);
    std::memset(pages_->data(), 0, bytes);
    values_ = reinterpret_cast<T*>(pages_->data() + which * skew);
  }
  [[nodiscard]] T* data() noexcept { return values_; }
  [[nodiscard]] const T* data() const noexcept { return values_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t place) noexcept { return values_[place]; }
  const T& operator[](std::size_t place) const noexcept { return values_[place]; }

private:
  static constexpr std::size_t skew = 15 * 64; // bytes: cache lines

  std::unique_ptr<Pages> pages_;
  T* values_ = nullptr;
  std::size_t count_;
};

} // namespace seatrial::impact
