/* What programs with planted causes of lost time share: PROGRAM CAUSE SECONDS repeats the step of a
 * cause until SECONDS have passed on rank 0. A program defines `causes` and includes this file
 * first. */
#ifndef PLANTED_H
#define PLANTED_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static char* buffer;
enum { BUFFER_BYTES = 8 << 20 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A fixed amount of arithmetic, so that a rank without a CPU takes longer. */
static double chain_per_s;
static volatile double kept = 1;
static void chain(long steps) {
  double x = kept;
  for (long i = 0; i < steps; i++)
    x = x * 1.0000001 + 1e-9;
  kept = x > 1e6 ? 1 : x;
}

static void compute(double seconds) {
  chain((long)(seconds * chain_per_s));
}

static void calibrate(void) {
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    const double start = now();
    chain(200000);
    const double took = now() - start;
    best = took < best ? took : best;
  }
  chain_per_s = 200000 / best;
  MPI_Allreduce(MPI_IN_PLACE, &chain_per_s, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static inline void pause_for(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static inline void sum(void) {
  double value = rank;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

struct cause {
  const char* name;
  void (*step)(long);
  void (*end)(void); /* after the last step; NULL: nothing */
};

static int run(int count, char** words, const struct cause* causes, size_t number) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const struct cause* cause = NULL;
  for (size_t i = 0; count > 2 && i < number; i++)
    if (strcmp(words[1], causes[i].name) == 0)
      cause = &causes[i];
  if (cause == NULL || ranks < 2) {
    fprintf(stderr, "usage: %s CAUSE SECONDS, on at least 2 ranks\n", words[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  buffer = malloc(BUFFER_BYTES);
  memset(buffer, 1, BUFFER_BYTES);
  calibrate();
  const double start = now();
  int is_over = 0;
  for (long done = 0; !is_over; done++) {
    cause->step(done);
    if (done % 16 == 15) {
      is_over = now() - start > atof(words[2]);
      MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  if (cause->end != NULL)
    cause->end();
  MPI_Finalize();
  return 0;
}

#endif
