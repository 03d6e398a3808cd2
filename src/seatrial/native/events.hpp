// Record events common to single-process and MPI programs.
#pragma once

#include <cstddef>
#include <string_view>

#include "json.hpp"

namespace seatrial {

// The caller adds what it measured.
[[nodiscard]] inline json::Object sample_event(std::string_view series, std::size_t index,
                                               double elapsed_s) {
  return json::Object()
      .add("ev", "sample")
      .add("series", series)
      .add("rank", 0)
      .add("i", index)
      .add("elapsed_s", elapsed_s);
}

[[nodiscard]] inline json::Object check_event(std::string_view name, double value) {
  return json::Object().add("ev", "check").add("name", name).add("value", value);
}

template <class Value>
[[nodiscard]] json::Object note_event(std::string_view key, const Value& value) {
  return json::Object().add("ev", "note").add("key", key).add("value", value);
}

[[nodiscard]] inline json::Object skip_event(std::string_view reason) {
  return json::Object().add("ev", "skip").add("reason", reason);
}

// The machine cannot do the measurement: `need` in one word, `reason` for people.
[[nodiscard]] inline json::Object unsupported_event(std::string_view need,
                                                    std::string_view reason) {
  return skip_event(reason).add("need", need);
}

[[nodiscard]] inline json::Object end_event() {
  return json::Object().add("ev", "end");
}

} // namespace seatrial
