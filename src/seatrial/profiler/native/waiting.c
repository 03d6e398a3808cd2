#include "waiting.h"

#include "communicator.h"
#include "library.h"
#include "trace.h"

#include <stdlib.h>

uint32_t seatrial_barrier_every;

static uint32_t wanted(void) {
  const char* every = getenv("SEATRIAL_PROFILE_WAIT");
  if (every == NULL)
    return 0;
  const long long number = strtoll(every, NULL, 10);
  return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* 0 in a rank without a table, which does not see its calls, and in a rank with a trace, which
 * would count the barriers as computation. */
static uint32_t possible(uint32_t every) {
  return seatrial_process.header == NULL || seatrial_is_traced() ? 0 : every;
}

void seatrial_agree_on_barriers(void) {
  const uint32_t every = wanted();
  if (every == 0 || !seatrial_is_known())
    return;
  const uint32_t own = possible(every);
  /* The bits set in all ranks, and those clear in all: each rank sees whether all agree. */
  const uint32_t mine[2] = {own, ~own};
  uint32_t common[2] = {0, 0};
  const int reason = seatrial_library.Allreduce(mine, common, sizeof mine, seatrial_mpi.byte,
                                                seatrial_mpi.band, seatrial_mpi.comm_world);
  if (reason == 0 && common[0] == mine[0] && common[1] == mine[1])
    seatrial_barrier_every = own;
  if (seatrial_barrier_every != 0)
    seatrial_examine_reasons |= SEATRIAL_EXAMINES_FOR_WAITING;
}

uint64_t seatrial_wait_at_barrier(word comm) {
  if (seatrial_handle(comm) == seatrial_mpi.comm_null)
    return 0;
  struct seatrial_communicator* known = seatrial_find_communicator(comm);
  if (known == NULL || known->is_inter || !known->is_in_world || known->size < 2)
    return 0;
  if (known->collectives++ % seatrial_barrier_every != 0)
    return 0;
  return seatrial_library.Barrier(comm) == 0 ? seatrial_ticks() : 0;
}

static void count(unsigned call, enum seatrial_part part, uint64_t comm, uint64_t bytes,
                  uint64_t ticks) {
  const uint64_t head = seatrial_slot_head(call, comm, bytes) | (uint64_t)part << 24;
  seatrial_add_to_slot(seatrial_find_slot(head, 0), bytes, ticks);
}

void seatrial_split(unsigned call, uint64_t comm, uint64_t bytes, uint64_t begin, uint64_t met,
                    uint64_t end) {
  count(call, SEATRIAL_WAITED, comm, bytes, met - begin);
  count(call, SEATRIAL_TRANSFERRED, comm, bytes, end - met);
}
