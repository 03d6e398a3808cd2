// Ranks on a periodic Cartesian grid, and their data exchange with neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi/collective_data.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// All ranks of MPI_COMM_WORLD in rank order, with the extents chosen by MPI_Dims_create.
class NeighbourGrid {
public:
  // Collective.
  explicit NeighbourGrid(int dimensions) : extents_(static_cast<std::size_t>(dimensions)) {
    MPI_Dims_create(world_size(), dimensions, extents_.data());
    const std::vector<int> periodic(extents_.size(), 1);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents_.data(), periodic.data(), 0, &comm_);
    for (int d = 0; d < dimensions; ++d) {
      int before = 0;
      int after = 0;
      MPI_Cart_shift(comm_, d, 1, &before, &after);
      neighbours_.push_back(before);
      neighbours_.push_back(after);
    }
  }
  ~NeighbourGrid() { MPI_Comm_free(&comm_); }
  NeighbourGrid(const NeighbourGrid&) = delete;
  NeighbourGrid& operator=(const NeighbourGrid&) = delete;

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] const std::vector<int>& extents() const noexcept { return extents_; }

  // The previous and next rank in each dimension, in the order of MPI's blocks.
  [[nodiscard]] const std::vector<int>& neighbours() const noexcept { return neighbours_; }

  // Whether both neighbours of a dimension are the same rank.
  [[nodiscard]] bool is_narrow(std::size_t dimension) const noexcept {
    return extents_[dimension] <= 2;
  }

private:
  std::vector<int> extents_;
  std::vector<int> neighbours_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// One block per neighbour. The block sent to the next rank arrives there as the block of its
// previous rank. If both neighbours are the same rank, MPI 3 leaves open which of its two blocks is
// which (MPI 4.0, section 8.6, defines it): either order is accepted, but each block exactly once.
class NeighbourData : public Data {
public:
  NeighbourData(const NeighbourGrid& grid, std::byte* send, std::byte* receive, std::size_t bytes)
      : grid_(grid), send_(send), receive_(receive), bytes_(bytes),
        me_(static_cast<std::uint64_t>(world_rank())) {}

  void fill(std::uint64_t round) override {
    for (std::size_t at = 0; at < grid_.neighbours().size(); ++at) {
      const Block sent{.offset = at * bytes_, .bytes = bytes_, .source = me_, .target = at};
      mpi::fill({send_ + sent.offset, bytes_}, seed_of(round, sent));
      mpi::poison({receive_ + sent.offset, bytes_}, seed_of(round, received(at, at ^ 1)));
    }
  }

  [[nodiscard]] std::size_t wrong(std::uint64_t round) const override {
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < grid_.neighbours().size(); at += 2) {
      const auto crossed = wrong_in(receive_, round, received(at, at + 1)) +
                           wrong_in(receive_, round, received(at + 1, at));
      const auto straight = wrong_in(receive_, round, received(at, at)) +
                            wrong_in(receive_, round, received(at + 1, at + 1));
      wrong += grid_.is_narrow(at / 2) ? std::min(crossed, straight) : crossed;
    }
    return wrong;
  }

private:
  // The block received at position `at` if its sender had it at position `sent_at`.
  [[nodiscard]] Block received(std::size_t at, std::size_t sent_at) const noexcept {
    return {.offset = at * bytes_,
            .bytes = bytes_,
            .source = static_cast<std::uint64_t>(grid_.neighbours()[at]),
            .target = sent_at};
  }

  const NeighbourGrid& grid_;
  std::byte* send_;
  std::byte* receive_;
  std::size_t bytes_;
  std::uint64_t me_;
};

} // namespace seatrial::mpi
