/* The building blocks of the generated wrappers. */
#ifndef SEATRIAL_WRAPPER_H
#define SEATRIAL_WRAPPER_H

/* Increment counters in memory: loading them into vector registers costs more than it saves. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

#include "area.h"
#include "collective.h"
#include "deliver.h"
#include "dlsym.h"
#include "lifetime.h"
#include "message.h"
#include "next.h"
#include "operation.h"
#include "rebind.h"
#include "request.h"
#include "request_tracking.h"
#include "trace.h"
#include "waiting.h"

#define SEATRIAL_EXPORT __attribute__((visibility("default")))
#define SEATRIAL_BODY static inline __attribute__((always_inline)) word
#define SEATRIAL_ONE_BODY static __attribute__((noinline, cold)) word
#define SEATRIAL_NO_COMM (~(word)0)
#define SEATRIAL_SITE ((word)__builtin_return_address(0))

/* The handle at an address, for a call that changes it; 0 if the library is unknown. */
static inline word seatrial_handle_before(word address) {
  return seatrial_is_known() ? seatrial_handle_at(address, 0) : 0;
}

/* A Fortran binding calls the C function: the program's call site is the binding's caller. */
static inline bool seatrial_enter_binding(word site) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (here->where == SEATRIAL_INSIDE || here->site != 0)
    return false;
  here->site = site;
  here->outside = SEATRIAL_EXAMINING;
  if (here->where == SEATRIAL_OUTSIDE)
    here->where = SEATRIAL_EXAMINING;
  return true;
}

static inline void seatrial_leave_binding(void) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  here->site = 0;
  here->outside = seatrial_examines_calls ? SEATRIAL_EXAMINING : SEATRIAL_OUTSIDE;
  if (here->where == SEATRIAL_EXAMINING)
    here->where = here->outside;
}

#endif
