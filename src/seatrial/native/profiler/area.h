/* Where a thread counts. Included by every wrapper, so what is short is inline. */
#ifndef SEATRIAL_AREA_H
#define SEATRIAL_AREA_H

#include "clock.h"
#include "process.h"
#include "table_file.h"
#include "word.h"

#include <stdbool.h>
#include <stddef.h>

struct seatrial_here {
  struct seatrial_thread* area;
  struct seatrial_slot* last; /* the slot of the latest call, never NULL where there is an area */
  struct seatrial_peer* peers;
  uint64_t loaded_at;
  uint64_t tidy_at; /* ticks: when the header is told the time next */
  word site;        /* of a call that came through a Fortran binding, else 0 */
  unsigned bin_shift;
  int depth; /* 1 inside a call of MPI: those of its layers are not counted again */
  bool is_refused;
};

extern _Thread_local struct seatrial_here seatrial_here
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* An area for this thread; false where none is to be had, or nothing is recorded. */
bool seatrial_take_area(void);
void seatrial_leave_area(void);

struct seatrial_slot* seatrial_find_slot(uint64_t head, uint64_t site);
void seatrial_add_over_time(uint64_t begin, uint64_t end);
void seatrial_tidy(uint64_t now);

/* What recording takes for one call, measured on an area of its own. */
double seatrial_own_ticks(void);

/* Whether this is a call to count: false inside another one. */
static inline bool seatrial_enter(void) {
  if (seatrial_here.depth != 0)
    return false;
  if (__builtin_expect(seatrial_here.area == NULL, 0) && !seatrial_take_area())
    return false;
  seatrial_here.depth = 1;
  return true;
}

/* The first eight bytes of a slot. */
static inline uint64_t seatrial_slot_head(unsigned call, unsigned comm, uint64_t bytes) {
  return (uint64_t)call | (uint64_t)comm << 16 | (uint64_t)seatrial_bin(bytes) << 32;
}

static inline uint64_t seatrial_head_of(const struct seatrial_slot* slot) {
  uint64_t head;
  memcpy(&head, slot, sizeof head);
  return head;
}

static inline void seatrial_leave(unsigned call, unsigned comm, uint64_t bytes, word site,
                                  uint64_t begin, uint64_t end) {
  struct seatrial_here* here = &seatrial_here;
  const uint64_t head = seatrial_slot_head(call, comm, bytes);
  if (__builtin_expect(here->site != 0, 0))
    site = here->site;
  struct seatrial_slot* slot = here->last;
  if (seatrial_head_of(slot) != head || slot->site != site)
    slot = seatrial_find_slot(head, site);
  const uint64_t ticks = end - begin;
  slot->count++;
  slot->bytes += bytes;
  slot->ticks += ticks;
  if (ticks < slot->least_ticks)
    slot->least_ticks = ticks;
  if (ticks > slot->most_ticks)
    slot->most_ticks = ticks;
  const uint64_t bin = (end - here->loaded_at) >> here->bin_shift;
  if (bin < SEATRIAL_BINS_OVER_TIME && (begin - here->loaded_at) >> here->bin_shift == bin)
    here->area->over_time[bin] += ticks;
  else
    seatrial_add_over_time(begin, end);
  if (__builtin_expect(end > here->tidy_at, 0))
    seatrial_tidy(end);
  here->depth = 0;
}

#endif
