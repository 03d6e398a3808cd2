/* A program with real messages and timed waits in place of its computing: two cores can then stand
   for several nodes.

   timed_steps --compute SECONDS --halo BYTES --steps N

   Each step waits for SECONDS / ranks (strong scaling), exchanges BYTES with both neighbours of a
   ring, and sums one number over all ranks. Nothing polls without a pause, so ranks that share a
   core do not slow each other down. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void pause_s(double seconds) {
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

static void finish(int count, MPI_Request* requests) {
  int done = 0;
  for (;;) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (done)
      return;
    pause_s(20e-6);
  }
}

static void meet(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(1, &request);
}

/* What has passed the links of this node, both directions, in bytes: proc(5), /proc/net/dev. */
static double on_links(void) {
  FILE* file = fopen("/proc/net/dev", "r");
  char line[512];
  double sum = 0;
  if (file == NULL)
    return -1;
  while (fgets(line, sizeof line, file) != NULL) {
    char name[64];
    unsigned long long in, out;
    char* colon = strchr(line, ':');
    if (colon == NULL)
      continue;
    *colon = '\0';
    if (sscanf(line, " %63s", name) == 1 && strcmp(name, "lo") != 0 &&
        sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) == 2)
      sum += (double)in + (double)out;
  }
  fclose(file);
  return sum;
}

static double step(double compute_s, int halo, char* buffers, int rank, int ranks) {
  double mine = 1, all = 0;
  MPI_Request requests[4];
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  pause_s(compute_s / ranks);
  if (ranks > 1) {
    MPI_Irecv(buffers, halo, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(buffers + halo, halo, MPI_CHAR, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(buffers + 2 * (size_t)halo, halo, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(buffers + 3 * (size_t)halo, halo, MPI_CHAR, left, 2, MPI_COMM_WORLD, &requests[3]);
    finish(4, requests);
  }
  MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests);
  finish(1, requests);
  return all;
}

int main(int argc, char** argv) {
  double compute_s = 0, sum = 0;
  int halo = 0, steps = 0, rank, ranks;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--compute") == 0)
      compute_s = atof(argv[i + 1]);
    else if (strcmp(argv[i], "--halo") == 0)
      halo = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--steps") == 0)
      steps = atoi(argv[i + 1]);
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* buffers = calloc(4, (size_t)halo);
  if (buffers == NULL || halo <= 0 || steps <= 0)
    MPI_Abort(MPI_COMM_WORLD, 2);
  step(0, halo, buffers, rank, ranks); /* connects the ranks */
  meet();
  const double before = on_links();
  meet(); /* no message is sent before all have counted */
  const double start = MPI_Wtime();
  for (int i = 0; i < steps; i++)
    sum += step(compute_s, halo, buffers, rank, ranks);
  const double step_s = (MPI_Wtime() - start) / steps;
  meet();
  const double counted = on_links() - before;
  double least, most, slowest_s;
  MPI_Reduce(&counted, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&counted, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&step_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const double payload =
        ranks > 1 ? 4.0 * halo * steps : 0; /* two messages sent and two received in a step */
    printf("step = %.9f s\n", slowest_s);
    printf("payload of a node = %.0f B\n", payload);
    printf("links: %.6f to %.6f times the payload\n", payload > 0 ? least / payload : 1.0,
           payload > 0 ? most / payload : 1.0);
    printf("sums = %.6f\n", sum / ((double)ranks * steps));
  }
  free(buffers);
  MPI_Finalize();
  return 0;
}
