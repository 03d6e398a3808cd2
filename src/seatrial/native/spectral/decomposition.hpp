// How the box is divided between the ranks, and the exchanges between its three forms.
//
// The ranks form a grid of `rows` x `columns`; with one row the box is divided into slabs, else
// into pencils. In wave space a rank has a part of kx (its row's) and of ky (its column's) with all
// of kz; between the transforms all of ky and a part of z; in physical space all of x, a part of y
// (its row's) and of z (its column's). Wave numbers that dealiasing sets to zero are not stored or
// sent.
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include "failure.hpp"
#include "mpi/mpi.hpp"
#include "spectral/complex.hpp"

namespace seatrial::spectral {

// A range divided into contiguous parts whose sizes differ by at most one.
struct Partition {
  std::size_t total;
  std::size_t parts;

  [[nodiscard]] std::size_t begin(std::size_t part) const noexcept { return total * part / parts; }
  [[nodiscard]] std::size_t count(std::size_t part) const noexcept {
    return begin(part + 1) - begin(part);
  }
};

// One all-to-all exchange within a communicator, both ways. A block holds the data between two
// ranks for `most` fields; if fewer are sent, these are the first part of it.
template <class Real>
class Exchange {
public:
  // Elements of one field that go to, and come from, each rank.
  Exchange(MPI_Comm comm, const std::vector<std::size_t>& sent,
           const std::vector<std::size_t>& received, std::size_t most)
      : comm_(comm), sent_(sent, most), received_(received, most) {
    MPI_Type_contiguous(2, sizeof(Real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT, &type_);
    MPI_Type_commit(&type_);
  }
  ~Exchange() { MPI_Type_free(&type_); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] bool is_needed() const noexcept { return sent_.each.size() > 1; }
  [[nodiscard]] std::size_t sent_elements() const noexcept { return sent_.all; }
  [[nodiscard]] std::size_t received_elements() const noexcept { return received_.all; }
  // Where a block begins, in elements.
  [[nodiscard]] std::size_t sent_at(std::size_t rank) const { return sent_.at(rank); }
  [[nodiscard]] std::size_t received_at(std::size_t rank) const { return received_.at(rank); }
  // Elements of one field that leave this rank.
  [[nodiscard]] std::size_t to_others(std::size_t me) const {
    std::size_t total = 0;
    for (std::size_t rank = 0; rank < sent_.each.size(); ++rank)
      total += rank == me ? 0 : sent_.each[rank];
    return total;
  }

  void there(const Complex<Real>* from, Complex<Real>* to, std::size_t fields) const {
    run(from, sent_, to, received_, fields);
  }
  void back(const Complex<Real>* from, Complex<Real>* to, std::size_t fields) const {
    run(from, received_, to, sent_, fields);
  }

private:
  struct Side {
    Side(const std::vector<std::size_t>& elements, std::size_t most) : each(elements) {
      for (const auto count : each) {
        if (all > INT_MAX)
          throw Failure(Exit::usage,
                        "--n: a rank exchanges more than 2^31 numbers; use more ranks");
        places.push_back(static_cast<int>(all));
        all += count * most;
      }
      if (all > INT_MAX)
        throw Failure(Exit::usage, "--n: a rank exchanges more than 2^31 numbers; use more ranks");
    }
    [[nodiscard]] std::size_t at(std::size_t rank) const {
      return static_cast<std::size_t>(places[rank]);
    }
    [[nodiscard]] std::vector<int> counts(std::size_t fields) const {
      std::vector<int> counts;
      for (const auto count : each)
        counts.push_back(static_cast<int>(count * fields));
      return counts;
    }
    std::vector<std::size_t> each;
    std::vector<int> places;
    std::size_t all = 0;
  };

  void run(const Complex<Real>* from, const Side& sends, Complex<Real>* to, const Side& receives,
           std::size_t fields) const {
    MPI_Alltoallv(from, sends.counts(fields).data(), sends.places.data(), type_, to,
                  receives.counts(fields).data(), receives.places.data(), type_, comm_);
  }

  MPI_Comm comm_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Side sent_;
  Side received_;
};

// The ranks' grid, with this rank's place in it.
class RankGrid {
public:
  RankGrid(std::size_t grid_rows, std::size_t grid_columns)
      : rows(grid_rows), columns(grid_columns),
        row(static_cast<std::size_t>(mpi::world_rank()) % grid_rows),
        column(static_cast<std::size_t>(mpi::world_rank()) / grid_rows) {
    MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(column), static_cast<int>(row), &over_rows_);
    MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(row), static_cast<int>(column), &over_columns_);
  }
  ~RankGrid() {
    MPI_Comm_free(&over_rows_);
    MPI_Comm_free(&over_columns_);
  }
  RankGrid(const RankGrid&) = delete;
  RankGrid& operator=(const RankGrid&) = delete;

  // The ranks of all rows in this column: neighbours, since they exchange more.
  [[nodiscard]] MPI_Comm over_rows() const noexcept { return over_rows_; }
  [[nodiscard]] MPI_Comm over_columns() const noexcept { return over_columns_; }

  const std::size_t rows;
  const std::size_t columns;
  const std::size_t row;
  const std::size_t column;

private:
  MPI_Comm over_rows_ = MPI_COMM_NULL;
  MPI_Comm over_columns_ = MPI_COMM_NULL;
};

} // namespace seatrial::spectral
