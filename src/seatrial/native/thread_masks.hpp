// The CPUs that a thread of any process may run on, as a value that can be joined and printed.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <string>

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace seatrial {

class ThreadMask {
public:
  // Of this thread; empty if it has ended. One system call, without a file.
  [[nodiscard]] static ThreadMask of(pid_t thread) noexcept {
    ThreadMask mask;
    // The bare call: it returns how many bytes the kernel's mask has (sched_setaffinity(2)).
    const auto got =
        ::syscall(SYS_sched_getaffinity, thread, sizeof mask.words_, mask.words_.data());
    mask.used_ = got > 0 ? static_cast<std::size_t>(got) / sizeof(Word) : 0;
    return mask;
  }

  void join(const ThreadMask& other) noexcept {
    for (std::size_t i = 0; i < other.used_; ++i)
      words_[i] |= other.words_[i];
    used_ = used_ < other.used_ ? other.used_ : used_;
  }

  // As the kernel lists CPUs: `0-1,3`; empty if there is none.
  [[nodiscard]] std::string text() const {
    std::string text;
    const auto end = used_ * bits;
    for (std::size_t cpu = 0; cpu < end; ++cpu) {
      if (!has(cpu))
        continue;
      const auto first = cpu;
      while (cpu + 1 < end && has(cpu + 1))
        ++cpu;
      // In steps: GCC 12 warns of an overlap (-Wrestrict) where a literal is joined to a string.
      if (!text.empty())
        text += ',';
      text += std::to_string(first);
      if (cpu > first) {
        text += '-';
        text += std::to_string(cpu);
      }
    }
    return text;
  }

private:
  using Word = unsigned long;
  static constexpr std::size_t bits = sizeof(Word) * CHAR_BIT;
  static constexpr std::size_t most_cpus = 8192; // the most that Linux can be built for

  [[nodiscard]] bool has(std::size_t cpu) const noexcept {
    return ((words_[cpu / bits] >> (cpu % bits)) & 1U) != 0;
  }

  std::array<Word, most_cpus / bits> words_{};
  std::size_t used_ = 0; // words
};

} // namespace seatrial
