/* Point to point: bytes of messages, and whom they went to and came from. */
#ifndef SEATRIAL_MESSAGE_H
#define SEATRIAL_MESSAGE_H

#include "area.h"
#include "communicator.h"
#include "datatype.h"

/* Room for a status of any family, for programs that do not ask for one. */
struct seatrial_status {
  _Alignas(16) unsigned char bytes[64];
};

static inline word seatrial_told(word status, struct seatrial_status* own) {
  return seatrial_is_known() && status == seatrial_mpi.status_ignore ? (word)own : status;
}

/* Bytes that a status tells of; -1 where it does not. */
int64_t seatrial_length(word status);

static inline int seatrial_source(word status) {
  return seatrial_int_at(status + seatrial_mpi.source_offset);
}

/* Counts a message that left; its bytes. One to MPI_PROC_NULL is none. */
uint64_t seatrial_sent_bytes(word comm, word dest, uint64_t bytes);

static inline uint64_t seatrial_sent(word comm, word dest, int64_t count, word datatype) {
  return seatrial_is_known() ? seatrial_sent_bytes(comm, dest, seatrial_bytes(count, datatype)) : 0;
}

/* Counts a message that arrived, as its status tells; its bytes. */
uint64_t seatrial_received(word comm, word status);
uint64_t seatrial_received_from(const struct seatrial_communicator* comm, int source,
                                int64_t bytes);

/* Bytes that a file's status tells of. */
uint64_t seatrial_read_bytes(word status);

#endif
