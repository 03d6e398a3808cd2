/* Hardware counters of this process (SEATRIAL_PROFILE_COUNTERS), from MPI_Init to the end of MPI:
 * the kernel's perf events, all threads, user mode. */
#ifndef SEATRIAL_COUNTERS_H
#define SEATRIAL_COUNTERS_H

/* After MPI_Init, and when MPI ends. They do nothing unless requested. */
void seatrial_start_counters(void);
void seatrial_read_counters(void);

#endif
