// The main function of the programs that start others: what stops one becomes its message and its
// exit status.
#pragma once

#include <cstdio>
#include <exception>

#include "failure.hpp"

namespace seatrial {

[[nodiscard]] inline int helper_main(const char* name, int (*run)(int, char**), int argc,
                                     char** argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", name, failure.what());
    return static_cast<int>(failure.status());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return static_cast<int>(Exit::software);
  }
}

} // namespace seatrial
