// MPI's C interface and small helpers for all programs. Errors end the program with MPI's own
// message (MPI_ERRORS_ARE_FATAL, the default).
#pragma once

#include <string>
#include <string_view>
#include <vector>

// The C++ bindings left the standard in 2012; their headers do not always compile as C++20.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "host_name.hpp"

namespace seatrial::mpi {

[[nodiscard]] inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

[[nodiscard]] inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// The first line of the library's version text.
[[nodiscard]] inline std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(std::string_view("\n\r\0", 3)));
}

// Its name and version alone, such as "Open MPI v4.1.4".
[[nodiscard]] inline std::string library_name() {
  const auto version = library_version();
  return version.substr(0, version.find(','));
}

template <typename T>
[[nodiscard]] MPI_Datatype type_of() = delete;
template <>
[[nodiscard]] inline MPI_Datatype type_of<int>() {
  return MPI_INT;
}
template <>
[[nodiscard]] inline MPI_Datatype type_of<double>() {
  return MPI_DOUBLE;
}
template <>
[[nodiscard]] inline MPI_Datatype type_of<char>() {
  return MPI_CHAR;
}

// On rank 0 the lists of all ranks, in rank order and of any length; empty on the others.
template <typename T>
[[nodiscard]] std::vector<std::vector<T>> gather_lists(const std::vector<T>& mine) {
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(world_rank() == 0 ? static_cast<std::size_t>(world_size()) : 0);
  MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<int> starts;
  int total = 0;
  for (const int each : counts) {
    starts.push_back(total);
    total += each;
  }
  std::vector<T> all(static_cast<std::size_t>(total));
  MPI_Gatherv(mine.data(), count, type_of<T>(), all.data(), counts.data(), starts.data(),
              type_of<T>(), 0, MPI_COMM_WORLD);
  std::vector<std::vector<T>> lists;
  for (std::size_t r = 0; r < counts.size(); ++r)
    lists.emplace_back(all.begin() + starts[r], all.begin() + starts[r] + counts[r]);
  return lists;
}

// On rank 0 the numbers of all ranks, concatenated, equally many per rank; empty on the others.
[[nodiscard]] inline std::vector<double> gather(const std::vector<double>& mine) {
  const int count = static_cast<int>(mine.size());
  std::vector<double> all(world_rank() == 0 ? mine.size() * static_cast<std::size_t>(world_size())
                                            : 0);
  MPI_Gather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return all;
}

// On rank 0 the host of every rank; empty on the others.
[[nodiscard]] inline std::vector<std::string> gather_hosts() {
  constexpr int length = static_cast<int>(max_host_name);
  char mine[length] = {};
  host_name().copy(mine, length - 1);
  const bool is_first = world_rank() == 0;
  std::vector<char> all(is_first ? static_cast<std::size_t>(world_size()) * length : 0);
  MPI_Gather(mine, length, MPI_CHAR, all.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < all.size(); at += length)
    hosts.emplace_back(&all[at]);
  return hosts;
}

// Rank 0's value, on all ranks.
[[nodiscard]] inline double of_first(double value) {
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return value;
}

// The sum over ranks, on all of them. Does not use a reduction: a study may force an algorithm that
// cannot reduce a single element.
[[nodiscard]] inline double sum(double mine) {
  double total = 0;
  for (const double each : gather({mine}))
    total += each;
  return of_first(total);
}

} // namespace seatrial::mpi
