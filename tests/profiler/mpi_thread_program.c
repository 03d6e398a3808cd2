/* Threads of each rank that call MPI at once: mpi_thread_program ROUNDS. One receives messages that
 * it matched, the other ones with requests; both send. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static int rank, size, rounds;
static MPI_Comm comms[2];

static void* matched(void* none) {
  char data[64];
  for (int i = 0; i < rounds; i++) {
    MPI_Request request;
    MPI_Message message;
    int flag = 0;
    MPI_Isend(data, 7, MPI_CHAR, (rank + 1) % size, 0, comms[0], &request);
    while (!flag)
      MPI_Improbe(MPI_ANY_SOURCE, 0, comms[0], &flag, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(data, 64, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return none;
}

static void* requested(void* none) {
  char data[2][64];
  for (int i = 0; i < 10 * rounds; i++) {
    MPI_Request requests[2];
    MPI_Irecv(data[0], 64, MPI_CHAR, MPI_ANY_SOURCE, 0, comms[1], &requests[0]);
    MPI_Isend(data[1], 5, MPI_CHAR, (rank + 1) % size, 0, comms[1], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return none;
}

int main(int count, char** words) {
  int provided;
  pthread_t other;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  rounds = count > 1 ? atoi(words[1]) : 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 2; i++)
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_create(&other, NULL, requested, NULL);
  matched(NULL);
  pthread_join(other, NULL);
  MPI_Finalize();
  return provided != MPI_THREAD_MULTIPLE;
}
