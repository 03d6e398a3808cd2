#include "message.h"

#include "library.h"

int64_t seatrial_length(word status) {
  if (seatrial_mpi.status_layout == SEATRIAL_STATUS_OPENMPI) {
    uint64_t bytes;
    memcpy(&bytes, (const char*)status + 16, sizeof bytes);
    return (int64_t)bytes;
  }
  if (seatrial_mpi.status_layout == SEATRIAL_STATUS_MPICH) { /* the lowest bit above: cancelled */
    uint32_t halves[2];
    memcpy(halves, (const void*)status, sizeof halves);
    return (int64_t)((uint64_t)(halves[1] >> 1) << 32 | halves[0]);
  }
  int64_t bytes = -1;
  return seatrial_library.Get_elements_x(status, seatrial_mpi.byte, &bytes) == 0 ? bytes : -1;
}

uint64_t seatrial_sent_bytes(word comm, word dest, uint64_t bytes) {
  const int rank = (int)dest;
  if (rank == seatrial_mpi.proc_null)
    return 0;
  const struct seatrial_communicator* known = seatrial_communicator(comm);
  if (known == NULL)
    return bytes;
  struct seatrial_peer* peer = seatrial_peer_of(known, seatrial_here.peers, rank);
  peer->sent_count++;
  peer->sent_bytes += bytes;
  return bytes;
}

uint64_t seatrial_received_from(const struct seatrial_communicator* comm, int source,
                                int64_t bytes) {
  if (source == seatrial_mpi.proc_null || comm == NULL)
    return 0;
  if (bytes < 0) {
    __atomic_fetch_add(&seatrial_process.header->untold, 1, __ATOMIC_RELAXED);
    bytes = 0;
  }
  struct seatrial_peer* peer = seatrial_peer_of(comm, seatrial_here.peers, source);
  peer->received_count++;
  peer->received_bytes += (uint64_t)bytes;
  return (uint64_t)bytes;
}

uint64_t seatrial_received(word comm, word status) {
  if (!seatrial_is_known())
    return 0;
  return seatrial_received_from(seatrial_communicator(comm), seatrial_source(status),
                                seatrial_length(status));
}

uint64_t seatrial_read_bytes(word status) {
  if (!seatrial_is_known())
    return 0;
  const int64_t bytes = seatrial_length(status);
  return bytes < 0 ? 0 : (uint64_t)bytes;
}
