// Command-line arguments: `--name value` pairs, nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace seatrial {

class Arguments {
public:
  using Pair = std::array<std::size_t, 2>;

  Arguments(int argc, char** argv);

  // Each query registers its name; finish() rejects arguments that were never queried.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name);

  [[nodiscard]] std::string_view required(std::string_view name);

  // A number within [low, high]; NaN is rejected.
  template <class Number>
  [[nodiscard]] Number number(std::string_view name, Number fallback, Number low, Number high) {
    const auto text = find(name);
    if (!text)
      return fallback;
    const auto value = parse<Number>(*text);
    if (!value || !(*value >= low && *value <= high))
      refuse(name, *text, "a number", low, high);
    return *value;
  }

  [[nodiscard]] bool flag(std::string_view name, bool fallback);

  [[nodiscard]] std::string_view choice(std::string_view name, std::string_view fallback,
                                        std::initializer_list<std::string_view> accepted);

  // The items of a comma-separated list, none of them empty; none if the argument is missing.
  [[nodiscard]] std::vector<std::string> words(std::string_view name);

  // Distinct CPU numbers in the order given: the kernel's list format, `0,2-3`.
  [[nodiscard]] std::vector<int> cpus(std::string_view name);

  // Pairs of different numbers in the order given: `0-1,0-2`. None if the argument is missing.
  [[nodiscard]] std::optional<std::vector<Pair>> pairs(std::string_view name);

  // Numbers within [low, high] in the order given: `4096,8192`.
  template <class Number>
  [[nodiscard]] std::vector<Number> numbers(std::string_view name, Number low, Number high) {
    const auto text = required(name);
    std::vector<Number> numbers;
    for_each_item(text, [&](std::string_view item) {
      const auto number = parse<Number>(item);
      if (!number || !(*number >= low && *number <= high))
        refuse(name, text, "a list of numbers", low, high);
      numbers.push_back(*number);
    });
    return numbers;
  }

  void finish() const;

  // All arguments as given, except the named ones.
  [[nodiscard]] std::vector<std::string>
  words_without(std::initializer_list<std::string_view> names) const;

private:
  struct Given {
    std::string_view name;
    std::string_view value;
  };

  static constexpr int max_cpus = 1 << 16; // catches typing errors; Linux allows 8192

  // Visits each item of a comma-separated list, including empty ones.
  template <class Visit>
  static void for_each_item(std::string_view list, Visit visit) {
    for (std::size_t begin = 0; begin <= list.size();) {
      const auto end = std::min(list.find(',', begin), list.size());
      visit(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  template <class Number>
  [[nodiscard]] static std::optional<Number> parse(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
      return std::nullopt;
    return value;
  }

  template <class Number>
  [[noreturn]] static void refuse(std::string_view name, std::string_view value, const char* what,
                                  Number low, Number high) {
    if constexpr (std::is_floating_point_v<Number>)
      refuse_number(name, value, what, double{low}, double{high});
    else if constexpr (std::is_signed_v<Number>)
      refuse_number(name, value, what, std::intmax_t{low}, std::intmax_t{high});
    else
      refuse_number(name, value, what, std::uintmax_t{low}, std::uintmax_t{high});
  }

  // double, intmax_t or uintmax_t
  template <class Number>
  [[noreturn]] static void refuse_number(std::string_view name, std::string_view value,
                                         const char* what, Number low, Number high);

  [[noreturn]] static void refuse(std::string_view name, std::string_view value,
                                  std::string_view expected);

  std::vector<Given> given_;
  std::vector<std::string_view> known_;
};

} // namespace seatrial
