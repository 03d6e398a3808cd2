#include "speed.h"

#include "extension.h"
#include "process.h"

#include <stddef.h>
#include <time.h>

enum { STEPS = 16000 };

/* A chain of multiplications and additions in registers: no memory, no vector unit, nothing that
 * can run in parallel. */
static void loop(void) {
  uint64_t x = 1;
  for (int i = 0; i < STEPS; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(x));
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
