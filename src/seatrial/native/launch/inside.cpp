// inside: prints what a process sees of the container that it is started in, as a record.
//
//   inside [--find PROGRAM...]
//
// untimed: -O1
#include <cstdio>
#include <string_view>

#include "affinity.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/find_inside.hpp"
#include "launch/helper_main.hpp"
#include "launch/seen_inside.hpp"

namespace {

using namespace seatrial;

void print(const json::Object& event) {
  std::printf("%s\n", event.text().c_str());
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("inside", argc, argv))
    return *status;
  print(hello_event("inside", {bound_cpus()}));
  print(note_event("namespaces", namespaces_here()));
  print(note_event("root_mount", root_mount()));
  print(note_event("variables", variables_here()));
  if (argc > 1 && std::string_view(argv[1]) == "--find") {
    json::Object found;
    for (int number = 2; number < argc; ++number)
      found.add(argv[number], found_program(argv[number]));
    print(note_event("found", found));
  }
  print(end_event());
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::record);
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("inside", run, argc, argv);
}
