// Command-line arguments: `--name value` pairs, nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "failure.hpp"

namespace seatrial {

class Arguments {
public:
  using Pair = std::array<std::size_t, 2>;

  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string_view name = argv[i];
      if (!name.starts_with("--"))
        throw Failure(Exit::usage, "expected --name, found '" + std::string(name) + "'");
      if (i + 1 == argc)
        throw Failure(Exit::usage, std::string(name) + " has no value");
      if (std::ranges::find(given_, name, &Given::name) != given_.end())
        throw Failure(Exit::usage, std::string(name) + " is given twice");
      given_.push_back({name, argv[i + 1]});
    }
  }

  // Each query makes its name known; finish() then refuses what nobody asked for.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) {
    known_.push_back(name);
    const auto found = std::ranges::find(given_, name, &Given::name);
    if (found == given_.end())
      return std::nullopt;
    return found->value;
  }

  [[nodiscard]] std::string_view required(std::string_view name) {
    const auto value = find(name);
    if (!value)
      throw Failure(Exit::usage, std::string(name) + " is missing");
    return *value;
  }

  // A number within [low, high]; NaN is never within.
  template <class Number>
  [[nodiscard]] Number number(std::string_view name, Number fallback, Number low, Number high) {
    const auto text = find(name);
    if (!text)
      return fallback;
    const auto value = parse<Number>(*text);
    if (!value || !(*value >= low && *value <= high))
      refuse(name, *text, "a number from " + std::to_string(low) + " to " + std::to_string(high));
    return *value;
  }

  [[nodiscard]] bool flag(std::string_view name, bool fallback) {
    return number<int>(name, fallback ? 1 : 0, 0, 1) == 1;
  }

  [[nodiscard]] std::string_view choice(std::string_view name, std::string_view fallback,
                                        std::initializer_list<std::string_view> accepted) {
    const auto text = find(name).value_or(fallback);
    if (std::ranges::find(accepted, text) == accepted.end()) {
      std::string list;
      for (const auto option : accepted)
        list.append(list.empty() ? "" : " or ").append(option);
      refuse(name, text, list);
    }
    return text;
  }

  // Distinct CPU numbers in the order given: the kernel's list format, `0,2-3`.
  [[nodiscard]] std::vector<int> cpus(std::string_view name) {
    const auto text = required(name);
    std::vector<int> cpus;
    for_each_item(text, [&](std::string_view item) {
      const auto dash = std::min(item.find('-'), item.size());
      const auto first = parse<int>(item.substr(0, dash));
      const auto last = dash == item.size() ? first : parse<int>(item.substr(dash + 1));
      if (!first || !last || *first < 0 || *last < *first || *last >= most_cpus)
        refuse(name, text, "a list of CPU numbers such as 0,2-3");
      for (int cpu = *first; cpu <= *last; ++cpu) {
        // Two spinning threads on one CPU would wait for each other by the scheduler's tick.
        if (std::ranges::find(cpus, cpu) != cpus.end())
          refuse(name, text, "each CPU once");
        cpus.push_back(cpu);
      }
    });
    return cpus;
  }

  // Pairs of different numbers in the order given: `0-1,0-2`. None where the argument is absent.
  [[nodiscard]] std::optional<std::vector<Pair>> pairs(std::string_view name) {
    const auto text = find(name);
    if (!text)
      return std::nullopt;
    std::vector<Pair> pairs;
    for_each_item(*text, [&](std::string_view item) {
      const auto dash = std::min(item.find('-'), item.size());
      const auto a = parse<std::size_t>(item.substr(0, dash));
      const auto b = parse<std::size_t>(item.substr(std::min(dash + 1, item.size())));
      if (!a || !b || *a == *b)
        refuse(name, *text, "a list of pairs of different numbers such as 0-1,0-2");
      pairs.push_back({*a, *b});
    });
    return pairs;
  }

  // Numbers within [low, high] in the order given: `4096,8192`.
  template <class Number>
  [[nodiscard]] std::vector<Number> numbers(std::string_view name, Number low, Number high) {
    const auto text = required(name);
    std::vector<Number> numbers;
    for_each_item(text, [&](std::string_view item) {
      const auto number = parse<Number>(item);
      if (!number || !(*number >= low && *number <= high))
        refuse(name, text,
               "a list of numbers from " + std::to_string(low) + " to " + std::to_string(high));
      numbers.push_back(*number);
    });
    return numbers;
  }

  void finish() const {
    for (const auto& given : given_) {
      if (std::ranges::find(known_, given.name) != known_.end())
        continue;
      std::string message = "unknown argument " + std::string(given.name) + "; known are";
      for (const auto name : known_)
        message.append(" ").append(name);
      throw Failure(Exit::usage, message);
    }
  }

  // As given, without those of these names.
  [[nodiscard]] std::vector<std::string>
  words_without(std::initializer_list<std::string_view> names) const {
    std::vector<std::string> words;
    for (const auto& [name, value] : given_)
      if (std::ranges::find(names, name) == names.end()) {
        words.emplace_back(name);
        words.emplace_back(value);
      }
    return words;
  }

private:
  struct Given {
    std::string_view name;
    std::string_view value;
  };

  static constexpr int most_cpus = 1 << 16; // against typing errors; Linux allows 8192

  // Each item of a list that is separated by commas, empty ones too.
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

  [[noreturn]] static void refuse(std::string_view name, std::string_view value,
                                  std::string_view expected) {
    throw Failure(Exit::usage, std::string(name) + " '" + std::string(value) + "': expected " +
                                   std::string(expected));
  }

  std::vector<Given> given_;
  std::vector<std::string_view> known_;
};

} // namespace seatrial
