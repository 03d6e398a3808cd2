/* The trace of this process, if requested (SEATRIAL_PROFILE_TRACE: its maximum size in bytes).
 * Wrappers have a second body that is used while a trace is written; without a trace the cost is
 * one test. */
#ifndef SEATRIAL_TRACE_H
#define SEATRIAL_TRACE_H

#include "communicator.h"
#include "trace_file.h"

#include <stdbool.h>

struct seatrial_request;

struct seatrial_trace {
  struct seatrial_trace_record* records; /* NULL: no trace */
  struct seatrial_trace_header* header;
  uint64_t reserved; /* records whose pages are reserved */
};

extern struct seatrial_trace seatrial_trace __attribute__((visibility("hidden")));

static inline bool seatrial_is_traced(void) {
  return __builtin_expect(seatrial_trace.records != 0, 0);
}

/* Call after the table file was created. Does nothing if no trace is requested or it cannot be
 * created (reported once). The trace is stored beside the table. A program that uses Sessions
 * only has no MPI_COMM_WORLD. */
void seatrial_open_trace(bool has_world);

/* When MPI ends: later records are not replayed. */
void seatrial_end_trace(uint64_t now);

/* Reserves pages for the record at this index and some after it; false if there is no space. */
bool seatrial_reserve_trace(uint64_t place);

/* Stops tracing: in a forked child, or when the file was removed. */
void seatrial_stop_trace(void);

/* Records MPI_COMM_WORLD and MPI_COMM_SELF before any other communicator. */
void seatrial_trace_world(void);

/* For a blocking call. */
void seatrial_trace_sent(word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_received(word comm, word status);
void seatrial_trace_received_from(struct seatrial_communicator* comm, word status);

/* For a call that created a request; `request` is the address of its handle. */
void seatrial_trace_post_send(word request, word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_post_receive(word request);
void seatrial_trace_post_collective(word request, word comm, word root, uint64_t bytes);
/* For a persistent request. `peer` and `tag` as passed by the program. */
void seatrial_trace_send_template(word request, word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_receive_template(word request, word comm, word source, word tag,
                                     uint64_t bytes);
void seatrial_trace_collective_template(word request, word comm, word root, uint64_t bytes);

/* For a persistent request that was started, and for a request about to be completed; call with
 * the request lock held. */
void seatrial_trace_started(struct seatrial_request* request);
void seatrial_trace_completed(const struct seatrial_request* request, word status);

/* `bytes` are those of one rank's block; `root` is -1 if there is none. */
void seatrial_trace_collective(word comm, word root, uint64_t bytes);

/* The bytes sent to, or received from, each rank of the collective just recorded; `datatypes` is
 * one datatype, or an array with one per rank if `has_types`. */
void seatrial_trace_counts(word comm, bool is_received, word counts, unsigned width, word datatypes,
                           bool has_types);

/* All ranks of `comm` created a communicator; `made` is the address of its handle. */
void seatrial_trace_creation(word comm, word made);

/* The call ends: writes its head. A call that only waits gets no head unless it recorded
 * something. */
enum seatrial_trace_how { SEATRIAL_ALWAYS, SEATRIAL_IF_RECORDED };
void seatrial_trace_call(unsigned call, enum seatrial_trace_how how, uint64_t begin, uint64_t end);

#endif
