/* The hardware events to count on this processor. */
#ifndef SEATRIAL_COUNTER_EVENTS_H
#define SEATRIAL_COUNTER_EVENTS_H

#include <stdint.h>

struct seatrial_event {
  uint32_t kind;   /* enum seatrial_counter_kind */
  uint32_t type;   /* of perf_event_attr */
  uint64_t config; /* of perf_event_attr */
};

/* Writes at most `most` of them; returns how many. */
unsigned seatrial_counter_events(struct seatrial_event* events, unsigned most);

/* The same with what every kernel counts instead: CPU time in ns as cycles, page faults as cache
 * misses. For tests on machines without hardware counters. */
unsigned seatrial_software_events(struct seatrial_event* events, unsigned most);

#endif
