/* What a wrapper calls: the next function of the same name after this library. */
#ifndef SEATRIAL_NEXT_H
#define SEATRIAL_NEXT_H

#include "look_up.h"

/* Indexed by function number, in the order of the generated wrappers; filled on the first call. */
extern const char* const seatrial_names[] __attribute__((visibility("hidden")));
extern seatrial_function seatrial_found[] __attribute__((visibility("hidden")));

/* If the MPI library has no such function, ends the process as the loader would. */
seatrial_function seatrial_find_next(unsigned number);

static inline seatrial_function seatrial_next(unsigned number) {
  const seatrial_function found = __atomic_load_n(&seatrial_found[number], __ATOMIC_RELAXED);
  return __builtin_expect(found != 0, 1) ? found : seatrial_find_next(number);
}

#endif
