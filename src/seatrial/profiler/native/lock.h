/* A lock that is taken only if the program may call MPI from several threads at once. */
#ifndef SEATRIAL_LOCK_H
#define SEATRIAL_LOCK_H

#include <sched.h>
#include <stdbool.h>

extern bool seatrial_many_threads __attribute__((visibility("hidden")));

static inline void seatrial_lock(int* lock) {
  if (__builtin_expect(!seatrial_many_threads, 1))
    return;
  while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
    sched_yield();
}

static inline void seatrial_unlock(int* lock) {
  __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
