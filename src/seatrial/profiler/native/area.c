#include "area.h"

#include "cpu_slices.h"
#include "look_up.h"
#include "rebind.h"
#include "region.h"
#include "stopped.h"

#include <pthread.h>
#include <sys/mman.h>

enum {
  FIRST_BIN_SHIFT = 22, /* a few milliseconds; the bins widen as the run gets longer */
  TIDY_TICKS = 1 << 17,
  CANDIDATES = 32, /* rows of which the one with the least time gives way to a new call site */
  OWN_CALLS = 1024
};

/* Slots in use beyond which call sites give way to each other, */
static uint32_t no_sites(uint32_t rows) {
  return rows / 8 * 7;
}

/* then sizes are recorded by their power of two, */
static uint32_t coarse_bins(uint32_t rows) {
  return rows / 16 * 15;
}

/* then neither size nor communicator is recorded. */
static uint32_t no_bins(uint32_t rows) {
  return rows / 64 * 63;
}

_Thread_local struct seatrial_thread_state seatrial_thread_state;
uint64_t seatrial_generation = 1;
bool seatrial_examines_calls;
unsigned seatrial_examine_reasons;
word (*seatrial_refine_site)(word site);
struct seatrial_call_watch seatrial_call_watch;

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
  here->rows = seatrial_process.header->rows;
  here->slots = seatrial_slots_of(area);
  here->peers = (struct seatrial_peer*)(here->slots + here->rows);
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
  site = here->site != 0 ? here->site : site;
  if (!SEATRIAL_LIKELY(seatrial_refine_site == NULL))
    site = seatrial_refine_site(site);
  if (!SEATRIAL_LIKELY(seatrial_call_watch.entered == NULL)) {
    here->until = 0; /* the call ends in seatrial_add_time */
    seatrial_call_watch.entered();
  }
  return seatrial_in_region(site);
}

static void make_slot(struct seatrial_slot* slot, uint64_t head, uint64_t site) {
  slot->site = site;
  slot->least_ticks = UINT64_MAX;
  __atomic_store_n((uint64_t*)(void*)slot, head, __ATOMIC_RELEASE);
}

/* The `n`-th slot to probe for a key. More than SEATRIAL_SLOTS rows are probed from another place
 * than the first one, spread over all of them. */
static struct seatrial_slot* probed(uint32_t n, uint64_t head, uint64_t site) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  const uint32_t first = seatrial_place_of(head, site);
  if (here->rows == SEATRIAL_SLOTS || n == 0)
    return &here->slots[(first + n) % SEATRIAL_SLOTS];
  const uint32_t spread = (uint32_t)(seatrial_hash_of(head, site) >> 32);
  return &here->slots[(spread + n) % here->rows];
}

/* The slot of a key, created in the first free slot if it may be; NULL if there is none. Slots
 * never become free again, but their keys change: a free slot does not end the search within the
 * first `at_least` slots. */
static struct seatrial_slot* slot_of(struct seatrial_thread* area, uint64_t head, uint64_t site,
                                     bool may_make, uint32_t at_least) {
  const uint32_t rows = seatrial_thread_state.rows;
  for (uint32_t tried = 0; tried < rows; tried++) {
    struct seatrial_slot* slot = probed(tried, head, site);
    const uint64_t there = seatrial_head_of(slot);
    if (there == head && slot->site == site)
      return slot;
    if (there != 0 || (!may_make && tried < at_least))
      continue;
    if (!may_make)
      return NULL;
    make_slot(slot, head, site);
    area->used++;
    return slot;
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

/* The row without a call site; as the table fills up, its key gets coarser: count and bytes stay
 * exact. */
static struct seatrial_slot* find_coarser(struct seatrial_thread* area, uint64_t head) {
  const uint32_t rows = seatrial_thread_state.rows;
  struct seatrial_slot* slot = slot_of(area, head, 0, area->used < coarse_bins(rows), 0);
  if (slot == NULL)
    slot = slot_of(area, coarse(head), 0, area->used < no_bins(rows), 0);
  if (slot == NULL)
    slot = slot_of(area, head & 0xff00ffffu, 0, true, 0);
  return slot;
}

/* The call site with the least time among the first slots of a new key; NULL if there is none. */
static struct seatrial_slot* coldest(uint64_t head, uint64_t site) {
  struct seatrial_slot* found = NULL;
  for (uint32_t n = 0; n < CANDIDATES; n++) {
    struct seatrial_slot* slot = probed(n, head, site);
    if (slot->site != 0 && (found == NULL || slot->ticks < found->ticks))
      found = slot;
  }
  return found;
}

/* Gives the row of a rarely called site to a new one, after adding it to the row without a site.
 * Thus sites with most of the time have rows at the end, not those that came first (as in: A.
 * Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data
 * streams", ICDT 2005). NULL if no row can be given. */
static struct seatrial_slot* replace_coldest(struct seatrial_thread* area, uint64_t head,
                                             uint64_t site) {
  struct seatrial_slot* slot = coldest(head, site);
  struct seatrial_slot* rest = slot == NULL ? NULL : find_coarser(area, seatrial_head_of(slot));
  if (rest == NULL)
    return NULL;
  rest->count += slot->count;
  rest->bytes += slot->bytes;
  rest->pause_ticks += slot->pause_ticks;
  rest->ticks += slot->ticks;
  if (slot->least_ticks < rest->least_ticks)
    rest->least_ticks = slot->least_ticks;
  if (slot->most_ticks > rest->most_ticks)
    rest->most_ticks = slot->most_ticks;
  area->without_site += slot->count;
  slot->count = 0; /* a row without calls is ignored by readers */
  slot->bytes = slot->ticks = slot->most_ticks = slot->pause_ticks = 0;
  make_slot(slot, head, site);
  return slot;
}

struct seatrial_slot* seatrial_find_slot(uint64_t head, uint64_t site) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  struct seatrial_thread* area = here->area;
  const bool is_full = area->used >= no_sites(here->rows);
  struct seatrial_slot* slot = slot_of(area, head, site, !is_full, site != 0 ? CANDIDATES : 0);
  if (slot == NULL && site != 0)
    slot = replace_coldest(area, head, site);
  if (slot == NULL) {
    if (site != 0)
      area->without_site++;
    slot = find_coarser(area, head);
  }
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
  seatrial_take_slice_if_due(now);
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
  if (!SEATRIAL_LIKELY(seatrial_call_watch.left == NULL))
    seatrial_call_watch.left(begin, end);
  if (end > here->tidy_at)
    tidy(end);
  const uint64_t bin = (end - here->loaded_at) >> here->bin_shift;
  const uint64_t bin_end = here->loaded_at + ((bin + 1) << here->bin_shift);
  here->bin = &here->area->over_time[bin];
  here->until = bin_end < here->tidy_at ? bin_end : here->tidy_at;
}

double seatrial_reading_ticks(void) {
  uint64_t least = UINT64_MAX;
  for (int batch = 0; batch < 8; batch++) {
    const uint64_t begin = seatrial_ticks_in_order();
    uint64_t end = begin;
    for (int i = 0; i < OWN_CALLS; i++)
      end = seatrial_ticks_in_order();
    least = end - begin < least ? end - begin : least;
  }
  return (double)least / OWN_CALLS;
}

/* The process has no file yet: this is recorded in memory that is discarded. */
double seatrial_own_ticks(void) {
  const size_t bytes = sizeof(struct seatrial_thread) +
                       SEATRIAL_SLOTS * sizeof(struct seatrial_slot) + sizeof(struct seatrial_peer);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 0;
  const struct seatrial_thread_state kept = seatrial_thread_state;
  struct seatrial_thread* area = memory;
  seatrial_thread_state = (struct seatrial_thread_state){.where = SEATRIAL_OUTSIDE,
                                                         .outside = SEATRIAL_OUTSIDE,
                                                         .slots = seatrial_slots_of(area),
                                                         .rows = SEATRIAL_SLOTS,
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
