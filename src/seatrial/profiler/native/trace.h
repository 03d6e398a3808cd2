/* The trace of this process, for those that ask for one (SEATRIAL_PROFILE_TRACE: its bytes at
 * most). Wrappers have a second body, which is taken while a trace is written, so that all others
 * pay one test. */
#ifndef SEATRIAL_TRACE_H
#define SEATRIAL_TRACE_H

#include "communicator.h"
#include "trace_file.h"

#include <stdbool.h>

struct seatrial_request;

struct seatrial_trace {
  struct seatrial_trace_record* records; /* NULL: there is none */
  struct seatrial_trace_header* header;
  uint64_t reserved; /* records whose pages are there */
};

extern struct seatrial_trace seatrial_trace __attribute__((visibility("hidden")));

static inline bool seatrial_is_traced(void) {
  return __builtin_expect(seatrial_trace.records != 0, 0);
}

/* After the table file was made; nothing where no trace is wanted, or it cannot be made (which is
 * said once). The trace lies beside the table. A program of Sessions has no MPI_COMM_WORLD. */
void seatrial_open_trace(bool has_world);

/* When MPI ends: what is written later is not replayed. */
void seatrial_end_trace(uint64_t now);

/* Pages for the record at a place and some after it; false where there is no room for it. */
bool seatrial_reserve_trace(uint64_t place);

/* From now on nothing is traced: in a child of fork, or when the file was taken away. */
void seatrial_leave_trace(void);

/* Tells who MPI_COMM_WORLD and MPI_COMM_SELF are, before any other communicator. */
void seatrial_trace_world(void);

/* Of a blocking call. */
void seatrial_trace_sent(word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_received(word comm, word status);
void seatrial_trace_received_from(struct seatrial_communicator* comm, word status);

/* Of a call that made a request, at whose address its handle stands. */
void seatrial_trace_post_send(word request, word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_post_receive(word request);
void seatrial_trace_post_collective(word request, word comm, word root, uint64_t bytes);
/* Of a persistent one. `peer` and `tag` as the program gave them. */
void seatrial_trace_send_template(word request, word comm, word dest, word tag, uint64_t bytes);
void seatrial_trace_receive_template(word request, word comm, word source, word tag,
                                     uint64_t bytes);
void seatrial_trace_collective_template(word request, word comm, word root, uint64_t bytes);

/* Of a persistent request that was started, and of one that is about to be completed; with the
 * lock of the requests held. */
void seatrial_trace_started(struct seatrial_request* request);
void seatrial_trace_completed(const struct seatrial_request* request, word status);

/* `bytes` of one rank's block; `root` is -1 where there is none. */
void seatrial_trace_collective(word comm, word root, uint64_t bytes);

/* The bytes that go to, or come from, each rank of the collective just told; `datatypes` is one, or
 * an array of one for each where `has_types`. */
void seatrial_trace_counts(word comm, bool is_received, word counts, unsigned width, word datatypes,
                           bool has_types);

/* A communicator was made by all ranks of another; its handle stands at an address. */
void seatrial_trace_creation(word comm, word made);

/* The call ends: its head is written. A call that only waits leaves none unless it told something.
 */
enum seatrial_trace_how { SEATRIAL_ALWAYS, SEATRIAL_IF_TOLD };
void seatrial_trace_call(unsigned call, enum seatrial_trace_how how, uint64_t begin, uint64_t end);

#endif
