/* The wrappers by name, for programs that look up the functions of MPI. */
#ifndef SEATRIAL_DLSYM_H
#define SEATRIAL_DLSYM_H

#include "look_up.h"

struct seatrial_by_name {
  const char* name;
  seatrial_function wrapper;
  unsigned number; /* of the function in seatrial_names */
};

/* Generated; sorted by strcmp. */
extern const struct seatrial_by_name seatrial_by_name[] __attribute__((visibility("hidden")));
extern const unsigned seatrial_by_name_count __attribute__((visibility("hidden")));

#endif
