// NCCL, on the stream of a queue. The id of the communicator is made by one rank and passed to all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "device/collective.hpp"
#include "device/cuda.hpp"

namespace seatrial::device::cuda {

// ncclUniqueId
struct NcclId {
  std::array<char, 128> bytes{};
};
inline std::ostream& operator<<(std::ostream& out, const NcclId&) {
  return out << "id";
}

// The functions in use (docs.nvidia.com/deeplearning/nccl, API). Counts are in elements.
class NcclApi : public DriverLibrary {
public:
  // `path` is the library's file; "": the first that the loader finds.
  explicit NcclApi(const std::string& path)
      : DriverLibrary(path.empty() ? std::vector<std::string>{"libnccl.so.2", "libnccl.so"}
                                   : std::vector<std::string>{path},
                      "library",
                      "NCCL comes with NVIDIA's HPC SDK and packages (libnccl2) and with the "
                      "Python package nvidia-nccl-cu13; add its folder to LD_LIBRARY_PATH") {}

  [[nodiscard]] std::string meaning(int code) const override {
    using Text = const char* (*)(int);
    using Last = const char* (*)(Handle);
    const auto text = reinterpret_cast<Text>(find("ncclGetErrorString"));
    const auto last = reinterpret_cast<Last>(find("ncclGetLastError")); // since 2.13
    const std::string details = last == nullptr ? "" : last(nullptr);
    return (text == nullptr ? "no text" : text(code)) + (details.empty() ? "" : "; " + details);
  }

  Call<int*> version{*this, "ncclGetVersion"};
  Call<NcclId*> make_id{*this, "ncclGetUniqueId"};
  Call<Handle*, int, NcclId, int> join{*this, "ncclCommInitRank"};
  Call<Handle> leave{*this, "ncclCommDestroy"};
  Call<> group{*this, "ncclGroupStart"};
  Call<> end_group{*this, "ncclGroupEnd"};
  // send, receive, count, type, operation, (root,) communicator, stream
  Call<Address, Address, std::size_t, int, int, Handle, Handle> all_reduce{*this, "ncclAllReduce"};
  Call<Address, Address, std::size_t, int, int, Handle, Handle> reduce_scatter{*this,
                                                                               "ncclReduceScatter"};
  Call<Address, Address, std::size_t, int, int, int, Handle, Handle> reduce{*this, "ncclReduce"};
  Call<Address, Address, std::size_t, int, Handle, Handle> all_gather{*this, "ncclAllGather"};
  Call<Address, Address, std::size_t, int, int, Handle, Handle> broadcast{*this, "ncclBroadcast"};
  Call<Address, std::size_t, int, int, Handle, Handle> send{*this, "ncclSend"};
  Call<Address, std::size_t, int, int, Handle, Handle> receive{*this, "ncclRecv"};
};

class NcclCommunicator : public Communicator {
public:
  // `id` is rank 0's, the same on all ranks. Collective.
  NcclCommunicator(const NcclApi& api, const NcclId& id, CudaQueue& queue, int rank, int ranks)
      : api_(api), queue_(queue), rank_(rank), ranks_(ranks) {
    static_cast<void>(queue_.enter());
    api_.join(&handle_, ranks, id, rank);
  }
  ~NcclCommunicator() override {
    if (queue_.try_enter())
      static_cast<void>(api_.leave.status(handle_));
  }

  [[nodiscard]] std::string name() const override {
    int number = 0; // 10000 x major + 100 x minor + patch since 2.9
    api_.version(&number);
    return "NCCL " + std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) +
           "." + std::to_string(number % 100);
  }
  [[nodiscard]] Convention convention() const override {
    return {.is_asynchronous = true, .root_receives = true, .scatters_in_order = true};
  }

  void start(const Operation& operation) override {
    const auto stream = queue_.enter();
    const auto each = bytes_of(operation.element);
    const auto send = address(operation.send);
    const auto receive = address(operation.receive);
    const auto whole = operation.shape.size / each;
    const auto part = operation.shape.part / each;
    const int type = type_of(operation.element);
    const int reduction = reduction_of(operation.reduction);
    switch (operation.collective) {
    case Collective::all_reduce:
      return api_.all_reduce(send, receive, whole, type, reduction, handle_, stream);
    case Collective::all_gather:
      return api_.all_gather(send, receive, part, type, handle_, stream);
    case Collective::reduce_scatter:
      return api_.reduce_scatter(send, receive, part, type, reduction, handle_, stream);
    case Collective::broadcast:
      return api_.broadcast(send, receive, whole, type, collective_root, handle_, stream);
    case Collective::reduce:
      return api_.reduce(send, receive, whole, type, reduction, collective_root, handle_, stream);
    case Collective::all_to_all:
      api_.group();
      for (int peer = 0; peer < ranks_; ++peer) {
        const auto at = static_cast<std::size_t>(peer) * operation.shape.part;
        api_.send(send + at, part, type, peer, handle_, stream);
        api_.receive(receive + at, part, type, peer, handle_, stream);
      }
      return api_.end_group();
    case Collective::send_receive:
      api_.group();
      api_.send(send, whole, type, (rank_ + 1) % ranks_, handle_, stream);
      api_.receive(receive, whole, type, (rank_ + ranks_ - 1) % ranks_, handle_, stream);
      return api_.end_group();
    }
  }

  void finish() override { queue_.finish(); }

private:
  [[nodiscard]] static Address address(const Part& part) {
    return ours(*part.memory).address() + part.at;
  }
  // ncclDataType_t
  [[nodiscard]] static int type_of(Element element) {
    constexpr std::array<int, 5> numbers = {7, 8, 0, 2, 4};
    return numbers[static_cast<std::size_t>(element)];
  }
  // ncclRedOp_t
  [[nodiscard]] static int reduction_of(mpi::Reduction reduction) {
    constexpr std::array<int, 3> numbers = {0, 2, 3};
    return numbers[static_cast<std::size_t>(reduction)];
  }

  const NcclApi& api_;
  CudaQueue& queue_;
  int rank_;
  int ranks_;
  Handle handle_ = nullptr;
};

} // namespace seatrial::device::cuda
