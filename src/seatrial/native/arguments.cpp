#include "arguments.hpp"

#include "failure.hpp"

namespace seatrial {

Arguments::Arguments(int argc, char** argv) {
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

std::optional<std::string_view> Arguments::find(std::string_view name) {
  known_.push_back(name);
  const auto found = std::ranges::find(given_, name, &Given::name);
  if (found == given_.end())
    return std::nullopt;
  return found->value;
}

std::string_view Arguments::required(std::string_view name) {
  const auto value = find(name);
  if (!value)
    throw Failure(Exit::usage, std::string(name) + " is missing");
  return *value;
}

bool Arguments::flag(std::string_view name, bool fallback) {
  return number<int>(name, fallback ? 1 : 0, 0, 1) == 1;
}

std::string_view Arguments::choice(std::string_view name, std::string_view fallback,
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

std::vector<std::string> Arguments::words(std::string_view name) {
  std::vector<std::string> words;
  const auto text = find(name);
  if (text)
    for_each_item(*text, [&](std::string_view item) {
      if (item.empty())
        refuse(name, *text, "a list of words");
      words.emplace_back(item);
    });
  return words;
}

std::vector<int> Arguments::cpus(std::string_view name) {
  const auto text = required(name);
  std::vector<int> cpus;
  for_each_item(text, [&](std::string_view item) {
    const auto dash = std::min(item.find('-'), item.size());
    const auto first = parse<int>(item.substr(0, dash));
    const auto last = dash == item.size() ? first : parse<int>(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= max_cpus)
      refuse(name, text, "a list of CPU numbers such as 0,2-3");
    for (int cpu = *first; cpu <= *last; ++cpu) {
      // Two spinning threads on one CPU would wait for each other for whole scheduler ticks.
      if (std::ranges::find(cpus, cpu) != cpus.end())
        refuse(name, text, "each CPU only once");
      cpus.push_back(cpu);
    }
  });
  return cpus;
}

std::optional<std::vector<Arguments::Pair>> Arguments::pairs(std::string_view name) {
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

void Arguments::finish() const {
  for (const auto& given : given_) {
    if (std::ranges::find(known_, given.name) != known_.end())
      continue;
    std::string message = "unknown argument " + std::string(given.name) + "; expected one of";
    for (const auto name : known_)
      message.append(" ").append(name);
    throw Failure(Exit::usage, message);
  }
}

std::vector<std::string>
Arguments::words_without(std::initializer_list<std::string_view> names) const {
  std::vector<std::string> words;
  for (const auto& [name, value] : given_)
    if (std::ranges::find(names, name) == names.end()) {
      words.emplace_back(name);
      words.emplace_back(value);
    }
  return words;
}

void Arguments::refuse(std::string_view name, std::string_view value, std::string_view expected) {
  throw Failure(Exit::usage, std::string(name) + " '" + std::string(value) + "': expected " +
                                 std::string(expected));
}

template <class Number>
void Arguments::refuse_number(std::string_view name, std::string_view value, const char* what,
                              Number low, Number high) {
  refuse(name, value, what + (" from " + std::to_string(low)) + " to " + std::to_string(high));
}

template void Arguments::refuse_number(std::string_view, std::string_view, const char*, double,
                                       double);
template void Arguments::refuse_number(std::string_view, std::string_view, const char*,
                                       std::intmax_t, std::intmax_t);
template void Arguments::refuse_number(std::string_view, std::string_view, const char*,
                                       std::uintmax_t, std::uintmax_t);

} // namespace seatrial
