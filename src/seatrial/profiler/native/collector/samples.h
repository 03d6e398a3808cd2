/* I/O samples, in the file described in io_file.h. */
#ifndef SEATRIAL_SAMPLES_H
#define SEATRIAL_SAMPLES_H

#include "io_file.h"
#include "ranks.h"

struct seatrial_samples {
  struct seatrial_io_file* file; /* mapped; NULL: nothing is sampled */
  uint64_t mapped_bytes;
  char name[300]; /* file name */
  char path[1600];
  int64_t next_at_ns; /* CLOCK_MONOTONIC */
  int64_t nfs_at_ns;
  bool has_nfs;
};

/* Creates HOST.io; a number is appended if an earlier collector left one in either folder. */
void seatrial_begin_samples(struct seatrial_samples* samples, const char* folder,
                            const char* final_folder, const char* host, double period_s);

/* Samples the node and all ranks if a sample is due. */
void seatrial_sample(struct seatrial_samples* samples, struct seatrial_ranks* ranks,
                     int64_t now_ns);

#endif
