/* Hardware counters of this process (SEATRIAL_PROFILE_COUNTERS), from MPI_Init to the end of MPI:
 * the kernel's perf events, all threads, user mode. */
#ifndef SEATRIAL_COUNTERS_H
#define SEATRIAL_COUNTERS_H

#include <stdint.h>

/* What a read returns (perf_event_open(2), PERF_FORMAT_TOTAL_TIME_*). */
struct seatrial_counter_reading {
  uint64_t value, enabled_ns, running_ns;
};

/* After MPI_Init, and when MPI ends. They do nothing unless requested. */
void seatrial_start_counters(void);
void seatrial_read_counters(void);

/* The number of events, and the reading of one so far: 0, or errno. */
unsigned seatrial_counter_count(void);
int seatrial_read_counter(unsigned i, struct seatrial_counter_reading* into);

#endif
