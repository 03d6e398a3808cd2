/* What the hardware counters count in MPI calls (extension.h), so that waiting in MPI can be told
 * from computing. Events of all threads cannot be read without system calls: they are read before
 * and after a call of the thread that initialised MPI unless that would take more than a twentieth
 * of the time since the call before. */
#ifndef SEATRIAL_COUNTER_SPLIT_H
#define SEATRIAL_COUNTER_SPLIT_H

/* After the counters were started, by the thread that initialised MPI. */
void seatrial_begin_counter_split(void);

/* Before they are read for the last time. */
void seatrial_end_counter_split(void);

#endif
