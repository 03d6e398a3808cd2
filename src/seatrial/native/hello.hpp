// The first event of a record: the program, its host, the instruction sets it was built for, and
// its libraries.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace seatrial {

// The key of this build in seatrial's cache; "" for a program built by hand. It is compiled into
// the program's own source only: shared sources are built once for all programs.
[[nodiscard]] const char* build_key() noexcept;
#ifdef SEATRIAL_BUILD
const char* build_key() noexcept {
  return SEATRIAL_BUILD;
}
#endif

// `cpus` holds the mask of each thread, or of each rank of an MPI program.
[[nodiscard]] json::Object hello_event(std::string_view name,
                                       const std::vector<std::vector<int>>& cpus, int rank = 0,
                                       int ranks = 1);

// PROGRAM --describe: prints the hello event and exits. seatrial calls it right after the build and
// compares each run with the answer. Returns the exit status, or nothing if --describe was not
// given.
[[nodiscard]] std::optional<int> described(std::string_view name, int argc, char** argv);

} // namespace seatrial
