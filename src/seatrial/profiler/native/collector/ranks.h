/* The processes whose tables are in the node's folder. */
#ifndef SEATRIAL_RANKS_H
#define SEATRIAL_RANKS_H

#include "table_file.h"

#include <stdbool.h>
#include <stdint.h>

struct seatrial_rank {
  char name[320];                 /* name of its table, without ".mpi" */
  struct seatrial_header* header; /* mapped */
  int stat_file;                  /* /proc/PID/stat, -1: missing */
  int io_file;                    /* /proc/PID/io, -1: not readable, or closed */
  int io_error;
  int series;      /* its index among the samples, -1: none */
  bool is_foreign; /* its PID is from another PID namespace */
  bool is_over;    /* ended, or replaced by another program */
};

struct seatrial_ranks {
  struct seatrial_rank* list;
  unsigned known, room;
};

/* Adds new tables of this host. False if the folder can no longer be read. */
bool seatrial_find_tables(struct seatrial_ranks* ranks, const char* folder, const char* host);

/* Whether the process is still running. A zombie is not, unless it has threads. */
bool seatrial_is_alive(const struct seatrial_rank* rank);

/* Releases the process but keeps the entry, so that its table is not read again. */
void seatrial_release_rank(struct seatrial_rank* rank);

#endif
