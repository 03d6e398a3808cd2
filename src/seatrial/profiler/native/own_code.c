#include "own_code.h"

#include "process.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

static void* ring;
static pid_t owner; /* a forked child does not inherit the mapping */
static int lock;

static void take_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
    sched_yield();
}

static void let_go(void) {
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void drain(void) {
  if (ring != NULL && owner == getpid() && seatrial_extension() != NULL)
    seatrial_drain_code_ring(ring, owner, &seatrial_extension()->code);
}

void seatrial_begin_own_code(void) {
  const int saved = errno;
  take_lock();
  if (ring == NULL || owner != getpid()) {
    ring = seatrial_open_code_ring(0);
    owner = getpid();
  }
  let_go();
  errno = saved;
}

void seatrial_read_own_code(void) {
  const int saved = errno;
  take_lock();
  drain();
  let_go();
  errno = saved;
}

void seatrial_end_own_code(void) {
  const int saved = errno;
  take_lock();
  drain();
  if (owner == getpid())
    seatrial_close_code_ring(ring);
  ring = NULL;
  let_go();
  errno = saved;
}
