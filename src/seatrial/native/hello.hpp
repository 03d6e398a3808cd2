// The first event of a record: what runs, where, built for what, and with which libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "isa.hpp"
#include "json.hpp"
#include "libraries.hpp"

#ifndef SEATRIAL_BUILD
#define SEATRIAL_BUILD "" // the lab passes the key under which it keeps the build
#endif

namespace seatrial {

namespace detail {

[[nodiscard]] inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

} // namespace detail

// `cpus` holds the mask of each thread; of an MPI program, that of each rank.
[[nodiscard]] inline json::Object hello_event(std::string_view name,
                                              const std::vector<std::vector<int>>& cpus,
                                              int rank = 0, int ranks = 1) {
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
      .add("build", SEATRIAL_BUILD)
      .add("rank", rank)
      .add("ranks", ranks)
      .add("host", detail::host_name())
      .add("pid", getpid())
      .add("cpus", cpus)
      .add("libs", build_ids)
      .add("lib_paths", paths)
      .add("isa", built_for_names());
}

} // namespace seatrial
