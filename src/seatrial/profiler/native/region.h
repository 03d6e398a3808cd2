/* Regions that the program names (include/seatrial_regions.h, MPI_Pcontrol): count, time, MPI time
 * and CPU time of each. Calls of MPI are counted by region as well: the number of the innermost
 * region is in bits of a row's call site that neither addresses nor places use. */
#ifndef SEATRIAL_REGION_H
#define SEATRIAL_REGION_H

#include "area.h"

/* The call site of a row, marked with the region that this thread is in. */
static inline word seatrial_in_region(word site) {
  return site | (word)seatrial_thread_state.region << SEATRIAL_REGION_SHIFT;
}

void seatrial_begin_region(const char* name);
void seatrial_end_region(const char* name);

/* When the table was created: regions begun earlier are not in it. */
void seatrial_open_regions(void);

/* When MPI ends: regions that this thread has not ended count until now. */
void seatrial_close_regions(uint64_t now);

#endif
