#include "hello.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

#include "clock_step.hpp"
#include "failure.hpp"
#include "host_name.hpp"
#include "hypervisor.hpp"
#include "isa.hpp"
#include "libraries.hpp"

namespace seatrial {

// Default for programs built without a key: a strong definition replaces this weak one.
[[gnu::weak]] const char* build_key() noexcept {
  return "";
}

json::Object hello_event(std::string_view name, const std::vector<std::vector<int>>& cpus, int rank,
                         int ranks) {
  json::Object build_ids;
  json::Object paths;
  for (const auto& library : loaded_libraries()) {
    build_ids.add(library.name, library.build_id);
    paths.add(library.name, library.path);
  }
  return json::Object()
      .add("ev", "hello")
      .add("v", 1)
      .add("program", name)
      .add("build", std::string_view(build_key()))
      .add("rank", rank)
      .add("ranks", ranks)
      .add("host", host_name())
      .add("pid", getpid())
      .add("cpus", cpus)
      .add("libs", build_ids)
      .add("lib_paths", paths)
      .add("isa", built_for_names())
      .add("clock_step_s", clock_step_s())
      .add("hypervisor", hypervisor_signature());
}

std::optional<int> described(std::string_view name, int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != "--describe")
    return std::nullopt;
  std::printf("%s\n", hello_event(name, {}).text().c_str());
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

} // namespace seatrial
