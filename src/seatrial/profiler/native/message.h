/* Point-to-point messages: their bytes, destinations and sources. */
#ifndef SEATRIAL_MESSAGE_H
#define SEATRIAL_MESSAGE_H

#include "area.h"
#include "communicator.h"
#include "datatype.h"

/* Holds a status of any library, for programs that pass MPI_STATUS_IGNORE. */
struct seatrial_status {
  _Alignas(16) unsigned char bytes[64];
};

static inline word seatrial_status_or_own(word status, struct seatrial_status* own) {
  return status == seatrial_mpi.status_ignore ? (word)own : status;
}

int64_t seatrial_query_length(word status);

/* The number of bytes in a status; -1 if unknown. */
static inline int64_t seatrial_length(word status) {
  if (seatrial_mpi.status_layout == SEATRIAL_STATUS_OPENMPI)
    return (int64_t) * (const uint64_t*)(status + 16);
  if (seatrial_mpi.status_layout ==
      SEATRIAL_STATUS_MPICH) { /* the lowest bit of the upper half: cancelled */
    const uint32_t* halves = (const uint32_t*)status;
    return (int64_t)((uint64_t)(halves[1] >> 1) << 32 | halves[0]);
  }
  return seatrial_query_length(status);
}

static inline int seatrial_source(word status) {
  return seatrial_int_at(status + seatrial_mpi.source_offset);
}

/* Counts a message sent on the current communicator; returns its bytes, 0 for MPI_PROC_NULL. */
static SEATRIAL_INLINE uint64_t seatrial_sent(word dest, int64_t count, word datatype) {
  const int rank = (int)dest;
  if (!SEATRIAL_LIKELY(rank >= 0)) /* MPI_PROC_NULL is negative in every library */
    return 0;
  const uint64_t bytes = seatrial_bytes(count, datatype);
  const struct seatrial_communicator* known = seatrial_thread_state.comm;
  if (!SEATRIAL_LIKELY(known != NULL))
    return bytes;
  struct seatrial_peer* peer = seatrial_peer_of(known, rank);
  peer->sent_count++;
  peer->sent_bytes += bytes;
  return bytes;
}

void seatrial_count_unknown_length(void);

/* Counts a received message by its status; returns its bytes. */
static SEATRIAL_INLINE uint64_t seatrial_received_from(const struct seatrial_communicator* comm,
                                                       int source, int64_t bytes) {
  if (!SEATRIAL_LIKELY(source >= 0 && comm != NULL))
    return 0;
  if (!SEATRIAL_LIKELY(bytes >= 0)) {
    seatrial_count_unknown_length();
    bytes = 0;
  }
  struct seatrial_peer* peer = seatrial_peer_of(comm, source);
  peer->received_count++;
  peer->received_bytes += (uint64_t)bytes;
  return (uint64_t)bytes;
}

static SEATRIAL_INLINE uint64_t seatrial_received(word status) {
  const struct seatrial_communicator* known = seatrial_thread_state.comm;
  if (!SEATRIAL_LIKELY(known != NULL))
    return 0;
  return seatrial_received_from(known, seatrial_source(status), seatrial_length(status));
}

/* The number of bytes in the status of a file operation. */
uint64_t seatrial_read_bytes(word status);

#endif
