/* How fast the CPU of this process is: the CPU time of a short loop, the same on all ranks. One
 * rank computes for longer than the others because it has more work, or because its CPU is slower:
 * its clock, the other thread of its core, a hypervisor that reports no steal. */
#ifndef SEATRIAL_SPEED_H
#define SEATRIAL_SPEED_H

/* Runs the loop so many times, each some 25 microseconds, and adds its CPU time to the table. One
 * thread at a time. */
void seatrial_measure_speed(int times);

enum { SEATRIAL_SPEED_AT_ENDS = 32 }; /* times, after MPI_Init and before MPI_Finalize */

#endif
