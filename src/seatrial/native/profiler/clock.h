/* The processor's counter of constant rate: its rate is measured against the system's clock. */
#ifndef SEATRIAL_CLOCK_H
#define SEATRIAL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t seatrial_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no counter is known for this processor"
#endif
}

static inline int64_t seatrial_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
