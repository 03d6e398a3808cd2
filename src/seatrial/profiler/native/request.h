/* Start, completion and release of tracked requests. */
#ifndef SEATRIAL_REQUEST_H
#define SEATRIAL_REQUEST_H

#include "message.h"
#include "request_table.h"

/* The bytes of a persistent request that was started. */
uint64_t seatrial_started(word request);
uint64_t seatrial_started_all(int64_t n, word requests);

/* Requests passed to a call that may complete them. */
struct seatrial_waiting {
  int64_t n;        /* 0: none of them is tracked */
  int64_t messages; /* received by those that completed */
  struct seatrial_ticket* tickets;
  word statuses; /* the statuses passed to the call */
  struct seatrial_ticket one;
};

/* `status` is where the call stores its status: it is passed on as `waiting->statuses`, or ours
 * is if the program passes none. */
void seatrial_wait_one(struct seatrial_waiting* waiting, word request, word status,
                       struct seatrial_status* own);
void seatrial_wait_any(struct seatrial_waiting* waiting, int64_t n, word requests, word status,
                       struct seatrial_status* own);
void seatrial_wait_many(struct seatrial_waiting* waiting, int64_t n, word requests, word statuses);

/* After the call: received bytes of the requests that completed, whose messages are counted. */
uint64_t seatrial_completed(struct seatrial_waiting* waiting, int64_t index, word status);
uint64_t seatrial_completed_all(struct seatrial_waiting* waiting);
uint64_t seatrial_completed_some(struct seatrial_waiting* waiting, word count, word indices);

/* The size of one of these messages, on average. */
static inline uint64_t seatrial_message_bytes(uint64_t bytes,
                                              const struct seatrial_waiting* waiting) {
  return waiting->messages > 1 ? bytes / (uint64_t)waiting->messages : bytes;
}

/* After a call that failed, with its requests as they are now: bytes of those that completed
 * although others failed, according to their statuses if all have one (`has_statuses`). */
uint64_t seatrial_failed(struct seatrial_waiting* waiting, word returned, word requests,
                         bool has_statuses);
uint64_t seatrial_some_failed(struct seatrial_waiting* waiting, word returned, word count,
                              word indices, word requests);

/* Before MPI_Request_free and MPI_Cancel, with the address of the handle. */
void seatrial_drop_request(word request);
void seatrial_cancel_request(word request);

/* A matched message is received by MPI_Mrecv, or turned into a request by MPI_Imrecv. Before the
 * call, its communicator is taken: within it, the library may give the handle to a request of
 * another thread. After the call, one of the others takes it over. */
struct seatrial_communicator* seatrial_take_matched(word message);
uint64_t seatrial_received_matched(struct seatrial_communicator* comm, word status);
void seatrial_start_matched(struct seatrial_communicator* comm, word request);
void seatrial_keep_matched(struct seatrial_communicator* comm, word message);

#endif
