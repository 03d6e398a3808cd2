#include "place.h"

#include "area.h"
#include "clock.h"
#include "process.h"
#include "python_frames.h"
#include "unwind.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  PLACES_BYTES = 4 << 20,
  RESERVED_AT_ONCE = 1 << 16,
  KNOWN = 1 << 15, /* keys in a hash table; a power of two */
  MOST_PLACES = KNOWN / 2,
  TIMED_CALLS = 256
};

static uint32_t frames; /* of a call path; 0: none */
static uint64_t known[KNOWN];
static unsigned places;
static uint64_t reserved; /* bytes from the first place on */
static int lock;          /* for adding a place; threads may begin to run at any time */

struct place {
  uint64_t addresses[SEATRIAL_MOST_FRAMES];
  unsigned count;
  struct seatrial_python_frame python[SEATRIAL_MOST_FRAMES];
  unsigned python_count;
};

static char* heap(void) {
  struct seatrial_header* header = seatrial_process.header;
  return (char*)header + header->thread_offset - header->places_bytes;
}

uint32_t seatrial_wanted_frames(void) {
  const char* text = getenv("SEATRIAL_PROFILE_PATHS");
  const long wanted = text == NULL ? 0 : strtol(text, NULL, 10);
  return wanted <= 0 ? 0 : wanted < SEATRIAL_MOST_FRAMES ? (uint32_t)wanted : SEATRIAL_MOST_FRAMES;
}

uint64_t seatrial_wanted_places(void) {
  return seatrial_find_python() || seatrial_wanted_frames() != 0 ? PLACES_BYTES : 0;
}

/* Two multiplications and a fold of the product's halves for each word (as wyhash, Wang Yi). */
static uint64_t mixed(uint64_t hash, uint64_t value) {
  const unsigned __int128 product =
      (unsigned __int128)(hash ^ 0xa0761d6478bd642full) * (value ^ 0xe7037ed1a0b428dbull);
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t key_of(const struct place* place) {
  uint64_t hash = place->count;
  for (unsigned i = 0; i < place->count; i++)
    hash = mixed(hash, place->addresses[i]);
  for (unsigned i = 0; i < place->python_count; i++)
    hash = mixed(mixed(hash, (uint64_t)place->python[i].code), place->python[i].instruction);
  return (hash & ~SEATRIAL_REGION_BITS) | SEATRIAL_PLACE_BIT;
}

/* The place of a key in the hash table: where it is, or where it may be added. */
static uint64_t* entry_of(uint64_t key) {
  for (uint64_t at = key;; at++) {
    uint64_t* entry = &known[at % KNOWN];
    const uint64_t there = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
    if (there == key || there == 0)
      return entry;
  }
}

/* Space for a record; NULL if there is none. */
static char* space_for(uint64_t bytes) {
  struct seatrial_header* header = seatrial_process.header;
  const uint64_t end = header->places_used + bytes;
  if (places >= MOST_PLACES || end > header->places_bytes)
    return NULL;
  if (end > reserved) {
    const uint64_t more = end > reserved + RESERVED_AT_ONCE ? end - reserved : RESERVED_AT_ONCE;
    if (!seatrial_reserve(header->thread_offset - header->places_bytes + reserved, more))
      return NULL;
    reserved += more;
  }
  return heap() + header->places_used;
}

static bool write_place(const struct place* place, uint64_t key) {
  static char text[SEATRIAL_MOST_FRAMES * SEATRIAL_PYTHON_TEXT]; /* guarded by the lock */
  size_t length = 0;
  unsigned written = 0;
  for (; written < place->python_count; written++) {
    const size_t one =
        seatrial_describe_python(&place->python[written], text + length, sizeof text - length);
    if (one == 0)
      break;
    length += one;
  }
  struct seatrial_place head = {
      .key = key, .addresses = (uint16_t)place->count, .python_frames = (uint16_t)written};
  const size_t addresses = place->count * sizeof place->addresses[0];
  head.bytes = (uint32_t)((sizeof head + addresses + length + 7) / 8 * 8);
  char* record = space_for(head.bytes);
  if (record == NULL)
    return false;
  memcpy(record, &head, sizeof head);
  memcpy(record + sizeof head, place->addresses, addresses);
  memcpy(record + sizeof head + addresses, text, length);
  struct seatrial_header* header = seatrial_process.header;
  __atomic_store_n(&header->places_used, header->places_used + head.bytes, __ATOMIC_RELEASE);
  places++;
  return true;
}

/* Adds a place that is not known; false if there is no space for it. */
static bool add(const struct place* place, uint64_t key) {
  struct seatrial_header* header = seatrial_process.header;
  static bool is_full;
  bool is_added = false;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
    sched_yield();
  uint64_t* entry = entry_of(key);
  if (*entry == key)
    is_added = true; /* by another thread meanwhile */
  else if (!is_full && header != NULL && write_place(place, key)) {
    __atomic_store_n(entry, key, __ATOMIC_RELEASE);
    is_added = true;
  } else
    is_full = true;
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  return is_added;
}

static word refine(word site) {
  struct place place;
  place.addresses[0] = site;
  place.count = frames <= 1 ? 1 : seatrial_call_path(site, place.addresses, frames);
  place.python_count = seatrial_python_frames(place.python, frames == 0 ? 1 : frames);
  if (seatrial_process.header == NULL || (place.count == 1 && place.python_count == 0))
    return site;
  const uint64_t key = key_of(&place);
  if (SEATRIAL_LIKELY(*entry_of(key) == key) || add(&place, key))
    return (word)key;
  __atomic_fetch_add(&seatrial_process.header->lost_places, 1, __ATOMIC_RELAXED);
  return site;
}

double seatrial_begin_places(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL || header->places_bytes == 0)
    return 0;
  frames = header->path_frames;
  seatrial_check_python();
  seatrial_examine_reasons |= SEATRIAL_EXAMINES_FOR_PLACES;
  refine((word)__builtin_return_address(0));
  const uint64_t begin = seatrial_ticks();
  for (int i = 0; i < TIMED_CALLS; i++)
    refine((word)__builtin_return_address(0));
  const uint64_t ticks = seatrial_ticks() - begin;
  seatrial_refine_site = refine;
  return (double)ticks / TIMED_CALLS;
}
