// Runs kernels in the CUDA dialect without a GPU: a group is a host thread, and its items are
// fibres that switch at each synchronisation. Items do not run in lockstep, so code that relies on
// lockstep without synchronising fails; several groups run at once and wait for each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <ucontext.h>

namespace on_host {

struct Fibre {
  ucontext_t context;
  static constexpr std::size_t stack_bytes = 32 << 10;
  std::unique_ptr<char[]> stack{new char[stack_bytes]}; // uninitialised: filling it would take long
  bool is_done = false;
};

// A rendezvous of `members` items.
struct Meeting {
  unsigned there = 0;
  unsigned number = 0;
};

class Group {
public:
  static constexpr unsigned warp = 32;
  static inline thread_local Group* current = nullptr;

  Group(unsigned id, unsigned groups, unsigned items, bool is_reversed, std::function<void()> body)
      : id(id), groups(groups), items(items), lanes_(items), fibres_(items), warps_(items / warp),
        is_reversed_(is_reversed), body_(std::move(body)) {}

  void run() {
    current = this;
    for (auto& fibre : fibres_) {
      getcontext(&fibre.context);
      fibre.context.uc_stack.ss_sp = fibre.stack.get();
      fibre.context.uc_stack.ss_size = Fibre::stack_bytes;
      fibre.context.uc_link = nullptr;
      makecontext(&fibre.context, &begin, 0);
    }
    for (unsigned left = items; left > 0;) {
      left = 0;
      for (unsigned k = 0; k < items; ++k) {
        item = is_reversed_ ? items - 1 - k : k;
        if (fibres_[item].is_done)
          continue;
        ++left;
        swapcontext(&outside_, &fibres_[item].context);
      }
    }
  }

  void meet_all() { meet(all_, items); }
  void meet_warp() { meet(warps_[item / warp], warp); }

  // The value passed by the item in `lane` of this warp.
  template <class Value>
  [[nodiscard]] Value exchange(Value own, unsigned lane) {
    std::memcpy(&lanes_[item], &own, sizeof own);
    meet_warp();
    Value value;
    std::memcpy(&value, &lanes_[item / warp * warp + lane % warp], sizeof value);
    meet_warp();
    return value;
  }

  [[nodiscard]] unsigned ballot(bool is) {
    lanes_[item] = is ? 1 : 0;
    meet_warp();
    unsigned bits = 0;
    for (unsigned lane = 0; lane < warp; ++lane)
      bits |= static_cast<unsigned>(lanes_[item / warp * warp + lane]) << lane;
    meet_warp();
    return bits;
  }

  const unsigned id;
  const unsigned groups;
  const unsigned items;
  unsigned item = 0;

private:
  static void begin() {
    current->body_();
    current->fibres_[current->item].is_done = true;
    current->leave();
  }
  void leave() { swapcontext(&fibres_[item].context, &outside_); }
  void meet(Meeting& meeting, unsigned members) {
    const unsigned number = meeting.number;
    if (++meeting.there == members) {
      meeting.there = 0;
      ++meeting.number;
    }
    while (number == meeting.number)
      leave();
  }

  std::vector<std::uint64_t> lanes_;
  std::vector<Fibre> fibres_;
  Meeting all_;
  std::vector<Meeting> warps_;
  ucontext_t outside_;
  bool is_reversed_;
  std::function<void()> body_;
};

// Groups start in order, several at once.
template <class Body>
void launch(unsigned groups, unsigned items, bool is_reversed, Body body) {
  std::atomic<unsigned> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (unsigned id = next++; id < groups; id = next++)
        Group(id, groups, items, is_reversed, body).run();
    });
  for (auto& thread : threads)
    thread.join();
}

// Memory with device alignment, for any element type.
template <class Element>
class Words {
public:
  explicit Words(std::size_t count) : size(count), own_((count * sizeof(Element) + 15) / 16) {}
  Element* data() { return reinterpret_cast<Element*>(own_.data()); }
  Element& operator[](std::size_t i) { return data()[i]; }
  const std::size_t size;

private:
  struct alignas(16) Piece {
    char bytes[16];
  };
  std::vector<Piece> own_;
};

struct Dimension {
  unsigned x;
  unsigned y;
};

} // namespace on_host

// CUDA keywords.
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define threadIdx (on_host::Dimension{on_host::Group::current->item, 0})
#define blockDim (on_host::Dimension{on_host::Group::current->items, 1})
#define blockIdx (on_host::Dimension{on_host::Group::current->id, 0})
#define gridDim (on_host::Dimension{on_host::Group::current->groups, 1})

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline void __syncthreads() {
  on_host::Group::current->meet_all();
}
inline void __syncwarp() {
  on_host::Group::current->meet_warp();
}
template <class Value>
Value __shfl_sync(unsigned, Value value, unsigned lane) {
  return on_host::Group::current->exchange(value, lane);
}
template <class Value>
Value __shfl_up_sync(unsigned, Value value, unsigned step) {
  const unsigned lane = on_host::Group::current->item % on_host::Group::warp;
  return on_host::Group::current->exchange(value, lane < step ? lane : lane - step);
}
template <class Value>
Value __shfl_xor_sync(unsigned, Value value, unsigned mask) {
  return on_host::Group::current->exchange(value, on_host::Group::current->item ^ mask);
}
inline unsigned __ballot_sync(unsigned, bool is) {
  return on_host::Group::current->ballot(is);
}
inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int __ffs(unsigned bits) {
  return __builtin_ffs(static_cast<int>(bits));
}
inline long long __double_as_longlong(double number) {
  long long bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
