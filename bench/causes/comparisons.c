/* A fixed amount of work, for comparisons of two runs: comparisons STEP NUMBER
 *
 * Each step computes for about a millisecond and meets the other ranks in an all-reduce, changed by
 * STEP: even            nothing is changed longer          all ranks compute half as long again
 *   imbalance       rank 1 computes twice as long
 *   turns           in each step, another rank computes for all; together as much as "even"
 *   calls           3999 more all-reduces
 *   small, large    10 exchanges of 64 KiB or 1 MiB with the other rank
 *   blocked         all ranks sleep for a millisecond
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 1000000, EXCHANGES = 10, SMALL = 64 << 10, LARGE = 1 << 20 };

static volatile double sink;

static void compute(double milliseconds) {
  double sum = 0;
  for (long k = 1; k < (long)(ROUNDS * milliseconds); k++)
    sum += 1.0 / (double)k;
  sink = sum;
}

static void exchange(char* from, char* to, int bytes, int rank, int size) {
  for (int k = 0; k < EXCHANGES; k++)
    MPI_Sendrecv(from, bytes, MPI_CHAR, (rank + 1) % size, 1, to, bytes, MPI_CHAR,
                 (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* step = argc > 1 ? argv[1] : "even";
  const int steps = argc > 2 ? atoi(argv[2]) : 200;
  char* from = calloc(2, LARGE);
  char* to = from + LARGE;
  const struct timespec millisecond = {0, 1000000};
  double one = rank, sum;
  for (int k = 0; k < steps; k++) {
    double work = 1;
    if (strcmp(step, "longer") == 0)
      work = 1.5;
    if (strcmp(step, "imbalance") == 0 && rank == 1)
      work = 2;
    if (strcmp(step, "turns") == 0)
      work = k % size == rank ? size - 0.1 * (size - 1) : 0.1;
    compute(work);
    if (strcmp(step, "blocked") == 0)
      nanosleep(&millisecond, NULL);
    if (strcmp(step, "small") == 0)
      exchange(from, to, SMALL, rank, size);
    if (strcmp(step, "large") == 0)
      exchange(from, to, LARGE, rank, size);
    for (int call = 0; call < (strcmp(step, "calls") == 0 ? 4000 : 1); call++)
      MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  sink = sum;
  free(from);
  MPI_Finalize();
  return 0;
}
