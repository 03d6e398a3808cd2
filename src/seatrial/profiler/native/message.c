#include "message.h"

#include "library.h"

int64_t seatrial_query_length(word status) {
  int64_t bytes = -1;
  return seatrial_library.Get_elements_x(status, seatrial_mpi.byte, &bytes) == 0 ? bytes : -1;
}

void seatrial_count_unknown_length(void) {
  __atomic_fetch_add(&seatrial_process.header->untold, 1, __ATOMIC_RELAXED);
}

uint64_t seatrial_read_bytes(word status) {
  if (!seatrial_is_known())
    return 0;
  const int64_t bytes = seatrial_length(status);
  return bytes < 0 ? 0 : (uint64_t)bytes;
}
