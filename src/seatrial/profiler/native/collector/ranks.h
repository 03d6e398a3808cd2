/* The processes whose tables live in the node's folder. */
#ifndef SEATRIAL_RANKS_H
#define SEATRIAL_RANKS_H

#include "table_file.h"

#include <stdbool.h>
#include <stdint.h>

struct seatrial_rank {
  char name[320];                 /* of its table, without ".mpi" */
  struct seatrial_header* header; /* mapped */
  int stat_file;                  /* /proc/PID/stat, -1: not there */
  int io_file;                    /* /proc/PID/io, -1: not readable, or over */
  int io_error;
  int series;      /* its place among the samples, -1: none */
  bool is_foreign; /* its number means nothing here */
  bool is_over;    /* ended, or another program took its place */
};

struct seatrial_ranks {
  struct seatrial_rank* list;
  unsigned known, room;
};

/* Adds the tables of this host that are new. False where the folder cannot be read any more. */
bool seatrial_look(struct seatrial_ranks* ranks, const char* folder, const char* host);

/* Whether the process is still there. A zombie is not, unless threads of it are. */
bool seatrial_is_alive(const struct seatrial_rank* rank);

/* Leaves the process, keeping the entry so that its table is not looked at again. */
void seatrial_leave_rank(struct seatrial_rank* rank);

#endif
