/* The table file of this process, from the first initialisation of MPI on. */
#ifndef SEATRIAL_PROCESS_H
#define SEATRIAL_PROCESS_H

#include "table_file.h"

#include <stdbool.h>
#include <stdint.h>

enum { SEATRIAL_MOST_THREADS = 256 };

struct seatrial_process {
  struct seatrial_header* header; /* NULL: nothing is recorded */
  int world_size;
  int world_rank;
  char path[1280];
};

extern struct seatrial_process seatrial_process;

/* True where the environment names a folder for the tables. */
bool seatrial_is_wanted(void);

/* Makes the file for this rank, unless it is there. `version` is the library's own words. */
void seatrial_open_file(int world_rank, int world_size, const char* version);

/* Reserves the pages of a thread's area: a full disk is seen here, not by a signal later. */
bool seatrial_reserve(uint64_t offset, uint64_t bytes);

/* Measures the rate of the clock again, over the time since the library was loaded. */
void seatrial_measure_clock(void);

#endif
