/* The table of requests in flight, by handle: open addressing, removal by backward shift. */
#ifndef SEATRIAL_REQUEST_TABLE_H
#define SEATRIAL_REQUEST_TABLE_H

#include "communicator.h"

enum seatrial_request_kind {
  SEATRIAL_RECEIVE = 1,
  SEATRIAL_READ,            /* file read */
  SEATRIAL_MATCHED,         /* not a request: a message matched by a probe and not yet received */
  SEATRIAL_SEND,            /* also collectives; tracked for the trace only */
  SEATRIAL_PERSISTENT_SEND, /* from here on persistent */
  SEATRIAL_PERSISTENT_COLLECTIVE,
  SEATRIAL_PERSISTENT_RECEIVE,
  SEATRIAL_PARTITIONED_RECEIVE /* its length is fixed when the request is created */
};

/* A tracked request. A library may reuse a handle for another thread before the call that
 * completed it has returned to us, so a serial number identifies the request. */
struct seatrial_ticket {
  word handle;
  uint64_t number; /* 0: not tracked */
  uint64_t place;  /* index where it was found */
};

/* Number of tracked requests; if it is 0 there is nothing to do on completion. */
extern int64_t seatrial_requests_tracked SEATRIAL_HIDDEN;

static inline bool seatrial_is_persistent(enum seatrial_request_kind kind) {
  return kind >= SEATRIAL_PERSISTENT_SEND;
}

struct seatrial_request {
  word handle; /* 0: empty */
  uint64_t number;
  enum seatrial_request_kind kind;
  bool is_active;
  bool is_cancelled;
  bool has_gaps; /* a persistent send whose datatype has gaps */
  uint64_t bytes;
  struct seatrial_communicator* comm; /* holds a reference; NULL for files */
  int peer;                           /* in comm; negative: any, or none */
  uint32_t trace_place;               /* 1 + index of its record in the trace; 0: none */
  uint32_t template_place;            /* the same for the template of a persistent request */
};

struct seatrial_request_table {
  struct seatrial_request* entries; /* NULL: nothing was tracked yet */
  uint64_t last_place;              /* a power of two minus 1 */
};

extern struct seatrial_request_table seatrial_request_table SEATRIAL_HIDDEN;
extern int seatrial_request_lock SEATRIAL_HIDDEN;

/* Call these functions with the lock held. NULL: not found, or out of memory. */
struct seatrial_request* seatrial_add_request(word handle);
void seatrial_remove_request(struct seatrial_request* request);

static inline uint64_t seatrial_request_place(word handle) {
  return (uint64_t)handle * 0x9e3779b97f4a7c15ull >> 32 & seatrial_request_table.last_place;
}

/* The latest request with this handle: with several threads there may be an older one whose
 * completion has not been reported yet. */
static inline struct seatrial_request* seatrial_find_request(word handle) {
  const struct seatrial_request_table* table = &seatrial_request_table;
  struct seatrial_request* latest = NULL;
  if (table->entries == NULL)
    return NULL;
  for (uint64_t place = seatrial_request_place(handle); table->entries[place].handle != 0;
       place = (place + 1) & table->last_place) {
    struct seatrial_request* one = &table->entries[place];
    if (one->handle == handle && (latest == NULL || latest->number < one->number))
      latest = one;
  }
  return latest;
}

static inline struct seatrial_request* seatrial_find_ticket(struct seatrial_ticket ticket) {
  const struct seatrial_request_table* table = &seatrial_request_table;
  if (ticket.place <= table->last_place && table->entries[ticket.place].number == ticket.number &&
      table->entries[ticket.place].handle == ticket.handle)
    return &table->entries[ticket.place];
  for (uint64_t place = seatrial_request_place(ticket.handle); table->entries[place].handle != 0;
       place = (place + 1) & table->last_place)
    if (table->entries[place].handle == ticket.handle &&
        table->entries[place].number == ticket.number)
      return &table->entries[place];
  return NULL;
}

#endif
