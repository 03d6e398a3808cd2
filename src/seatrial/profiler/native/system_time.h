/* Time in calls that enter the kernel, outside MPI: files, sleep, sockets, child processes. From
 * MPI_Init on, the global offset table entries of these functions are redirected to wrappers
 * (rebind.h), in the ranks only. Only threads that have called MPI are timed, and only outside MPI
 * calls: what a thread of its own reads or writes meanwhile is overlapped.
 *
 * Not seen: what the C library does internally. Formatted output and the buffered functions of
 * stdio are therefore timed as well; buffered ones only if they may reach the kernel. */
#ifndef SEATRIAL_SYSTEM_TIME_H
#define SEATRIAL_SYSTEM_TIME_H

#include "look_up.h"

#include <stdint.h>

/* A wrapper, by the name of its function; NULL if that is not timed. The next function, which it
 * calls, is looked up. */
struct seatrial_timed {
  const char* name;
  seatrial_function wrapper;
  seatrial_function* next;
};
const struct seatrial_timed* seatrial_timed_of(const char* name);

/* Begins to time, in all objects loaded so far. */
void seatrial_time_system_calls(void);

#endif
