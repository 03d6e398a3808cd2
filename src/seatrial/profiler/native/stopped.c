#include "stopped.h"

#include "extension.h"

#include <sys/mman.h>

bool seatrial_is_stopped;

static _Thread_local struct {
  struct seatrial_thread* table; /* this thread's area in the table while it counts elsewhere */
  struct seatrial_thread* unread;
} kept;

static struct seatrial_regions* regions(void) {
  return &seatrial_extension()->regions;
}

/* Every thread notices at its next call: its handles are of an earlier generation. */
static void change(bool is_stopped) {
  __atomic_store_n(&seatrial_is_stopped, is_stopped, __ATOMIC_RELEASE);
  __atomic_fetch_add(&seatrial_generation, 1, __ATOMIC_ACQ_REL);
}

void seatrial_stop(void) {
  if (seatrial_extension() == NULL || seatrial_is_stopped)
    return;
  regions()->stops++;
  regions()->stopped_at = seatrial_ticks();
  change(true);
}

void seatrial_resume(void) {
  if (seatrial_extension() == NULL || !seatrial_is_stopped)
    return;
  regions()->stopped_ticks += seatrial_ticks() - regions()->stopped_at;
  regions()->stopped_at = 0;
  change(false);
}

uint64_t seatrial_stopped_ticks(uint64_t now) {
  const struct seatrial_regions* all = regions();
  return all->stopped_ticks + (all->stopped_at != 0 ? now - all->stopped_at : 0);
}

static struct seatrial_thread* unread_area(void) {
  if (kept.unread == NULL) {
    void* memory = mmap(NULL, seatrial_process.header->thread_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kept.unread = memory == MAP_FAILED ? NULL : memory;
  }
  return kept.unread;
}

void seatrial_change_area(void) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  here->is_stopped = seatrial_is_stopped;
  if (here->is_stopped) {
    struct seatrial_thread* unread = unread_area();
    if (unread == NULL)
      return; /* it goes on counting */
    kept.table = here->area;
    seatrial_count_into(unread);
  } else if (kept.table != NULL) {
    seatrial_count_into(kept.table);
    kept.table = NULL;
  }
}

struct seatrial_thread* seatrial_table_area(void) {
  return kept.table != NULL ? kept.table : seatrial_thread_state.area;
}
