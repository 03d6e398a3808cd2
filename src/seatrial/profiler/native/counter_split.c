#include "counter_split.h"

#include "area.h"
#include "counters.h"
#include "extension.h"
#include "process.h"

#include <stddef.h>

enum { TIMES_OWN_COST = 20 };

static bool is_on;
static uint64_t begun_at;
static _Thread_local bool is_counted_thread;

/* Of the thread that is counted. */
static struct seatrial_counter_reading at_entry[SEATRIAL_MOST_COUNTERS];
static bool is_counted_call;
static uint64_t entry_cost;
static uint64_t free_from; /* ticks: earlier, reading would cost too much */

static bool read_all(struct seatrial_counter_reading* into) {
  for (unsigned i = 0; i < seatrial_counter_count(); i++)
    if (seatrial_extension()->counters[i].error == 0 && seatrial_read_counter(i, &into[i]) != 0)
      return false;
  return true;
}

static void entered(void) {
  if (!is_on || !is_counted_thread || seatrial_extension() == NULL)
    return;
  const uint64_t begin = seatrial_ticks();
  is_counted_call = begin >= free_from && read_all(at_entry);
  if (is_counted_call)
    entry_cost = seatrial_ticks() - begin;
}

static void add(struct seatrial_counter_split* split, const struct seatrial_counter_reading* now) {
  for (unsigned i = 0; i < seatrial_counter_count(); i++) {
    if (seatrial_extension()->counters[i].error != 0)
      continue;
    split->in_mpi[i].value += now[i].value - at_entry[i].value;
    split->in_mpi[i].enabled_ns += now[i].enabled_ns - at_entry[i].enabled_ns;
    split->in_mpi[i].running_ns += now[i].running_ns - at_entry[i].running_ns;
  }
}

static void left(uint64_t begin, uint64_t end) {
  if (!is_on || !is_counted_thread || begin < begun_at || seatrial_extension() == NULL)
    return;
  struct seatrial_counter_split* split = &seatrial_extension()->split;
  split->ticks += end - begin;
  if (!is_counted_call)
    return;
  is_counted_call = false;
  struct seatrial_counter_reading now[SEATRIAL_MOST_COUNTERS];
  if (!read_all(now))
    return;
  add(split, now);
  split->counted_ticks += end - begin;
  split->counted_calls++;
  const uint64_t done = seatrial_ticks();
  const uint64_t cost = entry_cost + (done - end);
  split->own_ticks += cost;
  free_from = done + cost * TIMES_OWN_COST;
}

void seatrial_begin_counter_split(void) {
  if (seatrial_counter_count() == 0 || begun_at != 0)
    return;
  is_on = is_counted_thread = true;
  begun_at = seatrial_ticks();
  seatrial_call_watch = (struct seatrial_call_watch){entered, left};
  seatrial_examine_reasons |= SEATRIAL_EXAMINES_FOR_COUNTERS;
}

void seatrial_end_counter_split(void) {
  is_on = false;
}
