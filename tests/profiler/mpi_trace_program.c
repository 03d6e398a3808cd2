/* Programs with known messages: mpi_trace_program NAME. Each works with any number of ranks from
 * 2 on. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 10, LARGE = 100000 };

static int rank, size, left, right;
static char given[LARGE], got[LARGE];
static double one[64], sum[64];

static void ping_pong(void) {
  for (int turn = 0; turn < TURNS && rank < 2; turn++)
    if (rank == 0) {
      MPI_Send(given, 8, MPI_CHAR, 1, turn, MPI_COMM_WORLD);
      MPI_Recv(got, LARGE, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(got, 8, MPI_CHAR, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(given, LARGE, MPI_CHAR, 0, turn, MPI_COMM_WORLD);
    }
}

/* From any source and with any tag, waited for in a different order than sent, after a test that
 * may fail. */
static void ring(void) {
  MPI_Request requests[4];
  for (int turn = 0; turn < TURNS; turn++) {
    MPI_Irecv(got, 16, MPI_CHAR, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(got + 16, LARGE - 16, MPI_CHAR, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);
    int done = 0;
    MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    usleep(1000);
    MPI_Isend(given, 16, MPI_CHAR, right, 3, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(given, LARGE - 16, MPI_CHAR, right, 2, MPI_COMM_WORLD, &requests[2]);
    if (turn % 2 == 0)
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    else
      for (int i = 0; i < 4; i++) {
        int which;
        MPI_Waitany(4, requests, &which, MPI_STATUS_IGNORE);
      }
  }
}

static void halves(void) {
  MPI_Comm half, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(half, &copy);
  for (int turn = 0; turn < TURNS; turn++) {
    MPI_Allreduce(one, sum, 8, MPI_DOUBLE, MPI_SUM, half);
    MPI_Bcast(one, 64, MPI_DOUBLE, 0, copy);
    MPI_Allgather(one, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, half);
    MPI_Alltoall(one, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, copy);
  }
  MPI_Allreduce(one, sum, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

static void persistent(void) {
  MPI_Request requests[2];
  MPI_Send_init(given, 500, MPI_CHAR, right, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(got, 1000, MPI_CHAR, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
  for (int turn = 0; turn < TURNS; turn++) {
    if (turn % 2 == 0)
      MPI_Startall(2, requests);
    else {
      MPI_Start(&requests[1]);
      MPI_Start(&requests[0]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void collectives(void) {
  int counts[64], places[64];
  MPI_Request request;
  for (int i = 0, at = 0; i < size; at += counts[i++]) {
    counts[i] = i + 1;
    places[i] = at;
  }
  char* some = malloc(sizeof(int) * 64 * 65);
  char* others = malloc(sizeof(int) * 64 * 65);
  memset(some, 0, sizeof(int) * 64 * 65);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Reduce(one, sum, 4, MPI_DOUBLE, MPI_SUM, size - 1, MPI_COMM_WORLD);
  MPI_Gather(some, 3, MPI_CHAR, others, 3, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Scatter(some, 3, MPI_CHAR, others, 3, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Scan(one, sum, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Exscan(one, sum, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Gatherv(some, counts[rank], MPI_CHAR, others, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Scatterv(some, counts, places, MPI_CHAR, others, counts[rank], MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Allgatherv(some, counts[rank], MPI_CHAR, others, counts, places, MPI_CHAR, MPI_COMM_WORLD);
  int sent[64], received[64], from[64];
  for (int i = 0; i < size; i++) {
    sent[i] = i + 1;
    received[i] = rank + 1;
    from[i] = i * (rank + 1);
  }
  MPI_Alltoallv(some, sent, places, MPI_CHAR, others, received, from, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(one, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter((double*)some, sum, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Iallreduce(one, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  usleep(500);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(some);
  free(others);
}

static void exchange(void) {
  for (int turn = 0; turn < TURNS; turn++)
    MPI_Sendrecv(given, 300, MPI_CHAR, right, turn, got, 300, MPI_CHAR, left, turn, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  MPI_Sendrecv(given, 10, MPI_CHAR, rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 1, got, 10,
               MPI_CHAR, rank > 0 ? rank - 1 : MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 runs forever: it is killed from outside, or by rank 1. */
static void killed(void) {
  for (int turn = 0;; turn++) {
    MPI_Sendrecv(given, 40, MPI_CHAR, right, 1, got, 40, MPI_CHAR, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (turn == TURNS && rank == 1)
      MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } programs[] = {{"ping_pong", ping_pong},    {"ring", ring},     {"halves", halves},
                  {"persistent", persistent},  {"killed", killed}, {"exchange", exchange},
                  {"collectives", collectives}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++)
    if (argc > 1 && strcmp(argv[1], programs[i].name) == 0)
      programs[i].run();
  MPI_Finalize();
  return 0;
}
