#include "mpi/settings.hpp"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "mpi/mpi.hpp"
#include "mpi/program.hpp"

namespace seatrial::mpi {

namespace {

// How the library spells a control variable in the environment: the prefix is dropped from its name
// (Open MPI) or is part of it (MPICH and its derivatives). `rank_prefixes` are the name prefixes of
// variables that ranks use: Open MPI's other frameworks belong to the launcher. `set_by_launcher`
// is a variable that launchers set themselves.
#ifdef OPEN_MPI
constexpr std::string_view prefix = "OMPI_MCA_";
constexpr bool prefix_is_part_of_name = false;
constexpr std::string_view rank_prefixes[] = {"coll", "pml",  "btl", "mtl", "osc",      "mpi",
                                              "opal", "topo", "io",  "op_", "vprotocol"};
constexpr std::string_view set_by_launcher = "mpi_oversubscribe";
#else
constexpr std::string_view prefix = "MPIR_CVAR_";
constexpr bool prefix_is_part_of_name = true;
constexpr std::string_view rank_prefixes[] = {prefix};
constexpr std::string_view set_by_launcher = "MPIR_CVAR_CH3_INTERFACE_HOSTNAME";
#endif

[[nodiscard]] std::vector<std::string> chosen_variables() {
  std::vector<std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto end = text.find('=');
    if (!text.starts_with(prefix) || end == std::string_view::npos)
      continue;
    auto name = text.substr(0, end);
    if (!prefix_is_part_of_name)
      name.remove_prefix(prefix.size());
    const auto begins = [&](std::string_view framework) { return name.starts_with(framework); };
    if (name != set_by_launcher && std::ranges::any_of(rank_prefixes, begins))
      found.emplace_back(name);
  }
  std::ranges::sort(found);
  return found;
}

// Open MPI keeps variables of unloaded components: their values are no longer mapped.
sigjmp_buf unreadable;
void skip_unreadable(int) {
  siglongjmp(unreadable, 1);
}

[[nodiscard]] bool read(MPI_T_cvar_handle handle, void* value) noexcept {
  struct sigaction before = {};
  struct sigaction guard = {};
  guard.sa_handler = skip_unreadable;
  sigemptyset(&guard.sa_mask);
  if (sigaction(SIGSEGV, &guard, &before) != 0)
    return false;
  volatile bool is_read = false;
  if (sigsetjmp(unreadable, 1) == 0)
    is_read = MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
  sigaction(SIGSEGV, &before, nullptr);
  return is_read;
}

[[nodiscard]] std::string with_item(MPI_T_enum items, int value) {
  std::string text = std::to_string(value);
  int count = 0;
  int length = 0;
  if (items == MPI_T_ENUM_NULL || MPI_T_enum_get_info(items, &count, nullptr, &length) != 0)
    return text;
  for (int i = 0; i < count; ++i) {
    int of_item = 0;
    char name[256] = {};
    length = sizeof name;
    if (MPI_T_enum_get_item(items, i, &of_item, name, &length) == 0 && of_item == value)
      return text + " (" + name + ")";
  }
  return text;
}

// The library's value of a variable, as text; none if it has no such variable.
[[nodiscard]] std::optional<std::string> library_value(const std::string& name) {
  constexpr const char* cannot = "?";
  int index = 0;
  int verbosity = 0;
  int binding = 0;
  int scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum items = MPI_T_ENUM_NULL;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS ||
      MPI_T_cvar_get_info(index, nullptr, nullptr, &verbosity, &type, &items, nullptr, nullptr,
                          &binding, &scope) != MPI_SUCCESS)
    return std::nullopt;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (binding != MPI_T_BIND_NO_OBJECT ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS || count < 1)
    return cannot;
  // Space for the largest type, for each element and a terminating zero.
  std::vector<std::uint64_t> room(static_cast<std::size_t>(count) + 1, 0);
  if (!read(handle, room.data()))
    return cannot;
  MPI_T_cvar_handle_free(&handle);
  const auto first = [&]<class T>(T) {
    T value{};
    std::memcpy(&value, room.data(), sizeof value);
    return value;
  };
  if (type == MPI_CHAR)
    return std::string(reinterpret_cast<const char*>(room.data()));
  if (type == MPI_INT)
    return with_item(items, first(int{}));
  if (type == MPI_C_BOOL)
    return std::to_string(static_cast<int>(first(bool{})));
  if (type == MPI_UNSIGNED)
    return std::to_string(first(0U));
  if (type == MPI_UNSIGNED_LONG || type == MPI_COUNT)
    return std::to_string(first(0UL));
  if (type == MPI_UNSIGNED_LONG_LONG)
    return std::to_string(first(0ULL));
  if (type == MPI_DOUBLE)
    return std::to_string(first(0.0));
  return cannot;
}

[[nodiscard]] double digest(const std::vector<std::string>& lines) {
  std::uint64_t hash = 0xcbf29ce484222325u; // FNV-1a, truncated to the precision of a double
  for (const auto& line : lines)
    for (const char letter : line + '\n')
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return static_cast<double>(hash >> 12);
}

} // namespace

void report_settings(Program& program) {
  std::vector<std::string> lines;
  const auto names = chosen_variables();
  int provided = 0;
  if (!names.empty() && MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
    for (const auto& name : names) {
      const auto value = library_value(name);
      lines.push_back(value ? name + "=" + *value : name);
    }
    MPI_T_finalize();
  }
  const auto digests = gather({digest(lines)});
  if (!lines.empty())
    program.note("control_variables", lines);
  const auto unlike = [&](double other) { return other != digests.front(); };
  if (const auto others = std::ranges::count_if(digests, unlike); others > 0)
    program.note("ranks_with_other_settings", static_cast<std::size_t>(others));
}

std::optional<std::string> single_copy_mechanism() {
#ifdef OPEN_MPI
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
    return std::nullopt;
  auto value = library_value("btl_vader_single_copy_mechanism");
  MPI_T_finalize();
  return value;
#else
  return std::nullopt;
#endif
}

} // namespace seatrial::mpi
