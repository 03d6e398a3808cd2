// mpi.barrier to mpi.exscan: the time of collective operations over all ranks, by size.
//
// Sizes are counted as in the OSU micro-benchmarks: the message of bcast; each rank's contribution
// to gather and allgather and its share of scatter; each pair's block of the all-to-all operations;
// the whole vector of reductions. Operations with per-rank counts get equal ones.
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi/collective_call.hpp"
#include "mpi/collective_data.hpp"
#include "mpi/collective_layout.hpp"
#include "mpi/collective_program.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

constexpr int root = 0;

struct Settings {
  mpi::CollectiveSettings common;
  std::string datatype;
  mpi::Reduction reduction;
};

Settings prepare(Arguments& arguments) {
  mpi::CollectiveSettings common(
      arguments, {"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather",
                  "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce", "allreduce",
                  "reduce-scatter", "reduce-scatter-block", "scan", "exscan"});
  const auto reduction = arguments.choice("--reduction", "sum", {"sum", "max", "min"});
  return {.common = std::move(common),
          .datatype = std::string(
              arguments.choice("--datatype", "MPI_CHAR",
                               {"MPI_CHAR", "MPI_INT", "MPI_LONG", "MPI_FLOAT", "MPI_DOUBLE"})),
          .reduction = mpi::reduction_named(reduction)};
}

// The maximum number of blocks of this size in a rank's buffers.
struct Room {
  std::size_t send;
  std::size_t receive;
};

Room room_for(std::string_view operation, std::size_t ranks) {
  if (operation == "barrier")
    return {0, 0};
  if (operation.starts_with("alltoall"))
    return {ranks, ranks};
  if (operation.starts_with("allgather"))
    return {1, ranks};
  const bool is_first = mpi::world_rank() == root;
  if (operation.starts_with("gather"))
    return {1, is_first ? ranks : 0};
  if (operation.starts_with("scatter"))
    return {is_first ? ranks : 0, 1};
  return {1, 1};
}

class Factory {
public:
  Factory(const Settings& settings, std::byte* send, std::byte* receive)
      : settings_(settings), operation_(settings.common.operation), send_(send), receive_(receive),
        rank_(mpi::world_rank()), ranks_(mpi::world_size()) {}

  [[nodiscard]] mpi::Operation make(std::size_t bytes) const {
    if (operation_ == "barrier")
      return {nullptr, moved({}, {}), call(SEATRIAL_COLLECTIVE(Barrier, barrier))};
    if (operation_ == "bcast")
      return broadcast(bytes);
    if (operation_.starts_with("alltoall"))
      return all_to_all(bytes);
    if (operation_.find("gather") != std::string::npos)
      return gathered(bytes);
    if (operation_ == "scatter" || operation_ == "scatterv")
      return scattered(bytes);
    if (settings_.datatype == "MPI_CHAR")
      return reduced<char>(bytes, MPI_CHAR);
    if (settings_.datatype == "MPI_INT")
      return reduced<int>(bytes, MPI_INT);
    if (settings_.datatype == "MPI_LONG")
      return reduced<long>(bytes, MPI_LONG);
    if (settings_.datatype == "MPI_FLOAT")
      return reduced<float>(bytes, MPI_FLOAT);
    return reduced<double>(bytes, MPI_DOUBLE);
  }

private:
  using Blocks = std::vector<mpi::Block>;

  [[nodiscard]] std::unique_ptr<mpi::Data> moved(Blocks sent, Blocks received) const {
    return std::make_unique<mpi::MovedData>(send_, receive_, std::move(sent), std::move(received));
  }

  template <class Form, class... Values>
  [[nodiscard]] std::unique_ptr<mpi::Call> call(Form form, Values... values) const {
    return mpi::make_call(form, MPI_COMM_WORLD, values...);
  }

  [[nodiscard]] std::uint64_t me() const { return static_cast<std::uint64_t>(rank_); }
  [[nodiscard]] std::size_t peers() const { return static_cast<std::size_t>(ranks_); }
  [[nodiscard]] Blocks one(std::size_t bytes, std::uint64_t source, std::uint64_t target) const {
    return {{.offset = 0, .bytes = bytes, .source = source, .target = target}};
  }
  static constexpr std::uint64_t everybody = 0; // a target: all ranks get the same data
  static constexpr auto each = [](std::size_t i) -> std::uint64_t { return i; };
  [[nodiscard]] static auto always(std::uint64_t rank) {
    return [rank](std::size_t) { return rank; };
  }

  // The root sends from the buffer in which the others receive.
  [[nodiscard]] mpi::Operation broadcast(std::size_t bytes) const {
    auto kept = std::make_shared<mpi::Message>(MPI_CHAR, bytes);
    auto* buffer = rank_ == root ? send_ : receive_;
    auto data = rank_ == root ? moved(one(bytes, root, everybody), {})
                              : moved({}, one(bytes, root, everybody));
    auto calls = call(SEATRIAL_COLLECTIVE(Bcast, bcast), buffer, kept->count, kept->type, root);
    return {kept, std::move(data), std::move(calls)};
  }

  [[nodiscard]] mpi::Operation all_to_all(std::size_t bytes) const {
    auto kept = std::make_shared<mpi::EqualBlocks>(bytes, peers());
    auto data = moved(mpi::blocks(peers(), bytes, always(me()), each),
                      mpi::blocks(peers(), bytes, each, always(me())));
    const auto& [message, counts, places, types, byte_places, addresses] = *kept;
    std::unique_ptr<mpi::Call> calls;
    if (operation_ == "alltoall")
      calls = call(SEATRIAL_COLLECTIVE(Alltoall, alltoall), send_, message.count, message.type,
                   receive_, message.count, message.type);
    else if (operation_ == "alltoallv")
      calls = call(SEATRIAL_COLLECTIVE(Alltoallv, alltoallv), send_, counts.data(), places.data(),
                   message.type, receive_, counts.data(), places.data(), message.type);
    else if (addresses.back() > INT_MAX)
      throw Failure(Exit::usage,
                    "--sizes: alltoallw needs block displacements that fit into an int");
    else
      calls =
          call(SEATRIAL_COLLECTIVE(Alltoallw, alltoallw), send_, counts.data(), byte_places.data(),
               types.data(), receive_, counts.data(), byte_places.data(), types.data());
    return {kept, std::move(data), std::move(calls)};
  }

  [[nodiscard]] mpi::Operation gathered(std::size_t bytes) const {
    auto kept = std::make_shared<mpi::EqualBlocks>(bytes, peers());
    const bool is_for_all = operation_.starts_with("all");
    auto data =
        moved(one(bytes, me(), everybody),
              is_for_all || rank_ == root ? mpi::blocks(peers(), bytes, each, always(everybody))
                                          : Blocks{});
    const auto& [message, counts, places, types, byte_places, addresses] = *kept;
    std::unique_ptr<mpi::Call> calls;
    if (operation_ == "gather")
      calls = call(SEATRIAL_COLLECTIVE(Gather, gather), send_, message.count, message.type,
                   receive_, message.count, message.type, root);
    else if (operation_ == "gatherv")
      calls = call(SEATRIAL_COLLECTIVE(Gatherv, gatherv), send_, message.count, message.type,
                   receive_, counts.data(), places.data(), message.type, root);
    else if (operation_ == "allgather")
      calls = call(SEATRIAL_COLLECTIVE(Allgather, allgather), send_, message.count, message.type,
                   receive_, message.count, message.type);
    else
      calls = call(SEATRIAL_COLLECTIVE(Allgatherv, allgatherv), send_, message.count, message.type,
                   receive_, counts.data(), places.data(), message.type);
    return {kept, std::move(data), std::move(calls)};
  }

  [[nodiscard]] mpi::Operation scattered(std::size_t bytes) const {
    auto kept = std::make_shared<mpi::EqualBlocks>(bytes, peers());
    auto data = moved(rank_ == root ? mpi::blocks(peers(), bytes, always(root), each) : Blocks{},
                      one(bytes, root, me()));
    const auto& [message, counts, places, types, byte_places, addresses] = *kept;
    std::unique_ptr<mpi::Call> calls;
    if (operation_ == "scatter")
      calls = call(SEATRIAL_COLLECTIVE(Scatter, scatter), send_, message.count, message.type,
                   receive_, message.count, message.type, root);
    else
      calls = call(SEATRIAL_COLLECTIVE(Scatterv, scatterv), send_, counts.data(), places.data(),
                   message.type, receive_, message.count, message.type, root);
    return {kept, std::move(data), std::move(calls)};
  }

  template <class Element>
  [[nodiscard]] mpi::Operation reduced(std::size_t bytes, MPI_Datatype type) const {
    using Data = mpi::ReducedData<Element>;
    const std::size_t elements = bytes / sizeof(Element);
    if (bytes % sizeof(Element) != 0 || elements == 0 || elements > INT_MAX)
      throw Failure(Exit::usage, "--sizes: " + std::to_string(bytes) +
                                     " B are not a number of elements that fits into an int");
    auto counts = std::make_shared<std::vector<int>>(shares(elements));
    const int count = static_cast<int>(elements);
    const MPI_Op reduction = settings_.reduction == mpi::Reduction::sum   ? MPI_SUM
                             : settings_.reduction == mpi::Reduction::max ? MPI_MAX
                                                                          : MPI_MIN;
    typename Data::Result result{.first = 0, .count = elements};
    std::unique_ptr<mpi::Call> calls;
    if (operation_ == "reduce") {
      result.count = rank_ == root ? elements : 0;
      calls =
          call(SEATRIAL_COLLECTIVE(Reduce, reduce), send_, receive_, count, type, reduction, root);
    } else if (operation_ == "allreduce") {
      calls =
          call(SEATRIAL_COLLECTIVE(Allreduce, allreduce), send_, receive_, count, type, reduction);
    } else if (operation_ == "scan") {
      result.scope = mpi::Scope::up_to_me;
      calls = call(SEATRIAL_COLLECTIVE(Scan, scan), send_, receive_, count, type, reduction);
    } else if (operation_ == "exscan") {
      result.scope = mpi::Scope::before_me;
      calls = call(SEATRIAL_COLLECTIVE(Exscan, exscan), send_, receive_, count, type, reduction);
    } else {
      result.first = std::accumulate(counts->begin(), counts->begin() + rank_, std::size_t{0});
      result.count = static_cast<std::size_t>((*counts)[me()]);
      if (operation_ == "reduce-scatter")
        calls = call(SEATRIAL_COLLECTIVE(Reduce_scatter, reduce_scatter), send_, receive_,
                     counts->data(), type, reduction);
      else if (elements % peers() != 0)
        throw Failure(Exit::usage,
                      "--sizes: " + std::to_string(bytes) +
                          " B cannot be divided equally between the ranks of reduce-scatter-block");
      else
        calls = call(SEATRIAL_COLLECTIVE(Reduce_scatter_block, reduce_scatter_block), send_,
                     receive_, counts->front(), type, reduction);
    }
    return {counts,
            std::make_unique<Data>(send_, receive_, elements, result, settings_.reduction, rank_,
                                   ranks_),
            std::move(calls)};
  }

  // How a vector is distributed: the remainder goes to the first ranks, one element each.
  [[nodiscard]] std::vector<int> shares(std::size_t elements) const {
    std::vector<int> counts;
    for (std::size_t i = 0; i < peers(); ++i)
      counts.push_back(static_cast<int>(elements / peers() + (i < elements % peers() ? 1 : 0)));
    return counts;
  }

  const Settings& settings_;
  const std::string& operation_;
  std::byte* send_;
  std::byte* receive_;
  int rank_;
  int ranks_;
};

void measure(mpi::Program& program, const Settings& settings) {
  const auto& sizes = settings.common.sizes;
  const std::size_t largest = sizes.empty() ? 0 : std::ranges::max(sizes);
  const auto [sends, receives] =
      room_for(settings.common.operation, static_cast<std::size_t>(program.ranks));
  mpi::require_memory((sends + receives) * largest);
  const Pages send(sends * largest + 64, true);
  const Pages receive(receives * largest + 64, true);
  const Factory factory(settings, send.data(), receive.data());
  mpi::CollectiveRun run(program, settings.common,
                         [&](std::size_t bytes) { return factory.make(bytes); });
  run.measure();
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("collectives", argc, argv, prepare, measure);
}
