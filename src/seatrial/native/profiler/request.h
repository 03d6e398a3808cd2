/* Requests whose completion tells something: receives, reads of files, and what is started again
 * and again. Kept by their handles until they complete; those of persistent requests until they are
 * freed. Memory grows with the most that were in flight at once. */
#ifndef SEATRIAL_REQUEST_H
#define SEATRIAL_REQUEST_H

#include "message.h"

enum seatrial_request_kind {
  SEATRIAL_RECEIVE = 1,
  SEATRIAL_READ,            /* of a file */
  SEATRIAL_MATCHED,         /* no request: a message that a probe matched, before it is received */
  SEATRIAL_SEND,            /* and collectives; kept for the trace alone */
  SEATRIAL_PERSISTENT_SEND, /* from here on persistent */
  SEATRIAL_PERSISTENT_COLLECTIVE,
  SEATRIAL_PERSISTENT_RECEIVE,
  SEATRIAL_PARTITIONED_RECEIVE /* its length is what the request was made with */
};

/* How many are kept; where it is 0 there is nothing to do at completion. */
extern int64_t seatrial_requests_kept SEATRIAL_HIDDEN;

/* Called with the address of the handle, after the call that made it. `source` as the program gave
 * it. */
void seatrial_keep_receive(word request, enum seatrial_request_kind kind, word comm, word source,
                           uint64_t bytes);
void seatrial_keep_start(word request, enum seatrial_request_kind kind, word comm, word dest,
                         uint64_t bytes);
void seatrial_keep_read(word request);

/* The bytes of a persistent request that was started. */
uint64_t seatrial_started(word request);
uint64_t seatrial_started_all(int64_t n, word requests);

/* A kept request. A library may use a handle anew for another thread before the call that completed
 * it has returned to ours, so a number tells which one is meant. */
struct seatrial_ticket {
  word handle;
  uint64_t number; /* 0: not kept */
  uint64_t place;  /* where it was found */
};

/* Requests that are handed to a call which may complete them. */
struct seatrial_waiting {
  int64_t n; /* 0: none of them matters */
  struct seatrial_ticket* tickets;
  word statuses; /* what the call is given */
  struct seatrial_ticket one;
};

/* `status` is where the call puts what it tells: given to the call as `waiting->statuses`, our own
 * where the program asks for none. */
void seatrial_wait_one(struct seatrial_waiting* waiting, word request, word status,
                       struct seatrial_status* own);
void seatrial_wait_any(struct seatrial_waiting* waiting, int64_t n, word requests, word status,
                       struct seatrial_status* own);
void seatrial_wait_many(struct seatrial_waiting* waiting, int64_t n, word requests, word statuses);

/* After the call: bytes that arrived with what completed. */
uint64_t seatrial_completed(const struct seatrial_waiting* waiting, int64_t index, word status);
uint64_t seatrial_completed_all(const struct seatrial_waiting* waiting);
uint64_t seatrial_completed_some(const struct seatrial_waiting* waiting, word count, word indices);

/* After a call that failed, with its requests as they are now: bytes of those that arrived although
 * others failed, as their statuses tell where all have one (`has_statuses`). */
uint64_t seatrial_failed(const struct seatrial_waiting* waiting, word returned, word requests,
                         bool has_statuses);
uint64_t seatrial_some_failed(const struct seatrial_waiting* waiting, word returned, word count,
                              word indices, word requests);

/* Before MPI_Request_free and MPI_Cancel, with the address of the handle. */
void seatrial_drop_request(word request);
void seatrial_cancel_request(word request);

/* Matched probes: the message at an address belongs to a communicator; it is received by MPI_Mrecv,
 * or becomes a request by MPI_Imrecv. */
void seatrial_keep_matched(word message, word comm);
/* The handle is that before the call. */
uint64_t seatrial_received_matched(word handle, word status);
void seatrial_start_matched(word handle, word request);

#endif
