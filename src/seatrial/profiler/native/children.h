/* CPU time of the processes that this one started, which is the program's own. */
#ifndef SEATRIAL_CHILDREN_H
#define SEATRIAL_CHILDREN_H

#include <stdint.h>

/* CPU time in ns of all children so far, and of theirs: of those that ended and were waited for,
 * and of those that run. */
uint64_t seatrial_children_ns(void);

#endif
