/* What the generated wrappers are made of. */
#ifndef SEATRIAL_WRAPPER_H
#define SEATRIAL_WRAPPER_H

#include "area.h"
#include "collective.h"
#include "lifetime.h"
#include "message.h"
#include "next.h"
#include "request.h"

#define SEATRIAL_EXPORT __attribute__((visibility("default")))
#define SEATRIAL_BODY static inline __attribute__((always_inline)) word
#define SEATRIAL_SITE ((word)__builtin_return_address(0))

/* The handle at an address, for a call that changes it; 0 where nothing is known of handles. */
static inline word seatrial_given(word address) {
  return seatrial_is_known() ? seatrial_handle_at(address, 0) : 0;
}

/* A Fortran binding calls the C one: the program's call site is the binding's. */
static inline bool seatrial_enter_binding(word site) {
  if (seatrial_here.depth != 0 || seatrial_here.site != 0)
    return false;
  seatrial_here.site = site;
  return true;
}

#endif
