// inside: prints what a process sees of the container that it is started in, as a record; also
// where programs of these names are, or where the loader finds libraries of these names.
//
//   inside [--find PROGRAM...|--load LIBRARY...]
//
// untimed: -O1
#include <cstdio>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

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

// The path that a library is loaded from; "" and the loader's words if it is not.
[[nodiscard]] json::Object loaded(const char* name) {
  json::Object found;
  void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    return found.add("name", name).add("path", "").add("error", ::dlerror());
  const link_map* map = nullptr;
  const bool known = ::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0;
  return found.add("name", name).add("path", known ? map->l_name : name).add("error", "");
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("inside", argc, argv))
    return *status;
  print(hello_event("inside", {bound_cpus()}));
  print(note_event("namespaces", namespaces_here()));
  print(note_event("root_mount", root_mount()));
  print(note_event("variables", variables_here()));
  if (argc > 1 && std::string_view(argv[1]) == "--load")
    for (int number = 2; number < argc; ++number)
      print(note_event("loaded " + std::string(argv[number]), loaded(argv[number])));
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
