// Sums of forces at nodes that several parts of the mesh share.
//
// Each part adds the forces of all parts in the same order, so that all copies of a node stay equal
// to the last bit. Parts of one rank read each other's buffers; two ranks exchange one message per
// step, which holds the borders of all their parts, while they compute what is not at a border.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "impact/array.hpp"
#include "impact/domain.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::impact {

template <class Real>
class Exchange {
public:
  // The part t of this rank is rank * threads + t.
  Exchange(const std::vector<std::unique_ptr<Domain<Real>>>& domains, int rank) {
    const auto threads = static_cast<std::uint32_t>(domains.size());
    const auto me = static_cast<std::uint32_t>(rank);
    struct Piece {
      std::uint32_t from, to; // parts
      std::size_t count;
    };
    std::map<std::uint32_t, std::vector<Piece>> sent; // by the other rank
    std::map<std::uint32_t, std::vector<Piece>> received;
    for (std::uint32_t t = 0; t < threads; ++t)
      for (const auto& border : domains[t]->borders()) {
        const auto other = border.part / threads;
        const auto part = me * threads + t;
        const auto count = 3 * border.nodes.size();
        sent[other].push_back({part, border.part, count});
        received[other].push_back({border.part, part, count});
      }
    const auto laid_out = [](std::vector<Piece>& pieces, Places& places, std::size_t peer) {
      std::ranges::sort(pieces, {}, [](const Piece& p) { return std::tuple(p.from, p.to); });
      std::size_t total = 0;
      for (const auto& piece : pieces) {
        places[{piece.from, piece.to}] = {peer, total};
        total += piece.count;
      }
      return total;
    };
    for (auto& [other, pieces] : sent) {
      auto& peer = peers_.emplace_back();
      peer.rank = static_cast<int>(other);
      const auto at = peers_.size() - 1;
      const auto total = laid_out(pieces, out_, at);
      for (auto& buffer : peer.out)
        buffer = Array<Real>(total);
      peer.in = Array<Real>(laid_out(received[other], in_, at));
      if (other == me)
        own_ = at;
      else
        largest_B_ = std::max(largest_B_, total * sizeof(Real));
    }
    rank_ = rank;
  }

  // Where the part `from` puts its numbers for `to`. Two steps use different buffers, so that a
  // part may go on while others still read.
  [[nodiscard]] Real* out(std::uint32_t from, std::uint32_t to, std::size_t step) {
    const auto [peer, offset] = out_.at({from, to});
    return peers_[peer].out[step % 2].data() + offset;
  }

  // The numbers of the part `from` for `to`, after finish().
  [[nodiscard]] const Real* in(std::uint32_t from, std::uint32_t to, std::size_t step) const {
    const auto [peer, offset] = in_.at({from, to});
    const auto& found = peers_[peer];
    return (peer == own_ ? found.out[step % 2].data() : found.in.data()) + offset;
  }

  // Sends this step's message to each neighbour, and is ready for theirs.
  void start(std::size_t step) {
    const auto type = mpi_type();
    receives_.clear();
    for (auto& peer : peers_)
      if (peer.rank != rank_)
        MPI_Irecv(peer.in.data(), static_cast<int>(peer.in.size()), type, peer.rank, tag,
                  MPI_COMM_WORLD, &receives_.emplace_back());
    for (auto& peer : peers_)
      if (peer.rank != rank_)
        MPI_Isend(peer.out[step % 2].data(), static_cast<int>(peer.out[step % 2].size()), type,
                  peer.rank, tag, MPI_COMM_WORLD, &sends_[step % 2].emplace_back());
  }

  // Returns when the messages of this step are there. Those that were sent one step before are
  // then gone; a neighbour that is late may fetch this step's meanwhile.
  void finish(std::size_t step) {
    wait_for(receives_);
    wait_for(sends_[(step + 1) % 2]);
  }

  // All messages that were sent are gone.
  void settle() {
    for (auto& sends : sends_)
      wait_for(sends);
  }

  [[nodiscard]] std::size_t largest_B() const noexcept { return largest_B_; }
  // Ranks that this one exchanges messages with.
  [[nodiscard]] std::size_t neighbours() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(peers_, [this](const Peer& peer) { return peer.rank != rank_; }));
  }

private:
  static constexpr int tag = 1;
  struct Peer {
    int rank = 0;
    Array<Real> out[2];
    Array<Real> in;
  };
  struct Place {
    std::size_t peer, offset;
  };
  using Places = std::map<std::tuple<std::uint32_t, std::uint32_t>, Place>;

  static void wait_for(std::vector<MPI_Request>& requests) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
  }

  static MPI_Datatype mpi_type() { return sizeof(Real) == 8 ? MPI_DOUBLE : MPI_FLOAT; }

  std::vector<Peer> peers_;
  Places out_;
  Places in_;
  std::size_t own_ = static_cast<std::size_t>(-1);
  std::size_t largest_B_ = 0;
  int rank_ = 0;
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Request> sends_[2]; // by step
};

} // namespace seatrial::impact
