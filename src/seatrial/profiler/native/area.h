/* Where a thread counts. Included by every wrapper, so what is short is inline.
 */
#ifndef SEATRIAL_AREA_H
#define SEATRIAL_AREA_H

#include "clock.h"
#include "process.h"
#include "table_file.h"
#include "word.h"

#include <stdbool.h>
#include <stddef.h>

#define SEATRIAL_LIKELY(x) __builtin_expect(!!(x), 1)
#define SEATRIAL_HIDDEN __attribute__((visibility("hidden")))
#define SEATRIAL_INLINE inline __attribute__((always_inline))

struct seatrial_communicator;

enum seatrial_where {
  SEATRIAL_WITHOUT_AREA, /* outside of MPI, and nothing was counted yet */
  SEATRIAL_OUTSIDE,
  SEATRIAL_LOOKING, /* outside too, with more to look at: a Fortran binding's
                       caller, a trace */
  SEATRIAL_INSIDE   /* of a call: those of its layers are not counted again */
};

/* What a call needs most often comes first, so that it lies in two lines of the
 * cache. */
struct seatrial_here {
  uint32_t where;   /* enum seatrial_where */
  uint32_t outside; /* what `where` is after a call */
  struct seatrial_slot* slots;
  uint64_t until; /* ticks: from then on another bin over time counts, or the
                     header is stale */
  uint64_t* bin;  /* of the time in MPI, until then */
  struct seatrial_peer* peers;
  uint64_t generation;                /* of handles, at the latest call; what follows belongs
                                         to it */
  word comm_word;                     /* the latest communicator as the program gave it, and what it
                                         is */
  struct seatrial_communicator* comm; /* NULL: not asked for */
  uint64_t comm_kind;
  word type_word; /* the latest datatype, and its size */
  int64_t type_size;
  struct seatrial_thread* area;
  uint64_t loaded_at;
  uint64_t tidy_at; /* ticks: when the header is told the time next */
  word site;        /* of a call that came through a Fortran binding, else 0 */
  unsigned bin_shift;
  bool is_refused;
} __attribute__((aligned(64)));

extern _Thread_local struct seatrial_here seatrial_here
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Grows when a handle is freed: libraries use handles anew, so what is known of
 * them ends. */
extern uint64_t seatrial_generation SEATRIAL_HIDDEN;

/* Each call is looked at, for one of these reasons. */
enum seatrial_reason { SEATRIAL_LOOKS_FOR_TRACE = 1, SEATRIAL_LOOKS_FOR_WAITING = 2 };
extern unsigned seatrial_reasons_to_look SEATRIAL_HIDDEN;
extern bool seatrial_looks SEATRIAL_HIDDEN; /* since this or another thread began to count */

void seatrial_leave_area(void);

/* The call site to count at, and the thread is inside a call; 0 where this one
 * is not counted. */
word seatrial_enter_slowly(word site);

struct seatrial_slot* seatrial_find_slot(uint64_t head, uint64_t site);
void seatrial_add_time(uint64_t begin, uint64_t end);

/* `seatrial_leave` for calls that are made seldom. */
void seatrial_leave_apart(unsigned call, uint64_t comm, uint64_t bytes, word site, uint64_t begin,
                          uint64_t end);

/* What recording takes for one call, measured on an area of its own. */
double seatrial_own_ticks(void);

/* Whether this is a call to count as it is; else `seatrial_enter_slowly` is
 * asked. */
static inline bool seatrial_enter(void) {
  struct seatrial_here* here = &seatrial_here;
  if (!SEATRIAL_LIKELY(here->where == SEATRIAL_OUTSIDE &&
                       here->generation == __atomic_load_n(&seatrial_generation, __ATOMIC_ACQUIRE)))
    return false;
  here->where = SEATRIAL_INSIDE;
  return true;
}

/* The first eight bytes of a slot. */
static inline uint64_t seatrial_slot_head(unsigned call, uint64_t comm, uint64_t bytes) {
  return (uint64_t)call | comm << 16 | (uint64_t)seatrial_bin(bytes) << 32;
}

static inline uint64_t seatrial_head_of(const struct seatrial_slot* slot) {
  uint64_t head;
  memcpy(&head, slot, sizeof head);
  return head;
}

/* Where a key is looked for first. The low bits of the site, in which
 * neighbours differ, are turned to where the head has none; one multiplication
 * spreads them (Fibonacci hashing: D. E. Knuth, The Art of Computer
 * Programming, volume 3, section 6.4). */
static inline uint32_t seatrial_place_of(uint64_t head, uint64_t site) {
  const uint64_t key = head ^ (site << 43 | site >> 21);
  return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 52) % SEATRIAL_SLOTS;
}

static SEATRIAL_INLINE void seatrial_add_to_slot(struct seatrial_slot* slot, uint64_t bytes,
                                                 uint64_t ticks) {
  slot->count++;
  slot->bytes += bytes;
  slot->ticks += ticks;
  if (ticks < slot->least_ticks)
    slot->least_ticks = ticks;
  if (ticks > slot->most_ticks)
    slot->most_ticks = ticks;
}

static SEATRIAL_INLINE void seatrial_leave(unsigned call, uint64_t comm, uint64_t bytes, word site,
                                           uint64_t begin, uint64_t end) {
  struct seatrial_here* here = &seatrial_here;
  const uint64_t head = seatrial_slot_head(call, comm, bytes);
  struct seatrial_slot* slot = &here->slots[seatrial_place_of(head, site)];
  if (!SEATRIAL_LIKELY(seatrial_head_of(slot) == head && slot->site == site))
    slot = seatrial_find_slot(head, site);
  const uint64_t ticks = end - begin;
  seatrial_add_to_slot(slot, bytes, ticks);
  if (SEATRIAL_LIKELY(end < here->until))
    *here->bin += ticks;
  else
    seatrial_add_time(begin, end);
  here->where = here->outside;
}

#endif
