/* OpenMP, by the tools interface of the runtime (OpenMP 5.0 specification, chapter 4: OMPT), if
 * SEATRIAL_PROFILE_OPENMP requests it: parallel regions by place, and how long threads wait in
 * them. LLVM's and Intel's runtimes call `ompt_start_tool` when they start; GCC's has no OMPT.
 *
 * A worker reports the end of the barrier that ends a region only when the next one begins. The
 * wait at its end is therefore taken from when each thread arrives there: the last one ends it. */
#include "ompt.h"

#include "area.h"
#include "extension.h"
#include "look_up.h"

#include <stdlib.h>

/* Numbers and types of the specification: omp-tools.h. */
enum { PARALLEL_BEGIN = 3, PARALLEL_END = 4, IMPLICIT_TASK = 7, SYNC_REGION_WAIT = 16 };
enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };
enum { BARRIER = 1, BARRIER_IMPLICIT, BARRIER_EXPLICIT, BARRIER_WORKSHARE = 8, BARRIER_PARALLEL };
enum { INITIAL_TASK = 1 };

union ompt_data {
  uint64_t value;
  void* pointer;
};
typedef void (*callback_t)(void);
typedef int (*set_callback_t)(int event, callback_t callback);
typedef callback_t (*ask_t)(const char* name);

struct ompt_start_tool_result {
  int (*initialize)(ask_t ask, int device, union ompt_data* tool);
  void (*finalize)(union ompt_data* tool);
  union ompt_data tool;
};

/* A parallel region while it runs. */
struct team {
  struct seatrial_parallel* row;
  uint64_t began;
  uint64_t arrived, busy_ticks, latest; /* the last: ticks since it began */
  bool is_nested;
};

enum { MOST_TEAMS = 256 };
static struct team teams[MOST_TEAMS];
static uint32_t is_used[MOST_TEAMS];

static _Thread_local struct {
  struct team* team;
  uint64_t arrived_at; /* at a barrier; 0: not at one */
  uint32_t depth;      /* of parallel regions that this thread has begun or works in */
} here;

static uint64_t runtimes; /* OpenMP runtimes that this process has started */

static struct seatrial_openmp* openmp(void) {
  const struct seatrial_header* header = seatrial_process.header;
  if (header == NULL || header->state != SEATRIAL_INITIALIZED)
    return NULL;
  return &seatrial_extension()->openmp;
}

static void add(uint64_t* to, uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t* to, uint64_t value) {
  uint64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (seen < value &&
         !__atomic_compare_exchange_n(to, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

/* The row of a place; NULL if all are taken. */
static struct seatrial_parallel* row_of(struct seatrial_openmp* all, uint64_t site) {
  for (uint32_t i = 0; i < SEATRIAL_MOST_PARALLEL; i++) {
    struct seatrial_parallel* row = &all->list[i];
    uint64_t there = __atomic_load_n(&row->site, __ATOMIC_ACQUIRE);
    if (there == site ||
        (there == 0 && __atomic_compare_exchange_n(&row->site, &there, site, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) ||
        there == site)
      return row;
  }
  return NULL;
}

static struct team* free_team(void) {
  for (uint32_t i = 0; i < MOST_TEAMS; i++) {
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&is_used[i], &free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return &teams[i];
  }
  return NULL;
}

static void on_parallel_begin(union ompt_data* task, const void* frame, union ompt_data* parallel,
                              unsigned requested, int flags, const void* site) {
  (void)task, (void)frame, (void)requested, (void)flags;
  struct seatrial_openmp* all = openmp();
  parallel->pointer = NULL;
  here.depth++;
  if (all == NULL)
    return;
  struct seatrial_parallel* row = row_of(all, site == NULL ? 1 : (uint64_t)(uintptr_t)site);
  struct team* team = row == NULL ? NULL : free_team();
  if (team == NULL) {
    add(&all->lost, 1);
    return;
  }
  *team = (struct team){.row = row, .is_nested = here.depth > 1};
  parallel->pointer = team;
  team->began = seatrial_ticks();
}

static void on_parallel_end(union ompt_data* parallel, union ompt_data* task, int flags,
                            const void* site) {
  (void)task, (void)flags, (void)site;
  const uint64_t now = seatrial_ticks();
  struct team* team = parallel->pointer;
  struct seatrial_openmp* all = openmp();
  here.depth -= here.depth > 0;
  if (team == NULL)
    return;
  if (all != NULL) {
    struct seatrial_parallel* row = team->row;
    if (team->arrived == 0) { /* a team of one thread has no barrier at its end */
      team->arrived = 1;
      team->busy_ticks = team->latest = now - team->began;
    }
    const uint64_t arrived = __atomic_load_n(&team->arrived, __ATOMIC_ACQUIRE);
    add(&row->count, 1);
    add(&row->ticks, now - team->began);
    raise_to(&row->most_threads, arrived);
    add(&row->arrived, arrived);
    add(&row->busy_ticks, team->busy_ticks);
    add(&row->longest_ticks, team->latest);
    add(&row->last_ticks, team->latest * arrived);
    if (!team->is_nested)
      add(&all->outer_ticks, now - team->began);
  }
  parallel->pointer = NULL;
  __atomic_store_n(&is_used[team - teams], 0, __ATOMIC_RELEASE);
}

static void on_implicit_task(int endpoint, union ompt_data* parallel, union ompt_data* task,
                             unsigned threads, unsigned index, int flags) {
  (void)index, (void)threads;
  if ((flags & INITIAL_TASK) != 0)
    return;
  if (endpoint == SCOPE_BEGIN) {
    struct team* team = parallel == NULL ? NULL : parallel->pointer;
    task->pointer = here.team; /* the team around this one */
    here.team = team;
    here.arrived_at = 0;
    if (index != 0)
      here.depth++;
  } else if (endpoint == SCOPE_END) {
    here.team = task->pointer;
    here.arrived_at = 0;
    if (index != 0)
      here.depth -= here.depth > 0;
  }
}

static bool is_barrier(int kind) {
  return (kind >= BARRIER && kind <= BARRIER_EXPLICIT) ||
         (kind >= BARRIER_WORKSHARE && kind <= BARRIER_PARALLEL);
}

/* Each barrier is taken for the last one, and taken back when it ends within the region. */
static void on_sync_region_wait(int kind, int endpoint, union ompt_data* parallel,
                                union ompt_data* task, const void* site) {
  (void)task, (void)site;
  struct team* team = here.team;
  if (team == NULL || !is_barrier(kind))
    return;
  const uint64_t now = seatrial_ticks();
  if (endpoint == SCOPE_BEGIN) {
    here.arrived_at = now;
    add(&team->arrived, 1);
    add(&team->busy_ticks, now - team->began);
    raise_to(&team->latest, now - team->began);
  } else if (endpoint == SCOPE_END && here.arrived_at != 0) {
    const bool is_last = kind == BARRIER_PARALLEL || parallel == NULL;
    if (!is_last) {
      add(&team->arrived, (uint64_t)-1);
      add(&team->busy_ticks, team->began - here.arrived_at);
      add(&team->row->barriers, 1);
      add(&team->row->barrier_ticks, now - here.arrived_at);
    }
    here.arrived_at = 0;
  }
}

static bool is_requested(void) {
  const char* requested = getenv("SEATRIAL_PROFILE_OPENMP");
  return seatrial_is_enabled() && requested != NULL && requested[0] == '1';
}

void seatrial_open_openmp(void) {
  if (!is_requested())
    return;
  seatrial_extension()->requested |= SEATRIAL_REQUESTED_OPENMP;
  seatrial_extension()->openmp.runtimes = runtimes;
}

static int initialize(ask_t ask, int device, union ompt_data* tool) {
  (void)device, (void)tool;
  const set_callback_t set = (set_callback_t)ask("ompt_set_callback");
  if (set == NULL)
    return 0;
  set(PARALLEL_BEGIN, (callback_t)on_parallel_begin);
  set(PARALLEL_END, (callback_t)on_parallel_end);
  set(IMPLICIT_TASK, (callback_t)on_implicit_task);
  set(SYNC_REGION_WAIT, (callback_t)on_sync_region_wait);
  runtimes++;
  if (openmp() != NULL)
    openmp()->runtimes = runtimes;
  return 1;
}

static void finalize(union ompt_data* tool) {
  (void)tool;
}

__attribute__((visibility("default"))) struct ompt_start_tool_result*
ompt_start_tool(unsigned version, const char* runtime);

/* Unless requested, another tool may answer: the runtime's own function looks for it. */
struct ompt_start_tool_result* ompt_start_tool(unsigned version, const char* runtime) {
  typedef struct ompt_start_tool_result* (*start_t)(unsigned, const char*);
  static struct ompt_start_tool_result result = {initialize, finalize, {0}};
  if (is_requested())
    return &result;
  const start_t next = (start_t)seatrial_look_up("ompt_start_tool");
  return next == NULL ? NULL : next(version, runtime);
}
