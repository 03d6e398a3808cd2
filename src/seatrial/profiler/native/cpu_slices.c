#include "cpu_slices.h"

#include "cpu_use.h"
#include "extension.h"
#include "own_code.h"
#include "process.h"
#include "speed.h"

#include <stddef.h>
#include <time.h>

enum { PER_S = 10, TIMES_OWN_COST = 1000 };

uint64_t seatrial_slice_at = UINT64_MAX;

static struct seatrial_cpu_slices* slices(void) {
  struct seatrial_extension* extension = seatrial_extension();
  return extension == NULL ? NULL : &extension->slices;
}

/* Every second sample goes; slices become twice as long. */
static void thin_out(struct seatrial_cpu_slices* all) {
  for (unsigned i = 0; i < SEATRIAL_MOST_CPU_SAMPLES / 2; i++)
    all->list[i] = all->list[2 * i];
  __atomic_store_n(&all->used, SEATRIAL_MOST_CPU_SAMPLES / 2, __ATOMIC_RELEASE);
  all->period *= 2;
}

/* CPU time of this thread: a sample during which it waited for a CPU is not expensive. */
static uint64_t own_ns(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
    return 0;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void add_sample(struct seatrial_cpu_slices* all) {
  struct seatrial_cpu_use use;
  const uint64_t begin = seatrial_ticks();
  const uint64_t before_ns = own_ns();
  seatrial_read_own_code();
  seatrial_read_cpu_time(&use);
  if (all->used >= SEATRIAL_MOST_CPU_SAMPLES)
    thin_out(all);
  all->list[all->used] = (struct seatrial_cpu_sample){.at = begin,
                                                      .cpu_ns = use.cpu_ns,
                                                      .run_delay_ns = use.run_delay_ns,
                                                      .node_busy_ns = use.node_busy_ns,
                                                      .node_steal_ns = use.node_steal_ns};
  __atomic_store_n(&all->used, all->used + 1, __ATOMIC_RELEASE);
  const double cost_s = (double)(own_ns() - before_ns) / 1e9;
  const uint64_t cost = (uint64_t)(cost_s * seatrial_ticks_per_s());
  seatrial_measure_speed(1);
  all->own_ticks += seatrial_ticks() - begin;
  const uint64_t wait = cost * TIMES_OWN_COST > all->period ? cost * TIMES_OWN_COST : all->period;
  __atomic_store_n(&seatrial_slice_at, begin + wait, __ATOMIC_RELEASE);
}

/* One thread takes the sample that is due. */
void seatrial_take_slice(uint64_t now) {
  struct seatrial_cpu_slices* all = slices();
  uint64_t due = __atomic_load_n(&seatrial_slice_at, __ATOMIC_ACQUIRE);
  if (all != NULL && now >= due &&
      __atomic_compare_exchange_n(&seatrial_slice_at, &due, UINT64_MAX, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    add_sample(all);
}

void seatrial_begin_slices(void) {
  struct seatrial_cpu_slices* all = slices();
  if (all == NULL)
    return;
  if (all->period == 0)
    all->period = (uint64_t)(seatrial_ticks_per_s() / PER_S);
  add_sample(all);
}

/* If a thread takes a sample at this moment, it is the last one. */
void seatrial_end_slices(void) {
  struct seatrial_cpu_slices* all = slices();
  if (all == NULL ||
      __atomic_exchange_n(&seatrial_slice_at, UINT64_MAX, __ATOMIC_ACQ_REL) == UINT64_MAX)
    return;
  add_sample(all);
  __atomic_store_n(&seatrial_slice_at, UINT64_MAX, __ATOMIC_RELEASE);
}
