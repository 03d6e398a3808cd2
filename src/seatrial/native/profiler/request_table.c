#include "request_table.h"

#include "lock.h"

#include <stddef.h>
#include <stdlib.h>

int seatrial_request_lock;
int64_t seatrial_requests_kept;

static struct seatrial_request* table;
static size_t places; /* a power of two */

static size_t place_of(word handle) {
  return (size_t)((uint64_t)handle * 0x9e3779b97f4a7c15ull >> 32) & (places - 1);
}

struct seatrial_request* seatrial_find_request(word handle) {
  struct seatrial_request* latest = NULL;
  if (seatrial_requests_kept == 0)
    return NULL;
  for (size_t place = place_of(handle); table[place].handle != 0;
       place = (place + 1) & (places - 1))
    if (table[place].handle == handle && (latest == NULL || latest->number < table[place].number))
      latest = &table[place];
  return latest;
}

struct seatrial_request* seatrial_find_ticket(struct seatrial_ticket ticket) {
  if (seatrial_requests_kept == 0)
    return NULL;
  for (size_t place = place_of(ticket.handle); table[place].handle != 0;
       place = (place + 1) & (places - 1))
    if (table[place].handle == ticket.handle && table[place].number == ticket.number)
      return &table[place];
  return NULL;
}

static bool grow(void) {
  struct seatrial_request* old = table;
  const size_t old_places = places;
  struct seatrial_request* grown = calloc(places == 0 ? 256 : 2 * places, sizeof *grown);
  if (grown == NULL)
    return false;
  table = grown;
  places = places == 0 ? 256 : 2 * places;
  for (size_t i = 0; i < old_places; i++)
    if (old[i].handle != 0) {
      size_t place = place_of(old[i].handle);
      while (table[place].handle != 0)
        place = (place + 1) & (places - 1);
      table[place] = old[i];
    }
  free(old);
  return true;
}

struct seatrial_request* seatrial_add_request(word handle) {
  static uint64_t number;
  struct seatrial_request* there = seatrial_many_threads ? NULL : seatrial_find_request(handle);
  if (there != NULL) /* it ended unseen, and the library used its handle anew */
    seatrial_remove_request(there);
  if ((size_t)seatrial_requests_kept * 2 >= places && !grow())
    return NULL;
  size_t place = place_of(handle);
  while (table[place].handle != 0)
    place = (place + 1) & (places - 1);
  table[place] = (struct seatrial_request){.handle = handle, .number = ++number, .peer = -1};
  __atomic_fetch_add(&seatrial_requests_kept, 1, __ATOMIC_RELAXED);
  return &table[place];
}

void seatrial_remove_request(struct seatrial_request* request) {
  if (request->comm != NULL)
    seatrial_release_communicator(request->comm);
  size_t hole = (size_t)(request - table);
  for (size_t next = (hole + 1) & (places - 1); table[next].handle != 0;
       next = (next + 1) & (places - 1)) {
    const size_t wanted = place_of(table[next].handle);
    /* It may move into the hole unless its place lies between the hole and where it is. */
    if (((next - wanted) & (places - 1)) >= ((next - hole) & (places - 1))) {
      table[hole] = table[next];
      hole = next;
    }
  }
  table[hole] = (struct seatrial_request){0};
  __atomic_fetch_sub(&seatrial_requests_kept, 1, __ATOMIC_RELAXED);
}
