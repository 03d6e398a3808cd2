// The exchange of the points around each rank's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/mpi.hpp"
#include "multigrid/part.hpp"

namespace seatrial::multigrid {

class RankHalo {
public:
  // `positions`: where in a vector the row of each number is; the columns of others follow from
  // `first_column` on.
  RankHalo(const Part& part, const std::vector<std::uint32_t>& positions, std::size_t first_column)
      : requests_(2 * part.neighbours().size(), MPI_REQUEST_NULL) {
    for (const auto& neighbour : part.neighbours()) {
      Message message{.rank = static_cast<int>(neighbour.part),
                      .count = static_cast<int>(neighbour.count),
                      .to = first_column + neighbour.first_column - part.rows(),
                      .from = sent_.size()};
      for (const auto row : neighbour.sent)
        sent_.push_back(positions[row]);
      messages_.push_back(message);
    }
    buffer_.resize(sent_.size());
  }

  void exchange(double* x) {
    for (std::size_t i = 0; i < messages_.size(); ++i)
      MPI_Irecv(x + messages_[i].to, messages_[i].count, MPI_DOUBLE, messages_[i].rank, tag,
                MPI_COMM_WORLD, &requests_[i]);
    for (std::size_t i = 0; i < sent_.size(); ++i)
      buffer_[i] = x[sent_[i]];
    for (std::size_t i = 0; i < messages_.size(); ++i)
      MPI_Isend(buffer_.data() + messages_[i].from, messages_[i].count, MPI_DOUBLE,
                messages_[i].rank, tag, MPI_COMM_WORLD, &requests_[messages_.size() + i]);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  [[nodiscard]] double bytes() const noexcept { return static_cast<double>(sent_.size()) * 8; }

private:
  static constexpr int tag = 7;

  struct Message {
    int rank;
    int count;
    std::size_t to;   // first element that is received
    std::size_t from; // first element that is sent, in the buffer
  };

  std::vector<Message> messages_;
  std::vector<std::uint32_t> sent_;
  std::vector<double> buffer_;
  std::vector<MPI_Request> requests_;
};

} // namespace seatrial::multigrid
