/* The trace of one process, beside its table: a page of header, then records of one size in the
 * order in which they were taken. Mapped shared, little endian; the reader is seatrial's
 * profiler/trace/trace_file.py, which checks magic and version.
 *
 * A call that sent, received, waited for what another rank did, or may have, has a head: a record
 * with `call`, `begin` and `end`. What did not fit into it stands in parts, records with
 * SEATRIAL_TRACE_PART that follow their head, those of other threads between them. A head whose
 * `call` is 0 belongs to a call that never returned. A record whose `kind` is 0 was not written.
 *
 * Ranks are those of MPI_COMM_WORLD; world_size stands for any outside of it.
 */
#ifndef SEATRIAL_TRACE_FILE_H
#define SEATRIAL_TRACE_FILE_H

#include <stdint.h>

#define SEATRIAL_TRACE_MAGIC 0x4341525441534553ull /* "SESATRAC" */
enum {
  SEATRIAL_TRACE_VERSION = 1,
  SEATRIAL_TRACE_HEADER_BYTES = 4096,
  SEATRIAL_TRACE_NUMBERS = 8, /* of requests in one record */
  SEATRIAL_TRACE_COUNTS = 4   /* of bytes in one record */
};

enum seatrial_trace_kind {
  SEATRIAL_TRACE_CALL = 1,   /* nothing but its time: files, one-sided */
  SEATRIAL_TRACE_MESSAGES,   /* blocking: `messages` */
  SEATRIAL_TRACE_POST,       /* of a request: `messages`, filled up when it completes */
  SEATRIAL_TRACE_DONE,       /* `numbers`: places of posts that completed in this call */
  SEATRIAL_TRACE_COLLECTIVE, /* blocking: `collective` */
  SEATRIAL_TRACE_POSTED_COLLECTIVE,
  SEATRIAL_TRACE_COUNTS_OF, /* part: bytes of each rank, in order, of a collective */
  SEATRIAL_TRACE_CREATION,  /* a collective that made communicators */
  SEATRIAL_TRACE_COMMUNICATOR,
  SEATRIAL_TRACE_TEMPLATE /* what a persistent request was made with: nothing was sent */
};

enum seatrial_trace_flag {
  SEATRIAL_TRACE_SENDS = 1,
  SEATRIAL_TRACE_RECEIVES = 2,
  SEATRIAL_TRACE_TOLD = 4, /* the receive is complete: its source, tag and bytes are those it had */
  SEATRIAL_TRACE_PART = 8,
  SEATRIAL_TRACE_OF_RECEIVES =
      16,                     /* of counts: what arrives from each rank, else what goes there */
  SEATRIAL_TRACE_INTER = 32,  /* of an intercommunicator */
  SEATRIAL_TRACE_AT_ONCE = 64 /* the send was complete when its request was handed out */
};

struct seatrial_trace_messages {
  uint64_t sent_bytes;
  uint64_t received_bytes;
  int32_t dest, send_tag;
  int32_t source, receive_tag;
};

struct seatrial_trace_collective {
  uint64_t bytes;   /* of one rank's block: `call` tells of what */
  int32_t root;     /* in the communicator; -1: none */
  uint32_t counts;  /* how many follow in parts */
  uint32_t made_at; /* 1 + the place of the template, whose `call` counts; 0: there is none */
  uint32_t reserved;
};

/* `id` is the same in every member, and no other communicator's. */
struct seatrial_trace_communicator {
  uint64_t id;
  int32_t rank, size;
};

/* Times are ticks; `waited` is time since the thread's record before in calls that found nothing
 * to tell: tests of requests that are not complete, probes. `comm` counts the communicators of this
 * process from 1; 0: none. */
struct seatrial_trace_record {
  uint64_t begin, end, waited;
  uint16_t call;
  uint16_t comm;
  uint8_t kind;
  uint8_t flags;
  uint8_t thread;
  uint8_t n; /* numbers or counts in use */
  union {
    struct seatrial_trace_messages messages;
    struct seatrial_trace_collective collective;
    struct seatrial_trace_communicator communicator;
    uint32_t numbers[SEATRIAL_TRACE_NUMBERS];
    uint64_t counts[SEATRIAL_TRACE_COUNTS];
  };
};

struct seatrial_trace_header {
  uint64_t magic;
  uint32_t version;
  uint32_t record_bytes;
  int32_t world_rank, world_size;
  int32_t pid;
  uint32_t reserved;
  uint64_t room;  /* records that fit */
  uint64_t taken; /* records asked for: those beyond `room` were not kept */
  double ticks_per_s;
  uint64_t loaded_at;   /* ticks */
  uint64_t ended_at;    /* when MPI_Finalize was called; 0 before */
  int64_t loaded_at_ns; /* CLOCK_REALTIME */
  char host[256];
};

#endif
