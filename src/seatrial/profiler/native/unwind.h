/* The calls that led to a call of MPI, from the unwind tables (.eh_frame) of the loaded objects:
 * programs are rarely compiled with frame pointers. The stack is read only between the current
 * frame and the end of the thread's stack, so that wrong values end the path and nothing else. */
#ifndef SEATRIAL_UNWIND_H
#define SEATRIAL_UNWIND_H

#include "word.h"

#include <stdint.h>

/* Writes the call site and the return addresses of its callers, innermost first, at most `most`;
 * returns their number, 1 or more. The call site alone on other processors than x86-64, and on a
 * stack that is not the thread's own (a signal stack, a coroutine). */
unsigned seatrial_call_path(word site, uint64_t* addresses, unsigned most);

#endif
