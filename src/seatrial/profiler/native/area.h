/* The counters of a thread. Included by every wrapper, so short functions are inline. */
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
  SEATRIAL_WITHOUT_AREA, /* outside MPI; nothing was counted yet */
  SEATRIAL_OUTSIDE,
  SEATRIAL_EXAMINING, /* outside too, with extra work per call: a Fortran binding's call site, or a
                       trace */
  SEATRIAL_INSIDE     /* inside a call: nested calls of the library's layers are not counted */
};

/* The members used most often come first, so that they fit into two cache lines. */
struct seatrial_thread_state {
  uint32_t where;   /* enum seatrial_where */
  uint32_t outside; /* the value of `where` after a call */
  struct seatrial_slot* slots;
  uint64_t until; /* ticks: from then on another bin over time is used, or the header is stale */
  uint64_t* bin;  /* for the time in MPI until then */
  struct seatrial_peer* peers;
  uint64_t generation; /* generation of handles at the latest call; the cached handles below belong
                          to it */
  word comm_word; /* the latest communicator handle as passed by the program, and what it refers to
                   */
  struct seatrial_communicator* comm; /* NULL: not looked up */
  uint64_t comm_kind;
  word type_word; /* the latest datatype handle and its size */
  int64_t type_size;
  struct seatrial_thread* area;
  uint64_t loaded_at;
  uint64_t tidy_at;  /* ticks: when the header is next updated */
  word site;         /* of a call through a Fortran binding, else 0 */
  uint64_t asked_at; /* ticks: the end of a call whose next pause is measured */
  uint32_t asks;     /* calls that ask if something is complete */
  unsigned bin_shift;
  uint32_t rows;
  bool is_refused;
  bool is_stopped; /* this thread counts into an area that is never read */
  uint8_t region;  /* the innermost region that this thread is in; 0: none */
} __attribute__((aligned(64)));

extern _Thread_local struct seatrial_thread_state seatrial_thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Incremented when a handle is freed: libraries reuse handles, so everything cached about them
 * becomes invalid. */
extern uint64_t seatrial_generation SEATRIAL_HIDDEN;

/* Reasons to examine each call. */
enum seatrial_reason {
  SEATRIAL_EXAMINES_FOR_TRACE = 1,
  SEATRIAL_EXAMINES_FOR_WAITING = 2,
  SEATRIAL_EXAMINES_FOR_REGIONS = 4,
  SEATRIAL_EXAMINES_FOR_PLACES = 8,
  SEATRIAL_EXAMINES_FOR_COUNTERS = 16
};
extern unsigned seatrial_examine_reasons SEATRIAL_HIDDEN;
extern bool seatrial_examines_calls SEATRIAL_HIDDEN; /* set once this or another thread counts */

/* Called before and after each call, if calls are examined for it; the second also for others. */
struct seatrial_call_watch {
  void (*entered)(void);
  void (*left)(uint64_t begin, uint64_t end);
};
extern struct seatrial_call_watch seatrial_call_watch SEATRIAL_HIDDEN;

/* What replaces the address of a call site, if calls are examined for places. */
extern word (*seatrial_refine_site)(word site) SEATRIAL_HIDDEN;

static inline struct seatrial_slot* seatrial_slots_of(const struct seatrial_thread* area) {
  return (struct seatrial_slot*)(area + 1);
}

void seatrial_release_area(void);

/* Makes this thread count into an area. */
void seatrial_count_into(struct seatrial_thread* area);

/* Returns the call site to count at and marks the thread as inside a call; 0 if this call is not
 * counted. */
word seatrial_enter_slowly(word site);

struct seatrial_slot* seatrial_find_slot(uint64_t head, uint64_t site);
void seatrial_add_time(uint64_t begin, uint64_t end);

/* `seatrial_leave` and `seatrial_leave_sized` for rare calls. */
void seatrial_leave_slowly(unsigned call, uint64_t comm, uint64_t bytes, word site, uint64_t begin,
                           uint64_t end);
void seatrial_leave_sized_slowly(unsigned call, uint64_t comm, uint64_t size, uint64_t bytes,
                                 word site, uint64_t begin, uint64_t end);

/* The cost of recording one call, in ticks, measured on a separate area. */
double seatrial_own_ticks(void);

/* The ticks from one reading of the clock in order to the next. */
double seatrial_reading_ticks(void);

/* Whether this call is counted on the fast path; otherwise call `seatrial_enter_slowly`. */
static inline bool seatrial_enter(void) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
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

/* The low bits of the site, in which nearby sites differ, are rotated to where the head has none;
 * one multiplication spreads them (Fibonacci hashing: D. E. Knuth, The Art of Computer Programming,
 * volume 3, section 6.4). */
static inline uint64_t seatrial_hash_of(uint64_t head, uint64_t site) {
  return (head ^ (site << 43 | site >> 21)) * 0x9e3779b97f4a7c15ull;
}

/* The first slot to probe for a key: one of the first SEATRIAL_SLOTS, however many there are. */
static inline uint32_t seatrial_place_of(uint64_t head, uint64_t site) {
  return (uint32_t)(seatrial_hash_of(head, site) >> 52) % SEATRIAL_SLOTS;
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

/* `size` selects the bin: that of one message if the call completed several. Returns the row. */
static SEATRIAL_INLINE struct seatrial_slot* seatrial_leave_sized(unsigned call, uint64_t comm,
                                                                  uint64_t size, uint64_t bytes,
                                                                  word site, uint64_t begin,
                                                                  uint64_t end) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  const uint64_t head = seatrial_slot_head(call, comm, size);
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
  return slot;
}

/* Of calls that ask if something is complete, the pause before one in eight is measured; one that
 * is longer than four calls counts as four, as it may be the work before a new wait begins. */
enum { SEATRIAL_PAUSES_EACH = 8, SEATRIAL_LONGEST_PAUSE = 4 };

/* At the start of such a call: the ticks if its pause is measured, else 0. */
static SEATRIAL_INLINE uint64_t seatrial_asks(void) {
  return seatrial_thread_state.asks++ % SEATRIAL_PAUSES_EACH == 0 ? seatrial_ticks_in_order() : 0;
}

/* `seatrial_leave_sized` for such a call. A pause lasts from the end of the wrapper of one call to
 * the start of that of the next, as what the wrappers do is no work of the program. */
static SEATRIAL_INLINE void seatrial_leave_asking(unsigned call, uint64_t comm, uint64_t size,
                                                  uint64_t bytes, word site, uint64_t begin,
                                                  uint64_t end, uint64_t entered) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  struct seatrial_slot* slot = seatrial_leave_sized(call, comm, size, bytes, site, begin, end);
  if (entered != 0) {
    const uint64_t pause = entered - here->asked_at;
    const uint64_t longest = SEATRIAL_LONGEST_PAUSE * (end - begin);
    slot->pause_ticks += SEATRIAL_PAUSES_EACH * (pause < longest ? pause : longest);
  }
  if (here->asks % SEATRIAL_PAUSES_EACH == 0)
    here->asked_at = seatrial_ticks_in_order();
}

static SEATRIAL_INLINE void seatrial_leave(unsigned call, uint64_t comm, uint64_t bytes, word site,
                                           uint64_t begin, uint64_t end) {
  seatrial_leave_sized(call, comm, bytes, bytes, site, begin, end);
}

#endif
