// CPUs for the two ranks in turn, where many ranks share few.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "affinity.hpp"

namespace seatrial::mpi {

// Two CPUs of different cores that this process may use. Ranks that are bound to nothing would meet
// on one CPU half of the time and then take turns by the scheduler's tick, a hundred times slower
// than on two: that would be a figure of chance, not of the pair.
class Seats {
public:
  Seats() {
    cpus_ = bound_cpus();
    if (cpus_.size() < 2)
      return;
    const auto siblings = core_of(cpus_.front());
    for (const int cpu : cpus_)
      if (cpu != cpus_.front() && (siblings.empty() || core_of(cpu) != siblings)) {
        second_ = cpu;
        return;
      }
    second_ = cpus_[1]; // one core is all there is
  }

  [[nodiscard]] std::vector<int> cpus() const {
    return cpus_.size() < 2 ? std::vector<int>{} : std::vector<int>{cpus_.front(), second_};
  }

  // Binds this thread to the first or the second of them; to neither where there is only one CPU.
  void take(bool first) const {
    if (cpus_.size() >= 2)
      bind_to(first ? cpus_.front() : second_);
  }

  // Where it was before.
  void leave() const {
    if (cpus_.size() >= 2)
      bind_to_any(cpus_);
  }

private:
  // The CPUs of its core, as Linux lists them; empty where that is not told.
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
