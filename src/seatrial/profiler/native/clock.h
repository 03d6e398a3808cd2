/* The processor's constant-rate counter; its rate is measured against the system clock. On a
 * processor without one, the system clock is read; its ticks are nanoseconds. */
#ifndef SEATRIAL_CLOCK_H
#define SEATRIAL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* True if there is no reliable counter. */
extern bool seatrial_uses_system_clock __attribute__((visibility("hidden")));

/* Call before the first reading. SEATRIAL_PROFILE_CLOCK=monotonic selects the system clock. */
void seatrial_choose_clock(void);

static inline int64_t seatrial_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t seatrial_read_system_clock(void);

static inline __attribute__((always_inline)) uint64_t seatrial_ticks(void) {
  if (__builtin_expect(seatrial_uses_system_clock, 0))
    return seatrial_read_system_clock();
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no cycle counter is implemented for this processor"
#endif
}

/* The same after all earlier instructions and before all later ones: processors execute work beside
 * the reading otherwise, and a pause of some nanoseconds seems to have none. */
static inline __attribute__((always_inline)) uint64_t seatrial_ticks_in_order(void) {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
  const uint64_t ticks = seatrial_ticks();
  __builtin_ia32_lfence();
  return ticks;
#else
  __asm__ volatile("isb" ::: "memory");
  const uint64_t ticks = seatrial_ticks();
  __asm__ volatile("isb" ::: "memory");
  return ticks;
#endif
}

#endif
