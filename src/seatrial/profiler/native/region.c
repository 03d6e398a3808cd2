#include "region.h"

#include "extension.h"
#include "stopped.h"

#include <sched.h>
#include <string.h>

/* A region that this thread is in; `number` 0: it has no row. */
struct open_region {
  uint32_t number;
  uint32_t name_hash;
  uint64_t at;
  uint64_t stopped_ticks;
  uint64_t mpi_ticks;
  uint64_t cpu_ns;
};

static _Thread_local struct {
  uint32_t depth; /* may exceed the number of entries */
  struct open_region list[SEATRIAL_REGION_DEPTH];
} entered;

static uint64_t early;
static int lock;

static struct seatrial_regions* regions(void) {
  return &seatrial_extension()->regions;
}

static void add(uint64_t* to, uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv */
static uint32_t hash_of(const char* name) {
  uint32_t hash = 2166136261u;
  for (int i = 0; i < SEATRIAL_REGION_NAME_BYTES - 1 && name[i] != '\0'; i++)
    hash = (hash ^ (unsigned char)name[i]) * 16777619u;
  return hash;
}

/* Ticks of this thread in MPI: its bins over time, up to the current one. */
static uint64_t mpi_ticks(uint64_t now) {
  const struct seatrial_thread* area = seatrial_table_area();
  if (area == NULL || area->bin_ticks == 0)
    return 0;
  const unsigned shift = (unsigned)__builtin_ctzll(area->bin_ticks);
  const uint64_t last = (now - seatrial_thread_state.loaded_at) >> shift;
  uint64_t sum = 0;
  for (uint64_t i = 0; i <= last && i < SEATRIAL_BINS_OVER_TIME; i++)
    sum += area->over_time[i];
  return sum;
}

static uint64_t cpu_ns(void) {
  return (uint64_t)seatrial_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint32_t number_of(const struct seatrial_regions* all, uint32_t parent, const char* name) {
  for (uint32_t i = 0; i < SEATRIAL_MOST_REGIONS; i++) {
    const struct seatrial_region* one = &all->list[i];
    if (!__atomic_load_n(&one->is_there, __ATOMIC_ACQUIRE))
      break;
    if (one->parent == parent && strncmp(one->name, name, sizeof one->name - 1) == 0)
      return i + 1;
  }
  return 0;
}

/* The number of a region, which gets a row if there is one; else 0. Threads may begin regions at
 * any thread level of MPI. */
static uint32_t find_or_make(struct seatrial_regions* all, uint32_t parent, const char* name) {
  uint32_t number = number_of(all, parent, name);
  if (number != 0)
    return number;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
    sched_yield();
  number = number_of(all, parent, name);
  for (uint32_t i = 0; number == 0 && i < SEATRIAL_MOST_REGIONS; i++) {
    struct seatrial_region* one = &all->list[i];
    if (one->is_there)
      continue;
    one->parent = parent;
    strncpy(one->name, name, sizeof one->name - 1);
    __atomic_store_n(&one->is_there, 1, __ATOMIC_RELEASE);
    number = i + 1;
  }
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  return number;
}

/* False outside MPI_Init to MPI_Finalize, and inside MPI (a callback of the library). */
static bool may_record(void) {
  const struct seatrial_header* header = seatrial_process.header;
  if (header == NULL || seatrial_extension() == NULL) {
    add(&early, 1);
    return false;
  }
  if (header->state != SEATRIAL_INITIALIZED || header->finalized_at != 0) {
    add(&regions()->early, 1);
    return false;
  }
  return seatrial_thread_state.where != SEATRIAL_INSIDE;
}

/* From now on each call of MPI is examined: its row is that of the region. */
static bool has_area(void) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (here->area == NULL && seatrial_enter_slowly(1) == 0)
    return false;
  seatrial_examine_reasons |= SEATRIAL_EXAMINES_FOR_REGIONS;
  seatrial_examines_calls = true;
  here->where = here->outside = SEATRIAL_EXAMINING;
  return true;
}

static uint32_t innermost(void) {
  const uint32_t depth =
      entered.depth < SEATRIAL_REGION_DEPTH ? entered.depth : SEATRIAL_REGION_DEPTH;
  for (uint32_t i = depth; i-- > 0;)
    if (entered.list[i].number != 0)
      return entered.list[i].number;
  return 0;
}

void seatrial_begin_region(const char* name) {
  if (name == NULL || name[0] == '\0' || !may_record() || !has_area())
    return;
  if (entered.depth >= SEATRIAL_REGION_DEPTH) {
    entered.depth++;
    add(&regions()->lost, 1);
    return;
  }
  const uint32_t number = find_or_make(regions(), innermost(), name);
  struct open_region* one = &entered.list[entered.depth++];
  *one = (struct open_region){.number = number, .name_hash = hash_of(name)};
  if (number == 0) {
    add(&regions()->lost, 1);
    return;
  }
  add(&regions()->list[number - 1].begun, 1);
  seatrial_thread_state.region = (uint8_t)number;
  one->cpu_ns = cpu_ns();
  one->at = seatrial_ticks();
  one->mpi_ticks = mpi_ticks(one->at);
  one->stopped_ticks = seatrial_stopped_ticks(one->at);
}

static void count(const struct open_region* one, uint64_t now, uint64_t cpu) {
  if (one->number == 0)
    return;
  struct seatrial_region* row = &regions()->list[one->number - 1];
  add(&row->ticks, now - one->at - (seatrial_stopped_ticks(now) - one->stopped_ticks));
  add(&row->mpi_ticks, mpi_ticks(now) - one->mpi_ticks);
  add(&row->cpu_ns, cpu - one->cpu_ns);
}

void seatrial_end_region(const char* name) {
  if (name == NULL || name[0] == '\0')
    return;
  if (!may_record())
    return;
  if (entered.depth > SEATRIAL_REGION_DEPTH) { /* one of those that are too deep */
    entered.depth--;
    return;
  }
  const uint32_t hash = hash_of(name);
  uint32_t found = entered.depth;
  while (found > 0 && entered.list[found - 1].name_hash != hash)
    found--;
  if (found == 0) {
    add(&regions()->unbegun, 1);
    return;
  }
  const uint64_t cpu = cpu_ns(); /* before the time, as at the begin */
  const uint64_t now = seatrial_ticks();
  add(&regions()->crossed, entered.depth - found);
  while (entered.depth >= found) {
    const struct open_region* one = &entered.list[--entered.depth];
    count(one, now, cpu);
    if (one->number != 0)
      add(&regions()->list[one->number - 1].ended, 1);
  }
  seatrial_thread_state.region = (uint8_t)innermost();
}

void seatrial_open_regions(void) {
  regions()->early = early;
}

void seatrial_close_regions(uint64_t now) {
  const uint32_t depth =
      entered.depth < SEATRIAL_REGION_DEPTH ? entered.depth : SEATRIAL_REGION_DEPTH;
  for (uint32_t i = 0; i < depth; i++)
    count(&entered.list[i], now, cpu_ns());
  entered.depth = 0;
  seatrial_thread_state.region = 0;
}

__attribute__((visibility("default"))) void seatrial_profiler_region_begin(const char* name);
__attribute__((visibility("default"))) void seatrial_profiler_region_end(const char* name);

void seatrial_profiler_region_begin(const char* name) {
  if (seatrial_is_enabled())
    seatrial_begin_region(name);
}

void seatrial_profiler_region_end(const char* name) {
  if (seatrial_is_enabled())
    seatrial_end_region(name);
}
