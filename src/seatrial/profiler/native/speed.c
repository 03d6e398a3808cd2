#include "speed.h"

#include "extension.h"
#include "process.h"

#include <stddef.h>
#include <time.h>

enum { STEPS = 16000 };

#if defined(__x86_64__)
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#elif defined(__aarch64__)
#define KEEP(x) __asm__ volatile("" : "+w"(x))
#else
#define KEEP(x) __asm__ volatile("" : "+m"(x))
#endif

/* Four chains of integers and four of floating-point numbers, so that the units of a core are busy:
 * one chain alone leaves most of them to the other thread of the core, and would not show it. No
 * memory; every result is exact, since a program may trap inexact ones. */
static void loop(void) {
  uint64_t a = 1;
  uint64_t b = 2;
  uint64_t c = 3;
  uint64_t d = 4;
  double p = 1;
  double q = 2;
  double r = 3;
  double s = 4;
  double one = 1;
  double zero = 0;
  KEEP(one);
  KEEP(zero);
  for (int i = 0; i < STEPS; i++) {
    a = a * 6364136223846793005u + 1;
    b = b * 6364136223846793005u + 1;
    c = c * 6364136223846793005u + 1;
    d = d * 6364136223846793005u + 1;
    p = p * one + zero;
    q = q * one + zero;
    r = r * one + zero;
    s = s * one + zero;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    KEEP(p);
    KEEP(q);
    KEEP(r);
    KEEP(s);
  }
}

static uint64_t cpu_ns(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
    return 0;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void seatrial_measure_speed(int times) {
  struct seatrial_extension* extension = seatrial_extension();
  if (extension == NULL)
    return;
  struct seatrial_speed* speed = &extension->kernel.speed;
  for (int i = 0; i < times; i++) {
    const uint64_t begin = cpu_ns();
    loop();
    const uint64_t taken = cpu_ns() - begin;
    if (begin == 0 || taken == 0)
      return;
    speed->ns += taken;
    if (speed->least_ns == 0 || taken < speed->least_ns)
      speed->least_ns = taken;
    speed->loops++;
  }
}
