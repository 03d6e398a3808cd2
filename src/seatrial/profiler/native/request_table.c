#include "request_table.h"

#include "lock.h"

#include <stddef.h>
#include <stdlib.h>

enum { FIRST_PLACES = 256 };

int seatrial_request_lock;
int64_t seatrial_requests_tracked;
struct seatrial_request_table seatrial_request_table;

/* Other threads read the number without the lock. */
static void set_tracked(int64_t tracked) {
  __atomic_store_n(&seatrial_requests_tracked, tracked, __ATOMIC_RELAXED);
}

/* An empty entry, or one that holds `replaced` (0: only an empty one). */
static struct seatrial_request* free_place(word handle, word replaced) {
  const struct seatrial_request_table* table = &seatrial_request_table;
  uint64_t place = seatrial_request_place(handle);
  while (table->entries[place].handle != 0 && table->entries[place].handle != replaced)
    place = (place + 1) & table->last_place;
  return &table->entries[place];
}

static bool grow(void) {
  struct seatrial_request_table* table = &seatrial_request_table;
  const struct seatrial_request_table old = *table;
  const uint64_t places = old.entries == NULL ? FIRST_PLACES : 2 * (old.last_place + 1);
  struct seatrial_request* grown = calloc(places, sizeof *grown);
  if (grown == NULL)
    return false;
  table->entries = grown;
  table->last_place = places - 1;
  for (uint64_t i = 0; old.entries != NULL && i <= old.last_place; i++)
    if (old.entries[i].handle != 0)
      *free_place(old.entries[i].handle, 0) = old.entries[i];
  free(old.entries);
  return true;
}

struct seatrial_request* seatrial_add_request(word handle) {
  static uint64_t number;
  const struct seatrial_request_table* table = &seatrial_request_table;
  if ((table->entries == NULL || (uint64_t)seatrial_requests_tracked * 2 > table->last_place) &&
      !grow())
    return NULL;
  /* With a single calling thread, an existing entry means that a request with this handle ended
   * unseen. */
  struct seatrial_request* there = free_place(handle, seatrial_many_threads ? 0 : handle);
  if (there->handle == 0)
    set_tracked(seatrial_requests_tracked + 1);
  else if (there->comm != NULL)
    seatrial_release_communicator(there->comm);
  *there = (struct seatrial_request){.handle = handle, .number = ++number, .peer = -1};
  return there;
}

void seatrial_remove_request(struct seatrial_request* request) {
  const struct seatrial_request_table* table = &seatrial_request_table;
  if (request->comm != NULL)
    seatrial_release_communicator(request->comm);
  uint64_t hole = (uint64_t)(request - table->entries);
  for (uint64_t next = (hole + 1) & table->last_place; table->entries[next].handle != 0;
       next = (next + 1) & table->last_place) {
    const uint64_t wanted = seatrial_request_place(table->entries[next].handle);
    /* The entry may move into the hole unless its home position lies between the hole and its
     * current position. */
    if (((next - wanted) & table->last_place) >= ((next - hole) & table->last_place)) {
      table->entries[hole] = table->entries[next];
      hole = next;
    }
  }
  table->entries[hole].handle = 0;
  set_tracked(seatrial_requests_tracked - 1);
}
