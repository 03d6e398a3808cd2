/* The table file of this process, from the first initialisation of MPI on. */
#ifndef SEATRIAL_PROCESS_H
#define SEATRIAL_PROCESS_H

#include "table_file.h"

#include <stdbool.h>
#include <stdint.h>

enum { SEATRIAL_MOST_THREADS = 256, SEATRIAL_PATH_BYTES = 1280 };

struct seatrial_process {
  struct seatrial_header* header; /* NULL: nothing is recorded */
  int world_size;
  int world_rank;
  char path[SEATRIAL_PATH_BYTES];       /* where the table lives */
  char final_path[SEATRIAL_PATH_BYTES]; /* where it belongs; "": it lives there */
};

extern struct seatrial_process seatrial_process __attribute__((visibility("hidden")));

/* True where the environment names a folder for the tables. */
bool seatrial_is_wanted(void);

/* True where the environment asks for samples of input and output. */
bool seatrial_is_io_wanted(void);

/* Tells the table what this process has read and written until now. */
void seatrial_sample_io(void);

/* FOLDER/NAME into SEATRIAL_PATH_BYTES bytes; false with errno set where that is too long. */
bool seatrial_join(char* path, const char* folder, const char* name);

/* Makes the file for this rank, unless it is there. `version` is the library's own words. */
void seatrial_open_file(int world_rank, int world_size, const char* version);

/* False with errno set where a file of so many bytes is beyond the limit of the process, which
 * would end it by a signal. */
bool seatrial_may_be_so_large(uint64_t bytes);

/* Reserves the pages of a thread's area: a full disk is seen here, not by a signal later. */
bool seatrial_reserve(uint64_t offset, uint64_t bytes);

/* Measures the rate of the clock again, over the time since the library was loaded. */
void seatrial_measure_clock(void);

#endif
