// A kernel with typed parameters: a call with wrong arguments does not compile, and the source's
// declaration is checked when it is built.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "device/device.hpp"
#include "device/driver_library.hpp"

namespace seatrial::device {

// The dialect's names of the types that kernels may take.
template <class Type>
[[nodiscard]] constexpr std::string_view plain_name() {
  if constexpr (std::is_same_v<Type, float>) {
    return "float";
  } else if constexpr (std::is_same_v<Type, double>) {
    return "double";
  } else if constexpr (std::is_same_v<Type, std::int32_t>) {
    return "int";
  } else if constexpr (std::is_same_v<Type, std::uint32_t>) {
    return "u32";
  } else if constexpr (std::is_same_v<Type, std::uint64_t>) {
    return "u64";
  } else {
    static_assert(std::is_same_v<Type, std::int64_t>, "unsupported kernel parameter type");
    return "i64";
  }
}

[[nodiscard]] std::string pointer_name(std::string_view pointed, bool is_const);

template <class Type>
[[nodiscard]] std::string type_name() {
  using Plain = std::remove_cv_t<Type>;
  if constexpr (std::is_same_v<Plain, const Image*>) {
    return "TEXTURE";
  } else if constexpr (std::is_pointer_v<Plain>) {
    using Pointed = std::remove_pointer_t<Plain>;
    return pointer_name(plain_name<std::remove_const_t<Pointed>>(), std::is_const_v<Pointed>);
  } else {
    return std::string(plain_name<Plain>());
  }
}

// Device memory for elements of one type; passed for a kernel's pointer.
template <class Element>
class Array {
public:
  Array(Device& device, std::size_t count, Where where = Where::device)
      : memory_(device.allocate(count * sizeof(Element), where)), count_(count) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(Element); }
  [[nodiscard]] Memory& memory() const noexcept { return *memory_; }
  // Its host address; nullptr if the host cannot access it.
  [[nodiscard]] Element* host() const noexcept { return static_cast<Element*>(memory_->host()); }

private:
  std::unique_ptr<Memory> memory_;
  std::size_t count_;
};

// Throws the failure with the kernel's name and launch size.
[[noreturn]] void throw_launch_failed(const std::string& kernel, const Grid& grid,
                                      const CallFailed& failed);

template <class... Types>
class Kernel {
public:
  [[nodiscard]] static Declaration declared(const std::string& name) {
    return {.name = name, .types = {type_name<Types>()...}};
  }

  Kernel(Module& module, const std::string& name) : name_(name), handle_(module.kernel(name)) {}

  template <class... Given>
  void operator()(Queue& queue, const Grid& grid, const Given&... given) const {
    static_assert(sizeof...(Given) == sizeof...(Types), "wrong number of kernel arguments");
    const std::array<Argument, sizeof...(Types)> arguments = {argument<Types>(given)...};
    try {
      queue.launch(*handle_, grid, arguments);
    } catch (const CallFailed& failed) {
      throw_launch_failed(name_, grid, failed);
    }
  }

  [[nodiscard]] Resources resources() const { return handle_->resources(); }

private:
  template <class Type, class Given>
  [[nodiscard]] static Argument argument(const Given& given) {
    if constexpr (std::is_same_v<Type, const Image*>) {
      static_assert(std::is_same_v<Given, Image>, "the kernel takes an image");
      return Argument::of(given);
    } else if constexpr (std::is_pointer_v<Type>) {
      static_assert(std::is_same_v<Given, Array<std::remove_const_t<std::remove_pointer_t<Type>>>>,
                    "array element type differs from the kernel's parameter");
      return Argument::of(given.memory());
    } else {
      static_assert(std::is_same_v<Given, Type>,
                    "argument type differs from the kernel's parameter");
      return Argument::of(given);
    }
  }

  std::string name_;
  std::unique_ptr<KernelHandle> handle_;
};

} // namespace seatrial::device
