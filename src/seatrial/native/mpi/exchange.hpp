// Two ranks that send each other a window of messages at once, again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "pages.hpp"

namespace seatrial::mpi {

class Exchange {
public:
  // Huge pages would be granted to some ranks and not to others.
  Exchange(std::size_t bytes, std::size_t window)
      : bytes_(bytes), window_(window), sent_(bytes * window, false),
        received_(bytes * window, false), requests_(2 * window, MPI_REQUEST_NULL) {}

  // What this rank sends from now on; no byte of what it receives is there already.
  void fill(std::uint64_t mine, std::uint64_t others) {
    mpi::fill({sent_.data(), bytes_ * window_}, mine);
    mpi::spoil({received_.data(), bytes_ * window_}, others);
  }

  // So many windows, in both directions at once.
  void run(int other, std::uint64_t windows) {
    for (std::uint64_t i = 0; i < windows; ++i) {
      for (std::size_t k = 0; k < window_; ++k) {
        MPI_Irecv(received_.data() + k * bytes_, static_cast<int>(bytes_), MPI_BYTE, other, tag,
                  MPI_COMM_WORLD, &requests_[k]);
        MPI_Isend(sent_.data() + k * bytes_, static_cast<int>(bytes_), MPI_BYTE, other, tag,
                  MPI_COMM_WORLD, &requests_[window_ + k]);
      }
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
  }

  // How many bytes of the last window are not what the other rank sent.
  [[nodiscard]] std::size_t wrong(std::uint64_t others) const {
    return wrong_bytes({received_.data(), bytes_ * window_}, others);
  }

private:
  static constexpr int tag = 3;

  std::size_t bytes_;
  std::size_t window_;
  Pages sent_;
  Pages received_;
  std::vector<MPI_Request> requests_;
};

} // namespace seatrial::mpi
