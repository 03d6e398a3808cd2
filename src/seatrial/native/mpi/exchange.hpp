// Two ranks that repeatedly send each other a window of messages.
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
  // No huge pages: some ranks would get them and others not.
  Exchange(std::size_t bytes, std::size_t window)
      : bytes_(bytes), window_(window), sent_(bytes * window, false),
        received_(bytes * window, false), requests_(2 * window, MPI_REQUEST_NULL) {}

  // Fills the send buffer; the receive buffer gets different bytes than those expected.
  void fill(std::uint64_t mine, std::uint64_t others) {
    mpi::fill({sent_.data(), bytes_ * window_}, mine);
    mpi::poison({received_.data(), bytes_ * window_}, others);
  }

  // Exchanges this many windows, in both directions at once.
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

  // The number of bytes of the last window that differ from what the other rank sent.
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
