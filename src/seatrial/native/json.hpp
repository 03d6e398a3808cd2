// Writes the JSON that records need: objects of numbers, strings, lists and objects.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace seatrial::json {

class Object;

// Paths and host names are bytes, JSON is Unicode: invalid UTF-8 becomes U+FFFD.
void append(std::string& out, std::string_view text);

// The shortest text that reads back as the same double; %.17g guarantees this only with all 17
// digits.
void append(std::string& out, double value);

// A template, so that pointers and integers are not converted to bool.
template <std::same_as<bool> Bool>
void append(std::string& out, Bool value) {
  out += value ? "true" : "false";
}

void append_whole(std::string& out, std::intmax_t value);
void append_whole(std::string& out, std::uintmax_t value);

template <std::integral Integer>
requires(!std::same_as<Integer, bool>) void append(std::string& out, Integer value) {
  if constexpr (std::is_signed_v<Integer>)
    append_whole(out, std::intmax_t{value});
  else
    append_whole(out, std::uintmax_t{value});
}

void append(std::string& out, const Object& object);

template <std::ranges::input_range List>
requires(!std::convertible_to<const List&, std::string_view>) void append(std::string& out,
                                                                          const List& list) {
  out += '[';
  const char* separator = "";
  for (const auto& item : list) {
    out += std::exchange(separator, ",");
    append(out, item);
  }
  out += ']';
}

// Members appear in the order they were added; the caller must not repeat keys.
class Object {
public:
  template <class Value>
  Object& add(std::string_view key, const Value& value) & {
    begin(key);
    append(text_, value);
    return *this;
  }

  template <class Value>
  Object&& add(std::string_view key, const Value& value) && {
    return std::move(add(key, value));
  }

  [[nodiscard]] std::string text() const;

private:
  void begin(std::string_view key);

  std::string text_;
};

} // namespace seatrial::json
