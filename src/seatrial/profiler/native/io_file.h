/* The I/O of a node over time, written by the collector: HOST.io. Little endian; read by seatrial's
 * profiler/tables/io_samples.py, which checks magic and version.
 *
 *   struct seatrial_io_file
 *   SEATRIAL_IO_SAMPLES struct seatrial_io_node     one for each sample
 *   `ranks` struct seatrial_io_rank                 counters of one process, sample by sample
 *
 * Counters only grow, so no traffic is lost when every second sample is dropped. That happens
 * when the file is full; samples are then taken half as often. The file holds at most
 * SEATRIAL_IO_MOST_RANKS processes; the others are counted in `left_out`. */
#ifndef SEATRIAL_IO_FILE_H
#define SEATRIAL_IO_FILE_H

#include "table_file.h"

#include <stdint.h>

#define SEATRIAL_IO_MAGIC 0x4f49464f52504153ull /* "SAPROFIO" */
#define SEATRIAL_IO_NONE (~(uint64_t)0)         /* a counter that could not be read */
enum {
  SEATRIAL_IO_VERSION = 1,
  SEATRIAL_IO_SAMPLES = 512,
  SEATRIAL_IO_MOST_RANKS = 1024,
  SEATRIAL_IO_NODE_COUNTERS = 4
};

struct seatrial_io_file {
  uint64_t magic;
  uint32_t version;
  uint32_t samples; /* in use */
  uint32_t ranks;   /* in use */
  uint32_t left_out;
  double period_s; /* current time between samples */
  char host[256];
};

/* Bytes read from and written to the node's disks, then to its NFS servers. */
struct seatrial_io_node {
  int64_t at_ns; /* CLOCK_REALTIME */
  uint64_t counters[SEATRIAL_IO_NODE_COUNTERS];
};

struct seatrial_io_rank {
  int32_t pid;
  int32_t world_rank;
  int64_t loaded_at_ns; /* as in its table */
  int32_t error;        /* errno if its counters may not be read, else 0 */
  uint32_t reserved;
  uint64_t counters[SEATRIAL_IO_SAMPLES][SEATRIAL_IO_COUNTERS];
};

#endif
