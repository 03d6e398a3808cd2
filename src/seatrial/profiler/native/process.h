/* State of this process: its table, from the first initialisation of MPI on, and its clock. */
#ifndef SEATRIAL_PROCESS_H
#define SEATRIAL_PROCESS_H

#include "cpu_use.h"
#include "extension.h"
#include "io.h"
#include "table_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEATRIAL_MOST_THREADS = 256, SEATRIAL_PATH_BYTES = 1280 };

struct seatrial_process {
  struct seatrial_header* header; /* NULL: nothing is recorded */
  int world_size;
  int world_rank;
  char path[SEATRIAL_PATH_BYTES];       /* where the table is while the program runs */
  char final_path[SEATRIAL_PATH_BYTES]; /* where it is delivered; "": it is there already */
};

extern struct seatrial_process seatrial_process __attribute__((visibility("hidden")));

/* What is recorded beside MPI calls; NULL: nothing is recorded. */
static inline struct seatrial_extension* seatrial_extension(void) {
  struct seatrial_header* header = seatrial_process.header;
  return header == NULL
             ? NULL
             : (struct seatrial_extension*)(void*)((char*)header + header->extension_offset);
}

/* State when the library was loaded. */
struct seatrial_loaded {
  uint64_t at; /* ticks */
  int64_t at_raw_ns;
  int64_t at_ns;
  struct seatrial_io io; /* if requested */
  int io_error;
};

extern struct seatrial_loaded seatrial_loaded __attribute__((visibility("hidden")));

/* True if the environment names a folder for the tables. */
bool seatrial_is_enabled(void);

/* True if the environment requests I/O samples. */
bool seatrial_is_io_enabled(void);

/* Records this process's I/O so far in the table. */
void seatrial_sample_io(void);

/* Records in the table the CPU time of this process so far, and the CPUs that it may use. */
void seatrial_sample_cpu(void);

/* Writes FOLDER/NAME into SEATRIAL_PATH_BYTES bytes; false with errno set if it is too long. */
bool seatrial_join(char* path, const char* folder, const char* name);

/* False with errno set if a file of this size exceeds the process's file size limit; writing it
 * would raise SIGXFSZ. */
bool seatrial_is_within_file_limit(uint64_t bytes);

/* Reserves the pages of a thread's area, so that a full disk is an error here and not a signal
 * later. */
bool seatrial_reserve(uint64_t offset, uint64_t bytes);

/* The rate of the clock, measured since the library was loaded. */
double seatrial_ticks_per_s(void);

/* Measures the rate of the clock again. */
void seatrial_measure_clock(void);

#endif
