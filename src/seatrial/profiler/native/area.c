#include "area.h"

#include "look_up.h"
#include "rebind.h"
#include "region.h"
#include "stopped.h"

#include <pthread.h>
#include <sys/mman.h>

enum {
  FIRST_BIN_SHIFT = 22, /* a few milliseconds; the bins widen as the run gets longer */
  TIDY_TICKS = 1 << 17,
  NO_SITES = SEATRIAL_SLOTS / 8 * 7,      /* slots in use beyond which call sites are dropped, */
  COARSE_BINS = SEATRIAL_SLOTS / 16 * 15, /* then sizes are recorded by their power of two, */
  NO_BINS = SEATRIAL_SLOTS / 64 * 63,     /* then neither size nor communicator is recorded */
  OWN_CALLS = 1024
};

_Thread_local struct seatrial_thread_state seatrial_thread_state;
uint64_t seatrial_generation = 1;
bool seatrial_examines_calls;
unsigned seatrial_examine_reasons;

/* Absorbs counts for which no slot was free; it is never read. */
static _Thread_local struct seatrial_slot discarded;

static struct seatrial_thread* area_at(uint32_t number) {
  const struct seatrial_header* header = seatrial_process.header;
  return (struct seatrial_thread*)((char*)seatrial_process.header + header->thread_offset +
                                   number * header->thread_bytes);
}

static bool claim(struct seatrial_thread* area) {
  uint32_t free = 0;
  return __atomic_compare_exchange_n(&area->is_taken, &free, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* Reuses the area of a thread that has ended, else takes a new one. */
static struct seatrial_thread* claim_any(void) {
  struct seatrial_header* header = seatrial_process.header;
  uint32_t known = __atomic_load_n(&header->threads, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < known; i++)
    if (claim(area_at(i)))
      return area_at(i);
  while (known < header->most_threads) {
    if (!seatrial_reserve(header->thread_offset + known * header->thread_bytes,
                          header->thread_bytes))
      return NULL;
    if (claim(area_at(known))) {
      uint32_t least = known;
      while (least <= known &&
             !__atomic_compare_exchange_n(&header->threads, &least, known + 1, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
      return area_at(known);
    }
    known++;
  }
  return NULL;
}

void seatrial_count_into(struct seatrial_thread* area) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  here->area = area;
  here->slots = area->slots;
  here->peers = (struct seatrial_peer*)(area + 1);
  here->loaded_at = seatrial_process.header->loaded_at;
  here->until = here->tidy_at = 0;
  if (area->bin_ticks == 0)
    area->bin_ticks = 1ull << FIRST_BIN_SHIFT;
  here->bin_shift = (unsigned)__builtin_ctzll(area->bin_ticks);
  seatrial_examines_calls = seatrial_examine_reasons != 0;
  here->outside =
      here->site != 0 || seatrial_examines_calls ? SEATRIAL_EXAMINING : SEATRIAL_OUTSIDE;
}

static void release_at_thread_end(void* area) {
  if (seatrial_process.header == NULL) /* in a forked child: the parent keeps using the area */
    return;
  __atomic_store_n(&((struct seatrial_thread*)area)->is_taken, 0, __ATOMIC_RELEASE);
  seatrial_thread_state.area = NULL;
  seatrial_thread_state.where = SEATRIAL_WITHOUT_AREA;
}

/* The end of a thread is reported by the thread library, if the program has one: before glibc
 * 2.34 it was separate from the C library. */
static void release_at_exit(struct seatrial_thread* area) {
  typedef int (*create_t)(pthread_key_t*, void (*)(void*));
  typedef int (*set_t)(pthread_key_t, const void*);
  static pthread_key_t key;
  static int state; /* 0 not looked up, 1 being looked up, 2 found, 3 missing */
  int unasked = 0;
  const set_t set = (set_t)seatrial_look_up("pthread_setspecific");
  if (__atomic_compare_exchange_n(&state, &unasked, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    const create_t create = (create_t)seatrial_look_up("pthread_key_create");
    const bool is_there = create != NULL && set != NULL && create(&key, release_at_thread_end) == 0;
    __atomic_store_n(&state, is_there ? 2 : 3, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 1)
    ;
  if (state == 2)
    set(key, area);
}

/* Takes an area for this thread; false if none is available or nothing is recorded. */
static bool take_area(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL)
    return false;
  struct seatrial_thread* area = seatrial_thread_state.is_refused ? NULL : claim_any();
  if (area == NULL) { /* do not try again: that takes time */
    seatrial_thread_state.is_refused = true;
    __atomic_fetch_add(&header->lost_calls, 1, __ATOMIC_RELAXED);
    return false;
  }
  seatrial_count_into(area);
  release_at_exit(area);
  return true;
}

void seatrial_release_area(void) {
  memset(&seatrial_thread_state, 0, sizeof seatrial_thread_state);
}

word seatrial_enter_slowly(word site) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (here->where == SEATRIAL_INSIDE || (here->area == NULL && !take_area()))
    return 0;
  const uint64_t now = __atomic_load_n(&seatrial_generation, __ATOMIC_ACQUIRE);
  if (here->generation != now) { /* no handle has all bits set */
    here->comm_word = here->type_word = ~(word)0;
    here->comm = NULL;
    here->generation = now;
    if (here->is_stopped != seatrial_is_stopped)
      seatrial_change_area();
  }
  here->where = SEATRIAL_INSIDE;
  return seatrial_in_region(here->site != 0 ? here->site : site);
}

/* The slot of a key, created if needed; NULL if all slots are taken. */
static struct seatrial_slot* slot_of(struct seatrial_thread* area, uint64_t head, uint64_t site,
                                     bool may_make) {
  uint32_t place = seatrial_place_of(head, site);
  for (uint32_t tried = 0; tried < SEATRIAL_SLOTS; tried++) {
    struct seatrial_slot* slot = &area->slots[place];
    const uint64_t there = seatrial_head_of(slot);
    if (there == head && slot->site == site)
      return slot;
    if (there == 0) {
      if (!may_make)
        return NULL;
      slot->site = site;
      slot->least_ticks = UINT64_MAX;
      __atomic_store_n((uint64_t*)(void*)slot, head, __ATOMIC_RELEASE);
      area->used++;
      return slot;
    }
    place = (place + 1) % SEATRIAL_SLOTS;
  }
  return NULL;
}

/* The key of a call whose size is recorded by its power of two only. */
static uint64_t coarse(uint64_t head) {
  const uint64_t bytes = seatrial_bin_floor((uint32_t)(head >> 32));
  const uint64_t power = bytes == 0 ? 0 : 1ull << (63 - __builtin_clzll(bytes));
  return (head & 0xffffffffu) | (uint64_t)seatrial_bin(power) << 32;
}

/* Whether this is a partial row (waiting or transfer) beside the row of the whole call. */
static bool is_part(uint64_t head) {
  return (head >> 24 & 0xff) != 0;
}

/* Falls back to coarser keys as the table fills up: count and bytes stay exact. */
static struct seatrial_slot* find_coarser(struct seatrial_thread* area, uint64_t head) {
  if (!is_part(head))
    area->without_site++;
  struct seatrial_slot* slot = slot_of(area, head, 0, area->used < COARSE_BINS);
  if (slot == NULL)
    slot = slot_of(area, coarse(head), 0, area->used < NO_BINS);
  if (slot == NULL)
    slot = slot_of(area, head & 0xff00ffffu, 0, true);
  return slot;
}

struct seatrial_slot* seatrial_find_slot(uint64_t head, uint64_t site) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  struct seatrial_thread* area = here->area;
  struct seatrial_slot* slot = slot_of(area, head, site, area->used < NO_SITES);
  if (slot == NULL)
    slot = find_coarser(area, head);
  if (slot == NULL) {
    if (!is_part(head))
      __atomic_fetch_add(&seatrial_process.header->lost_calls, 1, __ATOMIC_RELAXED);
    return &discarded;
  }
  return slot;
}

void seatrial_leave_slowly(unsigned call, uint64_t comm, uint64_t bytes, word site, uint64_t begin,
                           uint64_t end) {
  seatrial_leave(call, comm, bytes, site, begin, end);
}

void seatrial_leave_sized_slowly(unsigned call, uint64_t comm, uint64_t size, uint64_t bytes,
                                 word site, uint64_t begin, uint64_t end) {
  seatrial_leave_sized(call, comm, size, bytes, site, begin, end);
}

/* Merges pairs of bins; each bin becomes twice as long. */
static void widen_bins(struct seatrial_thread* area) {
  for (unsigned i = 0; i < SEATRIAL_BINS_OVER_TIME / 2; i++)
    area->over_time[i] = area->over_time[2 * i] + area->over_time[2 * i + 1];
  memset(&area->over_time[SEATRIAL_BINS_OVER_TIME / 2], 0, sizeof area->over_time / 2);
  area->bin_ticks *= 2;
  seatrial_thread_state.bin_shift++;
}

static void add_over_time(uint64_t begin, uint64_t end) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  while ((end - here->loaded_at) >> here->bin_shift >= SEATRIAL_BINS_OVER_TIME)
    widen_bins(here->area);
  while (begin < end) {
    const uint64_t bin = (begin - here->loaded_at) >> here->bin_shift;
    const uint64_t until = here->loaded_at + ((bin + 1) << here->bin_shift);
    const uint64_t part_end = until < end ? until : end;
    here->area->over_time[bin] += part_end - begin;
    begin = part_end;
  }
}

static void tidy(uint64_t now) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL)
    return;
  header->last_call_at = now;
  /* Measured again from time to time, so that the rate is accurate even if the process is
   * killed. */
  if (seatrial_thread_state.tidy_at >> 30 != (now + TIDY_TICKS) >> 30) {
    seatrial_measure_clock();
    seatrial_rebind(); /* objects may have been loaded */
  }
  seatrial_thread_state.tidy_at = now + TIDY_TICKS;
}

/* Then determines until when subsequent calls fall into the same bin: they begin no earlier than
 * this one ended. */
void seatrial_add_time(uint64_t begin, uint64_t end) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  add_over_time(begin, end);
  if (end > here->tidy_at)
    tidy(end);
  const uint64_t bin = (end - here->loaded_at) >> here->bin_shift;
  const uint64_t bin_end = here->loaded_at + ((bin + 1) << here->bin_shift);
  here->bin = &here->area->over_time[bin];
  here->until = bin_end < here->tidy_at ? bin_end : here->tidy_at;
}

/* The process has no file yet: this is recorded in memory that is discarded. */
double seatrial_own_ticks(void) {
  const size_t bytes = sizeof(struct seatrial_thread) + sizeof(struct seatrial_peer);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 0;
  const struct seatrial_thread_state kept = seatrial_thread_state;
  struct seatrial_thread* area = memory;
  seatrial_thread_state = (struct seatrial_thread_state){.where = SEATRIAL_OUTSIDE,
                                                         .outside = SEATRIAL_OUTSIDE,
                                                         .slots = area->slots,
                                                         .until = UINT64_MAX,
                                                         .bin = area->over_time,
                                                         .generation = seatrial_generation,
                                                         .area = area};
  uint64_t least = UINT64_MAX;
  for (int batch = 0; batch < 8; batch++) {
    const uint64_t begin = seatrial_ticks();
    for (int i = 0; i < OWN_CALLS; i++) {
      if (!seatrial_enter())
        break;
      const uint64_t from = seatrial_ticks();
      seatrial_leave(1, 1, 8, 1, from, seatrial_ticks());
    }
    const uint64_t ticks = seatrial_ticks() - begin;
    least = ticks < least ? ticks : least;
  }
  seatrial_thread_state = kept;
  munmap(memory, bytes);
  return (double)least / OWN_CALLS;
}
