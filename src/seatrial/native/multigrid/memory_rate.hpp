// The rate of memory as a solver uses it: all threads of all ranks at once, in as much memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "clock.hpp"
#include "mpi/mpi.hpp"
#include "multigrid/slices.hpp"
#include "optimisation_barrier.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace seatrial::multigrid {

// The faster one of a triad with non-temporal stores and of a sum, in B/s of this rank; the lowest
// over all ranks. Collective. A solver mostly reads, so a triad alone may be slower than it is.
[[nodiscard]] inline double memory_Bps(Team& team, std::size_t bytes) {
  constexpr int tries = 7;
  const std::size_t vectors = std::max<std::size_t>(bytes / 3 / sizeof(Vector<double>), 1024);
  Untouched<double> a(vectors * width);
  Untouched<double> b(vectors * width);
  Untouched<double> c(vectors * width);
  const auto on_all = [&](auto action) {
    MPI_Barrier(MPI_COMM_WORLD);
    return timed([&] {
             team.run([&](std::size_t member) {
               const auto first = vectors * member / team.size();
               const auto end = vectors * (member + 1) / team.size();
               action(first * width, end * width);
             });
           })
        .elapsed_s();
  };
  static_cast<void>(on_all([&](std::size_t first, std::size_t end) {
    for (auto at = first; at < end; ++at)
      a[at] = b[at] = c[at] = static_cast<double>(at % 3);
  }));
  double fastest_triad = std::numeric_limits<double>::infinity();
  double fastest_sum = fastest_triad;
  for (int i = 0; i < tries; ++i) {
    fastest_triad = std::min(fastest_triad, on_all([&](std::size_t first, std::size_t end) {
                               for (auto at = first; at < end; at += width)
                                 store_nontemporal(a.data() + at,
                                                   load(b.data() + at) + 0.5 * load(c.data() + at));
                               drain_nontemporal_stores();
                             }));
    fastest_sum = std::min(fastest_sum, on_all([&](std::size_t first, std::size_t end) {
                             Vector<double> sums[4] = {};
                             for (auto at = first; at < end; at += width) {
                               sums[0] += load(a.data() + at);
                               sums[1] += load(b.data() + at);
                               sums[2] += load(c.data() + at);
                             }
                             do_not_eliminate(sums[0] + sums[1] + sums[2]);
                           }));
  }
  double rate = static_cast<double>(3 * vectors * sizeof(Vector<double>)) /
                std::min(fastest_triad, fastest_sum);
  MPI_Allreduce(MPI_IN_PLACE, &rate, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return rate;
}

} // namespace seatrial::multigrid
