/* The next function of a name behind this library: that of another preloaded tool, else MPI's own.
 */
#ifndef SEATRIAL_NEXT_H
#define SEATRIAL_NEXT_H

#include "word.h"

typedef void (*seatrial_function)(void);

/* By number, in the order of the generated wrappers; filled when first called. */
extern const char* const seatrial_names[] __attribute__((visibility("hidden")));
extern seatrial_function seatrial_found[] __attribute__((visibility("hidden")));

/* Ends the process as the loader would where the library of MPI lacks the function. */
seatrial_function seatrial_find_next(unsigned number);

/* NULL where there is none. */
seatrial_function seatrial_look_up(const char* name);
void* seatrial_look_up_data(const char* name);

static inline seatrial_function seatrial_next(unsigned number) {
  const seatrial_function found = __atomic_load_n(&seatrial_found[number], __ATOMIC_RELAXED);
  return __builtin_expect(found != 0, 1) ? found : seatrial_find_next(number);
}

#endif
