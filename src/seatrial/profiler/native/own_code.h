/* Where the thread that initialised MPI executes (code_samples.h), from MPI_Init to the end of MPI:
 * shows a loop of the program that only waits, and the system calls behind time in the kernel. */
#ifndef SEATRIAL_OWN_CODE_H
#define SEATRIAL_OWN_CODE_H

/* After MPI_Init; with each sample of CPU time, by one thread at a time; and when MPI ends. */
void seatrial_begin_own_code(void);
void seatrial_read_own_code(void);
void seatrial_end_own_code(void);

#endif
