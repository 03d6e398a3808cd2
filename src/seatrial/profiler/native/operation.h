/* Reduction operations of the program (MPI_Op_create). MPI calls a function without a word on which
 * operation it is for, so that each function of the program gets one of this library in its place,
 * which counts and times it. */
#ifndef SEATRIAL_OPERATION_H
#define SEATRIAL_OPERATION_H

#include "area.h"

/* Ticks in functions of the program within MPI calls of this thread, so far. */
extern _Thread_local uint64_t seatrial_operated
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* What to give to MPI in place of a function of the program. It stays the same for good: MPI may
 * apply an operation after MPI_Op_free. The function itself if all are in use. */
word seatrial_timed_operation(word function);

/* An operation was made with what `seatrial_timed_operation` returned. */
void seatrial_note_operation(word function);

/* Records how long a call was in functions of the program, beside its own row. */
void seatrial_count_operation(unsigned call, uint64_t comm, uint64_t bytes, uint64_t ticks);

#endif
