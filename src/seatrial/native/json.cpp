// untimed: -O1
#include "json.hpp"

#include <charconv>
#include <cmath>

namespace seatrial::json {

namespace {

// Length of the well-formed UTF-8 sequence at the start of text, 0 if there is none (The Unicode
// Standard 15.0, table 3-7).
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept {
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

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

} // namespace

void append(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const auto length = utf8_length(text);
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

void append_whole(std::string& out, std::intmax_t value) {
  append_number(out, value);
}

void append_whole(std::string& out, std::uintmax_t value) {
  append_number(out, value);
}

void append(std::string& out, double value) {
  if (!std::isfinite(value)) { // JSON has no NaN or infinity
    out += "null";
    return;
  }
  append_number(out, value);
}

void append(std::string& out, const Object& object) {
  out += object.text();
}

void Object::begin(std::string_view key) {
  text_ += text_.empty() ? '{' : ',';
  append(text_, key);
  text_ += ':';
}

std::string Object::text() const {
  return text_.empty() ? "{}" : text_ + '}';
}

} // namespace seatrial::json
