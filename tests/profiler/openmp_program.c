/* A program of MPI and OpenMP: openmp_program uneven|even STEPS, and a region of one thread. */
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static double work(long steps) {
  volatile double x = 1;
  for (long i = 0; i < steps; i++)
    x = x * 1.0000001 + 1e-9;
  return x;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  const int is_uneven = count > 1 && strcmp(words[1], "uneven") == 0;
  const int steps = count > 2 ? atoi(words[2]) : 5;
  double sum = 0;
  for (int step = 0; step < steps; step++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < 64; i++)
      sum += work(5000l * (is_uneven ? i : 32));
#pragma omp parallel num_threads(2)
    {
      work(100);
#pragma omp barrier
      work(100);
    }
#pragma omp parallel if (0)
    work(100);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return sum > 0 ? 0 : 1;
}
