/* The trace of one process, stored beside its table: one page of header, then records of fixed size
 * in the order in which they were allocated. Mapped shared, little endian; read by seatrial's
 * profiler/trace/trace_file.py, which checks magic and version.
 *
 * A call that sent, received or waited for another rank, or may have done so, has a head: a record
 * with `call`, `begin` and `end`. Data that does not fit follows in parts: records with
 * SEATRIAL_TRACE_PART after their head, possibly interleaved with those of other threads. A head
 * whose `call` is 0 belongs to a call that never returned. A record whose `kind` is 0 was not
 * written.
 *
 * Ranks are those of MPI_COMM_WORLD; world_size stands for any rank outside it. */
#ifndef SEATRIAL_TRACE_FILE_H
#define SEATRIAL_TRACE_FILE_H

#include <stdint.h>

#define SEATRIAL_TRACE_MAGIC 0x4341525441534553ull /* "SESATRAC" */
enum {
  SEATRIAL_TRACE_VERSION = 1,
  SEATRIAL_TRACE_HEADER_BYTES = 4096,
  SEATRIAL_TRACE_NUMBERS = 8, /* requests per record */
  SEATRIAL_TRACE_COUNTS = 4   /* byte counts per record */
};

enum seatrial_trace_kind {
  SEATRIAL_TRACE_CALL = 1, /* only its time: files, one-sided */
  SEATRIAL_TRACE_MESSAGES, /* blocking: `messages` */
  SEATRIAL_TRACE_POST, /* start of a request: `messages`, completed when the request completes */
  SEATRIAL_TRACE_DONE, /* `numbers`: indices of the posts that completed in this call */
  SEATRIAL_TRACE_COLLECTIVE, /* blocking: `collective` */
  SEATRIAL_TRACE_POSTED_COLLECTIVE,
  SEATRIAL_TRACE_COUNTS_OF, /* part: bytes of each rank, in order, of a collective */
  SEATRIAL_TRACE_CREATION,  /* a collective that created communicators */
  SEATRIAL_TRACE_COMMUNICATOR,
  SEATRIAL_TRACE_TEMPLATE /* arguments of a persistent request: nothing was sent */
};

enum seatrial_trace_flag {
  SEATRIAL_TRACE_SENDS = 1,
  SEATRIAL_TRACE_RECEIVES = 2,
  SEATRIAL_TRACE_RECEIVE_COMPLETE =
      4, /* the receive is complete: source, tag and bytes are the actual ones */
  SEATRIAL_TRACE_PART = 8,
  SEATRIAL_TRACE_OF_RECEIVES = 16, /* counts are received from each rank, else sent to it */
  SEATRIAL_TRACE_INTER = 32,       /* of an intercommunicator */
  SEATRIAL_TRACE_AT_ONCE = 64      /* the send was complete when its request was returned */
};

struct seatrial_trace_messages {
  uint64_t sent_bytes;
  uint64_t received_bytes;
  int32_t dest, send_tag;
  int32_t source, receive_tag;
};

struct seatrial_trace_collective {
  uint64_t bytes;   /* of one rank's block; what that is depends on `call` */
  int32_t root;     /* in the communicator; -1: none */
  uint32_t counts;  /* number of counts that follow in parts */
  uint32_t made_at; /* 1 + index of the template, whose `call` applies; 0: none */
  uint32_t reserved;
};

/* `id` is the same in every member and differs from all other communicators. */
struct seatrial_trace_communicator {
  uint64_t id;
  int32_t rank, size;
};

/* Times are ticks; `waited` is the time since the thread's previous record in calls with nothing
 * to record: tests of incomplete requests, probes. `comm` numbers the communicators of this
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
  uint64_t taken; /* records requested: those beyond `room` were dropped */
  double ticks_per_s;
  uint64_t loaded_at;   /* ticks */
  uint64_t ended_at;    /* when MPI_Finalize was called; 0 before */
  int64_t loaded_at_ns; /* CLOCK_REALTIME */
  char host[256];
};

#endif
