/* CPU time that this process got, and what kept it from more: samples for its table. */
#ifndef SEATRIAL_CPU_USE_H
#define SEATRIAL_CPU_USE_H

#include "table_file.h"

/* Takes a sample. What the kernel does not report is SEATRIAL_UNREPORTED. */
void seatrial_read_cpu_use(struct seatrial_cpu_use* into);

/* The part of a sample that is cheap enough to be taken often: CPU time, run delay, and what the
 * node did. The rest is SEATRIAL_UNREPORTED, and `at_ns` is not set. */
void seatrial_read_cpu_time(struct seatrial_cpu_use* into);

/* CPU time of all threads in the kernel so far; 0 if it is not reported. */
uint64_t seatrial_system_ns(void);

/* The CPUs that the calling thread may run on, the number of CPUs online, and the CPU quota of its
 * control groups. */
void seatrial_read_cpu_right(struct seatrial_cpu_right* into);

#endif
