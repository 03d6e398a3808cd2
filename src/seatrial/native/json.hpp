// JSON text of the few shapes that records need: objects of numbers, strings, lists and objects.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace seatrial::json {

class Object;

// Paths and host names are bytes, JSON is Unicode: a byte that is no UTF-8 becomes U+FFFD.
void append(std::string& out, std::string_view text);

// The shortest text that reads back as the same double, which %.17g only promises at full length.
void append(std::string& out, double value);

// A template, so that neither a pointer nor an integer turns into a bool on its way.
template <std::same_as<bool> Bool>
void append(std::string& out, Bool value) {
  out += value ? "true" : "false";
}

template <std::integral Integer>
requires(!std::same_as<Integer, bool>) void append(std::string& out, Integer value) {
  char text[24];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

inline void append(std::string& out, const Object& object);

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

// Members appear in the order in which they were added; the caller keeps keys distinct.
class Object {
public:
  template <class Value>
  Object& add(std::string_view key, const Value& value) & {
    text_ += text_.empty() ? '{' : ',';
    append(text_, key);
    text_ += ':';
    append(text_, value);
    return *this;
  }

  template <class Value>
  Object&& add(std::string_view key, const Value& value) && {
    return std::move(add(key, value));
  }

  [[nodiscard]] std::string text() const { return text_.empty() ? "{}" : text_ + '}'; }

private:
  std::string text_;
};

inline void append(std::string& out, const Object& object) {
  out += object.text();
}

} // namespace seatrial::json
