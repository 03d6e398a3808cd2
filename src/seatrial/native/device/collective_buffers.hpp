// The data of collective operations between devices: filled on the host before an operation,
// checked there after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device/collective.hpp"
#include "device/device.hpp"
#include "mpi/collective_data.hpp"

namespace seatrial::device {

// The buffers of a rank, large enough for each of its operations. In place both are the larger one.
class CollectiveBuffers {
public:
  CollectiveBuffers(Device& device, Queue& queue, Where where, std::size_t sent,
                    std::size_t received)
      : queue_(queue), send_(device.allocate(sent, where)),
        receive_(device.allocate(received, where)), sent_(sent), received_(received) {}

  [[nodiscard]] Memory& send() const noexcept { return *send_; }
  [[nodiscard]] Memory& receive() const noexcept { return *receive_; }
  [[nodiscard]] Memory& larger() const noexcept {
    return received_.size() >= sent_.size() ? *receive_ : *send_;
  }
  // What the device's buffers get, and have.
  [[nodiscard]] std::byte* sent() noexcept { return sent_.data(); }
  [[nodiscard]] std::byte* received() noexcept { return received_.data(); }

  // In place, what is sent replaces a part of what must be overwritten.
  void upload(const Operation& operation) {
    queue_.write(*operation.receive.memory, operation.receive.at, received_.data(),
                 operation.shape.received);
    queue_.write(*operation.send.memory, operation.send.at, sent_.data(), operation.shape.sent);
    queue_.finish();
  }
  void download(const Operation& operation) {
    std::fill_n(received_.begin(), operation.shape.received, std::byte{0xff});
    queue_.read(received_.data(), *operation.receive.memory, operation.receive.at,
                operation.shape.received);
    queue_.finish();
  }

private:
  Queue& queue_;
  std::unique_ptr<Memory> send_;
  std::unique_ptr<Memory> receive_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

namespace detail {

template <class Number>
[[nodiscard]] std::unique_ptr<mpi::Data>
reduced_data(const Operation& operation, CollectiveBuffers& buffers, int rank, int ranks) {
  using Data = mpi::ReducedData<Number>;
  const auto elements = operation.shape.size / sizeof(Number);
  typename Data::Result result{.first = 0, .count = elements};
  if (operation.collective == Collective::reduce_scatter) {
    result.count = operation.shape.part / sizeof(Number);
    result.first = static_cast<std::size_t>(rank) * result.count;
  }
  if (operation.collective == Collective::reduce && rank != collective_root)
    result.count = 0;
  return std::make_unique<Data>(buffers.sent(), buffers.received(), elements, result,
                                operation.reduction, rank, ranks);
}

[[nodiscard]] inline std::unique_ptr<mpi::Data> moved_data(const Operation& operation,
                                                           CollectiveBuffers& buffers, int rank,
                                                           int ranks, bool root_receives) {
  using mpi::Block;
  constexpr std::uint64_t everybody = 0;
  const auto me = static_cast<std::uint64_t>(rank);
  const auto all = static_cast<std::uint64_t>(ranks);
  const auto part = operation.shape.part;
  std::vector<Block> sent;
  std::vector<Block> received;
  const auto add = [&](std::vector<Block>& blocks, std::uint64_t source, std::uint64_t target) {
    blocks.push_back(
        {.offset = blocks.size() * part, .bytes = part, .source = source, .target = target});
  };
  switch (operation.collective) {
  case Collective::all_gather:
    add(sent, me, everybody);
    for (std::uint64_t i = 0; i < all; ++i)
      add(received, i, everybody);
    break;
  case Collective::all_to_all:
    for (std::uint64_t i = 0; i < all; ++i) {
      add(sent, me, i);
      add(received, i, me);
    }
    break;
  case Collective::send_receive:
    add(sent, me, (me + 1) % all);
    add(received, (me + all - 1) % all, me);
    break;
  default: // a broadcast
    if (rank == collective_root)
      add(sent, me, everybody);
    if (rank != collective_root || root_receives)
      add(received, collective_root, everybody);
  }
  return std::make_unique<mpi::MovedData>(buffers.sent(), buffers.received(), std::move(sent),
                                          std::move(received));
}

} // namespace detail

// What the buffers of the rank hold before the operation, and must hold after it.
[[nodiscard]] inline std::unique_ptr<mpi::Data> data_of(const Operation& operation,
                                                        CollectiveBuffers& buffers, int rank,
                                                        int ranks, bool root_receives) {
  const bool reduces = operation.collective == Collective::all_reduce ||
                       operation.collective == Collective::reduce_scatter ||
                       operation.collective == Collective::reduce;
  if (!reduces)
    return detail::moved_data(operation, buffers, rank, ranks, root_receives);
  switch (operation.element) {
  case Element::fp32:
    return detail::reduced_data<float>(operation, buffers, rank, ranks);
  case Element::fp64:
    return detail::reduced_data<double>(operation, buffers, rank, ranks);
  case Element::int8:
    return detail::reduced_data<signed char>(operation, buffers, rank, ranks);
  case Element::int32:
    return detail::reduced_data<std::int32_t>(operation, buffers, rank, ranks);
  case Element::int64:
    break;
  }
  return detail::reduced_data<std::int64_t>(operation, buffers, rank, ranks);
}

} // namespace seatrial::device
