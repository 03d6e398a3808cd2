// Steps that all ranks take together, or none: a rank that stopped alone would leave the others
// waiting.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "failure.hpp"
#include "mpi/mpi.hpp"
#include "unsupported.hpp"

namespace seatrial::mpi {

namespace detail {

// Why a rank cannot go on: `need` is that of Unsupported, empty for a Skip.
struct Refusal {
  bool is_there = false;
  std::string need;
  std::string why;
};

[[nodiscard]] inline std::string of_rank(int rank, std::string_view text) {
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, rank, MPI_COMM_WORLD);
  std::string same(text);
  same.resize(static_cast<std::size_t>(length));
  MPI_Bcast(same.data(), length, MPI_CHAR, rank, MPI_COMM_WORLD);
  return same;
}

// Throws on all ranks what the first refusing rank has.
inline void agree(const Refusal& mine) {
  const int refusing = mine.is_there ? world_rank() : world_size();
  int first = 0;
  MPI_Allreduce(&refusing, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == world_size())
    return;
  const auto need = of_rank(first, mine.need);
  const auto why = of_rank(first, mine.why);
  if (need.empty())
    throw Skip(why);
  throw Unsupported(need, "rank " + std::to_string(first) + ": " + why);
}

} // namespace detail

// Collective: the object that `make()` returns. If it throws Unsupported or Skip on any rank, all
// ranks throw the exception of the first of these.
template <class Make>
[[nodiscard]] auto on_all_ranks(Make make) {
  std::optional<decltype(make())> made;
  detail::Refusal refusal;
  try {
    made.emplace(make());
  } catch (const Unsupported& missing) {
    refusal = {.is_there = true, .need = missing.need(), .why = missing.what()};
  } catch (const Skip& skip) {
    refusal = {.is_there = true, .need = "", .why = skip.what()};
  }
  detail::agree(refusal);
  return std::move(*made);
}

} // namespace seatrial::mpi
