#include "collective.h"

bool seatrial_is_root(word comm, word root) {
  if (!seatrial_is_known() || (int)root == seatrial_mpi.proc_null)
    return false;
  if ((int)root == seatrial_mpi.root)
    return true;
  const struct seatrial_communicator* known = seatrial_communicator(comm);
  return known != NULL && !known->is_inter && known->rank == (int)root;
}

int64_t seatrial_rank_of(word comm) {
  const struct seatrial_communicator* known = seatrial_communicator(comm);
  return known == NULL ? 0 : known->rank;
}

int64_t seatrial_size_of(word comm) {
  const struct seatrial_communicator* known = seatrial_communicator(comm);
  return known == NULL ? 0 : known->size;
}

int64_t seatrial_peers_of(word comm) {
  const struct seatrial_communicator* known = seatrial_communicator(comm);
  return known == NULL ? 0 : known->peers;
}

int64_t seatrial_neighbours_of(word comm) {
  struct seatrial_communicator* known = seatrial_communicator(comm);
  return known == NULL ? 0 : seatrial_outdegree(known);
}

int64_t seatrial_sum(word counts, unsigned width, int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += seatrial_element(counts, i, width);
  return sum;
}

uint64_t seatrial_sum_of_types(word counts, unsigned width, word datatypes, int64_t n) {
  uint64_t bytes = 0;
  for (int64_t i = 0; i < n; i++)
    bytes += seatrial_bytes(seatrial_element(counts, i, width), seatrial_handle_at(datatypes, i));
  return bytes;
}
