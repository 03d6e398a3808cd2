/* A program of MPI with regions: mpi_region_program CASE. Each case is counted exactly by
 * test_regions_real.py. */
#include "seatrial_regions.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void reduce(void) {
  double own = rank;
  double sum;
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* step { halo { reduce x 2 }, reduce } five times; "by name" twice, begun by MPI_Pcontrol. */
static void nested(void) {
  char name[16];
  for (int i = 0; i < 5; i++) {
    seatrial_region_begin("step");
    seatrial_region_begin("halo");
    usleep(2000);
    reduce();
    reduce();
    seatrial_region_end("halo");
    reduce();
    seatrial_region_end("step");
  }
  strcpy(name, "by name");
  for (int i = 0; i < 2; i++) {
    MPI_Pcontrol(1, name);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(-1, name);
  }
  reduce();
}

static void faulty(void) {
  char name[16];
  seatrial_region_end("never begun");
  seatrial_region_begin("outer");
  seatrial_region_begin("inner");
  seatrial_region_end("outer");
  seatrial_region_end("inner");
  seatrial_region_begin(NULL);
  seatrial_region_begin("");
  for (int i = 0; i < 70; i++) {
    snprintf(name, sizeof name, "region %d", i);
    seatrial_region_begin(name);
    seatrial_region_end(name);
  }
  for (int i = 0; i < 20; i++)
    seatrial_region_begin("outer");
  for (int i = 0; i < 20; i++)
    seatrial_region_end("outer");
  seatrial_region_begin("outer");
  reduce();
}

/* What is passed instead of a name is no name. */
static void controls(void) {
  MPI_Pcontrol(1, (char*)8);
  MPI_Pcontrol(1, (char*)(~0ul - 70));
  MPI_Pcontrol(1, "line\nfeed");
  MPI_Pcontrol(-1, "");
  MPI_Pcontrol(2, "a name");
  reduce();
  MPI_Pcontrol(0);
  for (int i = 0; i < 100; i++)
    reduce();
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  usleep(50000);
  MPI_Pcontrol(1);
  reduce();
  MPI_Pcontrol(0);
}

static void* in_thread(void* barrier) {
  seatrial_region_begin("thread");
  for (int i = 0; i < 3; i++)
    seatrial_region_begin("inside"), seatrial_region_end("inside");
  seatrial_region_end("thread");
  (void)barrier;
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&all[i], NULL, in_thread, NULL);
  for (int i = 0; i < 4; i++)
    pthread_join(all[i], NULL);
  reduce();
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {{"nested", nested}, {"faulty", faulty}, {"controls", controls}, {"threads", threads}};

int main(int count, char** words) {
  seatrial_region_begin("before MPI_Init");
  int provided;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; count > 1 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(words[1], cases[i].name) == 0)
      cases[i].run();
  MPI_Finalize();
  return 0;
}
