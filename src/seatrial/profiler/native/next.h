/* What a wrapper calls: the next function of its name behind this library. */
#ifndef SEATRIAL_NEXT_H
#define SEATRIAL_NEXT_H

#include "look_up.h"

/* By number, in the order of the generated wrappers; filled when first called. */
extern const char* const seatrial_names[] __attribute__((visibility("hidden")));
extern seatrial_function seatrial_found[] __attribute__((visibility("hidden")));

/* Ends the process as the loader would where the library of MPI lacks the function. */
seatrial_function seatrial_find_next(unsigned number);

static inline seatrial_function seatrial_next(unsigned number) {
  const seatrial_function found = __atomic_load_n(&seatrial_found[number], __ATOMIC_RELAXED);
  return __builtin_expect(found != 0, 1) ? found : seatrial_find_next(number);
}

#endif
