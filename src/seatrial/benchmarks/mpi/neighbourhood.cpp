// mpi.neighbor-allgather to mpi.neighbor-alltoallw: the time for ranks on a periodic grid to
// exchange data with their neighbours. The size is that of one block to one neighbour.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/collective_call.hpp"
#include "mpi/collective_data.hpp"
#include "mpi/collective_layout.hpp"
#include "mpi/collective_program.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/neighbour_grid.hpp"
#include "mpi/program.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

struct Settings {
  mpi::CollectiveSettings common;
  int dimensions;
};

Settings prepare(Arguments& arguments) {
  mpi::CollectiveSettings common(arguments,
                                 {"neighbor-allgather", "neighbor-allgatherv", "neighbor-alltoall",
                                  "neighbor-alltoallv", "neighbor-alltoallw"});
  return {.common = std::move(common), .dimensions = arguments.number("--dimensions", 2, 1, 16)};
}

class Factory {
public:
  Factory(const Settings& settings, const mpi::NeighbourGrid& grid, std::byte* send,
          std::byte* receive)
      : operation_(settings.common.operation), grid_(grid), send_(send), receive_(receive) {}

  [[nodiscard]] mpi::Operation make(std::size_t bytes) const {
    auto kept = std::make_shared<mpi::EqualBlocks>(bytes, grid_.neighbours().size());
    const bool gathers = operation_.starts_with("neighbor-allgather");
    auto data = gathers ? gathered(bytes)
                        : std::make_unique<mpi::NeighbourData>(grid_, send_, receive_, bytes);
    return {kept, std::move(data), gathers ? gather(*kept) : exchange(*kept)};
  }

private:
  [[nodiscard]] std::unique_ptr<mpi::Data> gathered(std::size_t bytes) const {
    const auto me = static_cast<std::uint64_t>(mpi::world_rank());
    const auto& neighbours = grid_.neighbours();
    return std::make_unique<mpi::MovedData>(
        send_, receive_,
        std::vector<mpi::Block>{{.offset = 0, .bytes = bytes, .source = me, .target = 0}},
        mpi::blocks(
            neighbours.size(), bytes,
            [&](std::size_t i) { return static_cast<std::uint64_t>(neighbours[i]); },
            [](std::size_t) { return std::uint64_t{0}; }));
  }

  [[nodiscard]] std::unique_ptr<mpi::Call> gather(const mpi::EqualBlocks& kept) const {
    const auto& message = kept.message;
    if (operation_ == "neighbor-allgather")
      return mpi::make_call(SEATRIAL_COLLECTIVE(Neighbor_allgather, neighbor_allgather),
                            grid_.comm(), send_, message.count, message.type, receive_,
                            message.count, message.type);
    return mpi::make_call(SEATRIAL_COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv),
                          grid_.comm(), send_, message.count, message.type, receive_,
                          kept.counts.data(), kept.places.data(), message.type);
  }

  [[nodiscard]] std::unique_ptr<mpi::Call> exchange(const mpi::EqualBlocks& kept) const {
    const auto& message = kept.message;
    const auto* counts = kept.counts.data();
    if (operation_ == "neighbor-alltoall")
      return mpi::make_call(SEATRIAL_COLLECTIVE(Neighbor_alltoall, neighbor_alltoall), grid_.comm(),
                            send_, message.count, message.type, receive_, message.count,
                            message.type);
    if (operation_ == "neighbor-alltoallv")
      return mpi::make_call(SEATRIAL_COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv),
                            grid_.comm(), send_, counts, kept.places.data(), message.type, receive_,
                            counts, kept.places.data(), message.type);
    return mpi::make_call(SEATRIAL_COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw), grid_.comm(),
                          send_, counts, kept.addresses.data(), kept.types.data(), receive_, counts,
                          kept.addresses.data(), kept.types.data());
  }

  const std::string& operation_;
  const mpi::NeighbourGrid& grid_;
  std::byte* send_;
  std::byte* receive_;
};

void measure(mpi::Program& program, const Settings& settings) {
  const std::size_t largest = std::ranges::max(settings.common.sizes);
  const mpi::NeighbourGrid grid(settings.dimensions);
  program.note("grid", grid.extents());
  const std::size_t bytes = grid.neighbours().size() * largest;
  mpi::require_memory(2 * bytes);
  const Pages send(bytes + 64, true);
  const Pages receive(bytes + 64, true);
  const Factory factory(settings, grid, send.data(), receive.data());
  mpi::CollectiveRun run(program, settings.common,
                         [&](std::size_t size) { return factory.make(size); });
  run.measure();
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("neighbourhood", argc, argv, prepare, measure);
}
