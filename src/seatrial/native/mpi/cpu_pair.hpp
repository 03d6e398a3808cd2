// CPUs for pairs of ranks when many ranks share few CPUs.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "affinity.hpp"

namespace seatrial::mpi {

// Two CPUs on different cores that this process may use. Unbound ranks would often share one CPU
// and then alternate at scheduler ticks, a hundred times slower than on two CPUs: the result would
// depend on chance, not on the pair.
class CpuPair {
public:
  CpuPair() {
    cpus_ = bound_cpus();
    if (cpus_.size() < 2)
      return;
    const auto siblings = core_of(cpus_.front());
    for (const int cpu : cpus_)
      if (cpu != cpus_.front() && (siblings.empty() || core_of(cpu) != siblings)) {
        second_ = cpu;
        return;
      }
    second_ = cpus_[1]; // there is only one core
  }

  [[nodiscard]] std::vector<int> cpus() const {
    return cpus_.size() < 2 ? std::vector<int>{} : std::vector<int>{cpus_.front(), second_};
  }

  // Binds this thread to the first or the second CPU; does nothing if there is only one.
  void bind(bool first) const {
    if (cpus_.size() >= 2)
      bind_to(first ? cpus_.front() : second_);
  }

  // Restores the previous binding.
  void restore() const {
    if (cpus_.size() >= 2)
      bind_to_any(cpus_);
  }

private:
  // The CPUs of this CPU's core, as listed by Linux; empty if not available.
  [[nodiscard]] static std::string core_of(int cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string list;
    std::getline(file, list);
    return list;
  }

  std::vector<int> cpus_; // ascending
  int second_ = 0;
};

} // namespace seatrial::mpi
