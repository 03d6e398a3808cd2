/* The table of requests that are in flight, by handle: open addressing, removal by shifting back.
 */
#ifndef SEATRIAL_REQUEST_TABLE_H
#define SEATRIAL_REQUEST_TABLE_H

#include "communicator.h"
#include "request.h"

struct seatrial_request {
  word handle; /* 0: empty */
  uint64_t number;
  enum seatrial_request_kind kind;
  bool is_active;
  bool is_cancelled;
  uint64_t bytes;
  struct seatrial_communicator* comm; /* held; NULL of files */
  int peer;                           /* in comm; negative: any, or none */
};

/* All are called with the lock held. NULL: it is not there, or there is no memory. */
struct seatrial_request* seatrial_find_request(word handle); /* the latest of its handle */
struct seatrial_request* seatrial_find_ticket(struct seatrial_ticket ticket);
struct seatrial_request* seatrial_add_request(word handle);
void seatrial_remove_request(struct seatrial_request* request);

extern int seatrial_request_lock;

#endif
