/* Time of one MPI call in nanoseconds: the 10th percentile over batches of calls.
 *
 *   mpi_profiler_calls self BATCHES CALLS       calls on MPI_COMM_SELF, and two timer readings
 *   mpi_profiler_calls ping-pong BATCHES CALLS  an 8 B ping-pong between ranks 0 and 1
 *
 * Rank 0 prints "NAME NANOSECONDS" for each kind, and finally the time of MPI_Finalize. Batches of
 * all kinds alternate, so that a disturbance affects all of them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double from[2], to[2];
static int rank;
static volatile uint64_t sink;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void allreduce(void) {
  MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}
static void barrier(void) {
  MPI_Barrier(MPI_COMM_SELF);
}
static void bcast(void) {
  MPI_Bcast(from, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
}
static void comm_rank(void) {
  int own;
  MPI_Comm_rank(MPI_COMM_SELF, &own);
}
static void sendrecv(void) {
  MPI_Sendrecv(from, 1, MPI_DOUBLE, 0, 1, to, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF,
               MPI_STATUS_IGNORE);
}
static void isend_irecv_waitall(void) {
  MPI_Request both[2];
  MPI_Irecv(to, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &both[0]);
  MPI_Isend(from, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}
static void two_clock_gettime(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  clock_gettime(CLOCK_MONOTONIC, &time);
}
#if defined(__x86_64__)
static void two_rdtsc(void) {
  const uint64_t begin = __builtin_ia32_rdtsc();
  sink = __builtin_ia32_rdtsc() - begin;
}
#endif
static void ping_pong(void) {
  if (rank == 0) {
    MPI_Send(from, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(to, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(to, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(from, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  }
}

struct kind {
  const char* name;
  void (*call)(void);
};
static const struct kind on_self[] = {
    {"allreduce", allreduce},
    {"barrier", barrier},
    {"bcast", bcast},
    {"comm_rank", comm_rank},
    {"sendrecv", sendrecv},
    {"isend_irecv_waitall", isend_irecv_waitall},
    {"two_clock_gettime", two_clock_gettime},
#if defined(__x86_64__)
    {"two_rdtsc", two_rdtsc},
#endif
};
static const struct kind between_two[] = {{"ping_pong", ping_pong}};

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const struct kind* kinds, int n, int batches, int calls) {
  double* taken = calloc((size_t)(n * batches), sizeof *taken);
  if (taken == NULL)
    MPI_Abort(MPI_COMM_WORLD, 2);
  for (int batch = -1; batch < batches; batch++) /* the first is a warm-up */
    for (int k = 0; k < n; k++) {
      const double begin = now_ns();
      for (int i = 0; i < calls; i++)
        kinds[k].call();
      if (batch >= 0)
        taken[k * batches + batch] = (now_ns() - begin) / calls;
    }
  for (int k = 0; k < n && rank == 0; k++) {
    qsort(&taken[k * batches], (size_t)batches, sizeof *taken, ascending);
    printf("%s %.3f\n", kinds[k].name, taken[k * batches + batches / 10]);
  }
  free(taken);
}

/* Binds each rank to its own CPU, whatever the launcher did. */
static void bind(void) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  int left = rank % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && left-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bind();
  const int batches = argc > 2 ? atoi(argv[2]) : 40;
  const int calls = argc > 3 ? atoi(argv[3]) : 1500;
  if (argc > 1 && strcmp(argv[1], "ping-pong") == 0)
    measure(between_two, 1, batches, calls);
  else
    measure(on_self, (int)(sizeof on_self / sizeof on_self[0]), batches, calls);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_ns();
  MPI_Finalize();
  if (rank == 0)
    printf("finalize %.0f\n", now_ns() - begin);
  return 0;
}
