// JSON text of the few shapes that records need: objects of numbers, strings, lists and objects.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace seatrial::json {

class Object;

namespace detail {

// Length of the well-formed UTF-8 sequence at the start of text, 0 if there is none
// (The Unicode Standard 15.0, table 3-7).
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length > text.size())
    return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90))
    return 0;
  return length;
}

} // namespace detail

// Paths and host names are bytes, JSON is Unicode: a byte that is no UTF-8 becomes U+FFFD.
inline void append(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const auto length = detail::utf8_length(text);
    if (c == '"' || c == '\\')
      (out += '\\') += text.front();
    else if (c < 0x20 || c == 0x7f)
      ((out += "\\u00") += digits[c >> 4]) += digits[c & 15];
    else if (length == 0)
      out += "\\ufffd";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

// The shortest text that reads back as the same double, which %.17g only promises at full length.
inline void append(std::string& out, double value) {
  if (!std::isfinite(value)) { // JSON has neither NaN nor infinity
    out += "null";
    return;
  }
  char text[32];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

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
