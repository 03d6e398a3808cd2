// A requirement that the machine does not meet, as an exception: a result, not an error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace seatrial {

// `need` is one word (driver, device, compiler, fp64, ...); `what()` says what was seen and how to
// get it.
class Unsupported : public std::runtime_error {
public:
  Unsupported(std::string need, const std::string& why)
      : std::runtime_error(why), need_(std::move(need)) {}
  [[nodiscard]] const std::string& need() const noexcept { return need_; }

private:
  std::string need_;
};

} // namespace seatrial
