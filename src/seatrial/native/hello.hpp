// The first event of a record: what runs, where, built for what, and with which libraries.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace seatrial {

// The key under which the lab keeps this build; "" where a program was built by hand. The lab gives
// it to the program's own source alone: what programs share is built once for all of them.
[[nodiscard]] const char* build_key() noexcept;
#ifdef SEATRIAL_BUILD
const char* build_key() noexcept {
  return SEATRIAL_BUILD;
}
#endif

// `cpus` holds the mask of each thread; of an MPI program, that of each rank.
[[nodiscard]] json::Object hello_event(std::string_view name,
                                       const std::vector<std::vector<int>>& cpus, int rank = 0,
                                       int ranks = 1);

// PROGRAM --describe: the same of a program that does nothing else. The lab asks right after the
// build, and holds each run against the answer. The exit status once it is answered; nothing where
// something else is asked of the program.
[[nodiscard]] std::optional<int> described(std::string_view name, int argc, char** argv);

} // namespace seatrial
