// A driver library, found and loaded at run time: the program is not linked with it and needs no
// headers. Its functions are called through objects that turn a nonzero status into an exception
// with the call and its arguments.
#pragma once

#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "failure.hpp"
#include "unsupported.hpp"

namespace seatrial::device {

// A failed driver call. `status()` is the library's status code.
class CallFailed : public Failure {
public:
  CallFailed(const std::string& what, int code) : Failure(Exit::system, what), code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; }

private:
  int code_;
};

class DriverLibrary {
public:
  // Loads the first of these names that the loader finds. `need` and `how` say what is missing if
  // there is none.
  DriverLibrary(const std::vector<std::string>& names, const std::string& need,
                const std::string& how) {
    std::string seen;
    for (const auto& name : names) {
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr)
        return;
      seen.append(seen.empty() ? "" : "; ").append(dlerror());
    }
    throw Unsupported(need, seen + "; " + how);
  }
  DriverLibrary(const DriverLibrary&) = delete;
  DriverLibrary& operator=(const DriverLibrary&) = delete;
  // Never closed: its threads may still run its code.
  virtual ~DriverLibrary() = default;

  // nullptr if the library is too old for it.
  [[nodiscard]] void* find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

  // The library's own text for a status code.
  [[nodiscard]] virtual std::string meaning(int code) const = 0;

private:
  void* handle_ = nullptr;
};

namespace detail {

template <class Value>
void write_argument(std::ostringstream& text, const Value& value) {
  if constexpr (std::is_same_v<Value, const char*>)
    text << (value == nullptr ? "null" : "\"...\"");
  else if constexpr (std::is_pointer_v<Value>)
    text << (value == nullptr ? std::string("null") : "pointer");
  else
    text << value;
}

template <class... Values>
[[nodiscard]] std::string call_text(const char* name, const Values&... values) {
  std::ostringstream text;
  text << name << "(";
  [[maybe_unused]] const char* between = ""; // unused without arguments
  ((text << std::exchange(between, ", "), write_argument(text, values)), ...);
  text << ")";
  return text.str();
}

} // namespace detail

// A function that returns a status.
template <class... Parameters>
class Call {
public:
  Call(const DriverLibrary& library, const char* name)
      : library_(library), name_(name), function_(reinterpret_cast<Function>(library.find(name))) {}

  [[nodiscard]] bool is_there() const noexcept { return function_ != nullptr; }

  void operator()(Parameters... arguments) const {
    if (const int code = status(arguments...); code != 0)
      throw CallFailed(detail::call_text(name_, arguments...) + " returned " +
                           std::to_string(code) + " (" + library_.meaning(code) + ")",
                       code);
  }

  // Returns the status, for calls where a failure is a valid answer.
  [[nodiscard]] int status(Parameters... arguments) const {
    if (function_ == nullptr)
      throw Unsupported("driver",
                        std::string("the driver has no ") + name_ + "; install a newer driver");
    return function_(arguments...);
  }

private:
  using Function = int (*)(Parameters...);

  const DriverLibrary& library_;
  const char* name_;
  Function function_;
};

// A function that returns the created object, and its status in its last argument.
template <class Made, class... Parameters>
class CreateCall {
public:
  CreateCall(const DriverLibrary& library, const char* name)
      : library_(library), name_(name), function_(reinterpret_cast<Function>(library.find(name))) {}

  [[nodiscard]] bool is_there() const noexcept { return function_ != nullptr; }

  [[nodiscard]] Made operator()(Parameters... arguments) const {
    if (function_ == nullptr)
      throw Unsupported("driver",
                        std::string("the driver has no ") + name_ + "; install a newer driver");
    int code = 0;
    const auto made = function_(arguments..., &code);
    if (code != 0)
      throw CallFailed(detail::call_text(name_, arguments...) + " returned " +
                           std::to_string(code) + " (" + library_.meaning(code) + ")",
                       code);
    return made;
  }

private:
  using Function = Made (*)(Parameters..., int*);

  const DriverLibrary& library_;
  const char* name_;
  Function function_;
};

} // namespace seatrial::device
