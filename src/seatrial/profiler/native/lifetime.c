#include "lifetime.h"

#include "area.h"
#include "children.h"
#include "communicator.h"
#include "counter_split.h"
#include "counters.h"
#include "cpu_slices.h"
#include "deliver.h"
#include "family.h"
#include "library.h"
#include "lock.h"
#include "modules.h"
#include "next.h"
#include "ompt.h"
#include "own_code.h"
#include "region.h"
#include "speed.h"
#include "system_time.h"
#include "table_open.h"
#include "trace.h"

#include <stddef.h>

enum { MAX_VERSION = 8192 + 1 }; /* above the MPI_MAX_LIBRARY_VERSION_STRING of every library */

static int open_sessions;
static bool is_world_open;

static void find_family(char* version) {
  seatrial_find_library();
  int length = 0;
  version[0] = '\0';
  if (seatrial_library.Get_library_version != NULL)
    seatrial_library.Get_library_version(version, &length);
  version[MAX_VERSION - 1] = '\0';
  seatrial_choose_family(version);
}

static void begun(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL)
    return;
  struct seatrial_kernel_use* kernel = &seatrial_extension()->kernel;
  if (kernel->system_first_ns == 0) {
    kernel->system_first_ns = seatrial_system_ns();
    kernel->children_first_ns = seatrial_children_ns();
    seatrial_measure_speed(SEATRIAL_SPEED_AT_ENDS);
  }
  seatrial_time_system_calls();
  seatrial_open_regions();
  seatrial_open_openmp();
  seatrial_start_counters();
  seatrial_begin_counter_split();
  seatrial_begin_own_code();
  seatrial_begin_slices();
  header->initialized_at = seatrial_ticks();
  header->state = SEATRIAL_INITIALIZED;
}

void seatrial_opened(void) {
  if (!seatrial_is_enabled())
    return;
  char version[MAX_VERSION];
  find_family(version);
  int rank = -1;
  int size = 0;
  int threads = 0;
  if (seatrial_is_known()) {
    if (!seatrial_begin_world(&rank, &size))
      return;
    seatrial_library.Query_thread(&threads);
    seatrial_many_threads = seatrial_many_threads || threads >= seatrial_mpi.thread_multiple;
  }
  is_world_open = true;
  seatrial_open_file(rank, size, version);
  seatrial_open_trace(true);
  begun();
}

void seatrial_opened_session(word address) {
  if (!seatrial_is_enabled())
    return;
  if (__atomic_fetch_add(&open_sessions, 1, __ATOMIC_ACQ_REL) != 0 || is_world_open)
    return;
  char version[MAX_VERSION];
  find_family(version);
  int rank = -1;
  int size = 0;
  if (seatrial_is_known()) {
    if (!seatrial_begin_session_world(seatrial_handle_at(address, 0), &rank, &size))
      return;
    seatrial_many_threads = true; /* each session has its own thread level */
  }
  seatrial_open_file(rank, size, version);
  seatrial_open_trace(false);
  begun();
}

/* Values that are most accurate at the end: more libraries may have been loaded. */
static void update_header(struct seatrial_header* header, uint64_t now) {
  header->last_call_at = now;
  seatrial_close_regions(now);
  seatrial_end_counter_split();
  seatrial_read_counters();
  seatrial_end_slices();
  seatrial_end_own_code();
  seatrial_sample_cpu();
  seatrial_extension()->kernel.children_last_ns = seatrial_children_ns();
  seatrial_measure_clock();
  seatrial_write_modules((char*)header + SEATRIAL_PAGE);
}

static void end(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL)
    return;
  header->finalized_at = seatrial_ticks();
  update_header(header, header->finalized_at);
  seatrial_measure_speed(SEATRIAL_SPEED_AT_ENDS);
  seatrial_end_trace(header->finalized_at);
}

void seatrial_closing(void) {
  end();
  if (seatrial_is_known())
    seatrial_end_world();
  is_world_open = false;
}

void seatrial_closed(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL || open_sessions != 0 || header->state == SEATRIAL_ABORTED)
    return;
  seatrial_sample_io();
  __atomic_store_n(&header->state, SEATRIAL_FINALIZED, __ATOMIC_SEQ_CST);
}

void seatrial_closing_session(word session) {
  if (seatrial_is_known())
    seatrial_end_session_world(session);
  if (!is_world_open && open_sessions == 1)
    end();
}

void seatrial_closed_session(void) {
  if (__atomic_sub_fetch(&open_sessions, 1, __ATOMIC_ACQ_REL) == 0 && !is_world_open)
    seatrial_closed();
}

void seatrial_aborting(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL)
    return;
  update_header(header, seatrial_ticks());
  seatrial_sample_io();
  header->state = SEATRIAL_ABORTED;
  seatrial_deliver();
}
