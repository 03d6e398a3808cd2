// Collective operations between devices by MPI: in the devices' memory, or through the host's.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>

#include "device/collective.hpp"
#include "device/cuda.hpp"
#include "mpi/cuda_memory.hpp"
#include "mpi/mpi.hpp"
#include "unsupported.hpp"

namespace seatrial::mpi {

class MpiCommunicator : public device::Communicator {
public:
  // Throws Unsupported if messages cannot lie in this device's memory.
  explicit MpiCommunicator(const device::Device& device) {
    if (device.facts().backend != "cuda")
      throw Unsupported("buffers", device.facts().name +
                                       ": memory of OpenCL has no address that MPI could take; use "
                                       "buffers=staged, or a CUDA device");
    try {
      require_cuda_memory();
    } catch (const Unsupported& missing) {
      throw Unsupported(missing.need(), std::string(missing.what()) + ", or buffers=staged");
    }
  }

  [[nodiscard]] std::string name() const override { return library_name(); }
  [[nodiscard]] device::Convention convention() const override {
    return {.is_asynchronous = false, .root_receives = false, .scatters_in_order = false};
  }
  void finish() override {}

  void start(const device::Operation& operation) override {
    run(operation, address_for_mpi(*operation.send.memory, operation.send.at),
        address_for_mpi(*operation.receive.memory, operation.receive.at), operation.is_in_place);
  }

protected:
  MpiCommunicator() = default;

  // One operation on these addresses.
  static void run(const device::Operation& operation, void* send, void* receive, bool in_place) {
    using device::Collective;
    const auto each = device::bytes_of(operation.element);
    const int whole = count_of(operation.shape.size / each);
    const int part = count_of(operation.shape.part / each);
    const auto type = type_of_element(operation.element);
    const auto reduction = reduction_of(operation.reduction);
    const int rank = world_rank();
    const int ranks = world_size();
    void* const source = in_place ? MPI_IN_PLACE : send;
    switch (operation.collective) {
    case Collective::all_reduce:
      MPI_Allreduce(source, receive, whole, type, reduction, MPI_COMM_WORLD);
      return;
    case Collective::all_gather:
      // With MPI_IN_PLACE the whole buffer is named, of which a rank's own part is there.
      MPI_Allgather(source, part, type, receive, part, type, MPI_COMM_WORLD);
      return;
    case Collective::reduce_scatter:
      // In place, the result replaces the beginning of the buffer.
      MPI_Reduce_scatter_block(source, in_place ? send : receive, part, type, reduction,
                               MPI_COMM_WORLD);
      return;
    case Collective::broadcast:
      MPI_Bcast(rank == device::collective_root ? send : receive, whole, type,
                device::collective_root, MPI_COMM_WORLD);
      return;
    case Collective::reduce:
      MPI_Reduce(rank == device::collective_root ? source : send, receive, whole, type, reduction,
                 device::collective_root, MPI_COMM_WORLD);
      return;
    case Collective::all_to_all:
      MPI_Alltoall(send, part, type, receive, part, type, MPI_COMM_WORLD);
      return;
    case Collective::send_receive:
      MPI_Sendrecv(send, whole, type, (rank + 1) % ranks, tag, receive, whole, type,
                   (rank + ranks - 1) % ranks, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }

private:
  static constexpr int tag = 5;

  [[nodiscard]] static int count_of(std::size_t elements) {
    if (elements > INT_MAX)
      throw Skip("a message has at most " + std::to_string(INT_MAX) + " elements in MPI");
    return static_cast<int>(elements);
  }
  [[nodiscard]] static MPI_Datatype type_of_element(device::Element element) {
    const std::array<MPI_Datatype, 5> types = {MPI_FLOAT, MPI_DOUBLE, MPI_INT8_T, MPI_INT32_T,
                                               MPI_INT64_T};
    return types[static_cast<std::size_t>(element)];
  }
  [[nodiscard]] static MPI_Op reduction_of(Reduction reduction) {
    const std::array<MPI_Op, 3> operations = {MPI_SUM, MPI_MAX, MPI_MIN};
    return operations[static_cast<std::size_t>(reduction)];
  }
  [[nodiscard]] static void* address_for_mpi(const device::Memory& memory, std::size_t at) {
    return reinterpret_cast<void*>(device::cuda::ours(memory).address() + at);
  }
};

// Copies to pinned memory of the host, passes on, and copies back: what an application does with an
// MPI that does not know devices.
class StagedCommunicator : public MpiCommunicator {
public:
  StagedCommunicator(device::Device& device, device::Queue& queue, std::size_t sent,
                     std::size_t received)
      : queue_(queue), send_(device.allocate(sent, device::Where::pinned)),
        receive_(device.allocate(received, device::Where::pinned)) {}

  void start(const device::Operation& operation) override {
    const auto& [size, part, sent, received, bus] = operation.shape;
    const bool is_root = world_rank() == device::collective_root;
    const bool sends = operation.collective != device::Collective::broadcast || is_root;
    const bool receives = (operation.collective != device::Collective::reduce || is_root) &&
                          (operation.collective != device::Collective::broadcast || !is_root);
    if (sends) {
      queue_.read(send_->host(), *operation.send.memory, operation.send.at, sent);
      queue_.finish();
    }
    run(operation, send_->host(), receive_->host(), false);
    if (receives) {
      queue_.write(*operation.receive.memory, operation.receive.at, receive_->host(), received);
      queue_.finish();
    }
  }

private:
  device::Queue& queue_;
  std::unique_ptr<device::Memory> send_;
  std::unique_ptr<device::Memory> receive_;
};

} // namespace seatrial::mpi
