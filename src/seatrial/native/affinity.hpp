// Binds the calling thread to CPUs, and reads the binding back from the kernel.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <sched.h>

#include "failure.hpp"

namespace seatrial {

namespace detail {

// glibc's fixed-size cpu_set_t ends at CPU 1023; the kernel rejects a read into a mask that is too
// small.
class CpuSet {
public:
  explicit CpuSet(int cpus) : cpus_(cpus), set_(CPU_ALLOC(cpus)) {
    if (!set_)
      throw std::bad_alloc();
    CPU_ZERO_S(bytes(), set_.get());
  }
  [[nodiscard]] int size() const noexcept { return cpus_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return CPU_ALLOC_SIZE(cpus_); }
  [[nodiscard]] cpu_set_t* get() noexcept { return set_.get(); }
  void add(int cpu) noexcept { CPU_SET_S(cpu, bytes(), set_.get()); }
  [[nodiscard]] bool has(int cpu) const noexcept { return CPU_ISSET_S(cpu, bytes(), set_.get()); }

private:
  struct Free {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
  };
  int cpus_;
  std::unique_ptr<cpu_set_t, Free> set_;
};

} // namespace detail

// The CPUs that the calling thread may run on, in ascending order.
[[nodiscard]] inline std::vector<int> bound_cpus() {
  for (int size = 1024; size <= 1 << 20; size *= 2) {
    detail::CpuSet set(size);
    if (sched_getaffinity(0, set.bytes(), set.get()) != 0) {
      if (errno == EINVAL) // the kernel's mask is larger
        continue;
      break;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < set.size(); ++cpu)
      if (set.has(cpu))
        cpus.push_back(cpu);
    return cpus;
  }
  throw Failure(Exit::system, std::string("sched_getaffinity: ") + std::strerror(errno));
}

// Whether the calling thread is bound to this CPU only.
[[nodiscard]] inline bool is_bound_to(int cpu) noexcept {
  return bound_cpus() == std::vector{cpu};
}

// Binds to several CPUs, given in ascending order.
inline void bind_to_any(const std::vector<int>& cpus) {
  detail::CpuSet set(cpus.back() + 1);
  for (const int cpu : cpus)
    set.add(cpu);
  if (sched_setaffinity(0, set.bytes(), set.get()) != 0)
    throw Failure(Exit::usage, "cannot bind a thread to CPU " + std::to_string(cpus.front()) +
                                   ": " + std::strerror(errno));
}

inline void bind_to(int cpu) {
  bind_to_any({cpu});
}

} // namespace seatrial
