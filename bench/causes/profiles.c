/* Planted causes: computing, waiting, and calls by the million. "balanced" is the control: each
 * step computes for 2 ms on all ranks and exchanges little. */
#include "planted.h"

#include <fcntl.h>

static void balanced(long step) {
  (void)step;
  compute(2e-3);
  sum();
}

static void imbalance(long step) {
  (void)step;
  compute(rank == 1 ? 4e-3 : 1e-3);
  sum();
}

static void imbalance_p2p(long step) {
  (void)step;
  compute(rank == 1 ? 4e-3 : 1e-3);
  const int right = (rank + 1) % ranks;
  const int left = (rank + ranks - 1) % ranks;
  MPI_Sendrecv(buffer, 1024, MPI_CHAR, right, 0, buffer + 4096, 1024, MPI_CHAR, left, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 waits for what rank 0 computes, then computes as long. */
static void late_sender(long step) {
  (void)step;
  if (rank == 0) {
    compute(2e-3);
    MPI_Send(buffer, 8192, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(buffer, 8192, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(2e-3);
    MPI_Send(buffer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
}

static void late_receiver(long step) {
  (void)step;
  if (rank == 0) {
    compute(0.2e-3);
    MPI_Ssend(buffer, 1 << 20, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    compute(3e-3);
    MPI_Recv(buffer, 1 << 20, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void serial_io(long step) {
  static int file = -1;
  if (rank == 0 && step % 10 == 0) {
    if (file < 0)
      file = open("diagnosis.out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4; i++)
      if (write(file, buffer, BUFFER_BYTES) != BUFFER_BYTES)
        exit(3);
    fsync(file);
    if (lseek(file, 0, SEEK_CUR) > 1l << 28 && lseek(file, 0, SEEK_SET) != 0)
      exit(3);
  }
  compute(0.2e-3);
  sum();
}

static void message_rate(long step) {
  (void)step;
  char byte[8] = {0};
  for (int i = 0; i < 2000; i++) {
    if (rank == 0)
      MPI_Send(byte, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1)
      MPI_Recv(byte, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void transfer(long step) {
  (void)step;
  compute(0.1e-3);
  const int other = rank ^ 1;
  if (other < ranks)
    MPI_Sendrecv(buffer, 4 << 20, MPI_CHAR, other, 0, buffer + (4 << 20), 4 << 20, MPI_CHAR, other,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void small_collectives(long step) {
  (void)step;
  for (int i = 0; i < 1000; i++) {
    compute(0.1e-6);
    sum();
  }
}

static void sleeping(long step) {
  (void)step;
  if (rank == 0)
    pause_for(4e-3);
  else
    compute(0.5e-3);
  sum();
}

/* Each step, another rank takes longer: all compute equally long in total. */
static void turns(long step) {
  compute(step % ranks == rank ? 4e-3 : 0.5e-3);
  sum();
}

/* A front that moves from rank to rank: each has four times the work for a while. */
static void moving_front(long step) {
  compute(step / 16 % ranks == rank ? 4e-3 : 1e-3);
  sum();
}

/* A library function that makes a communicator for each of its calls. */
static void communicators(long step) {
  MPI_Comm own;
  (void)step;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &own);
  MPI_Comm_free(&own);
  compute(5e-6);
}

/* The same with one that is kept. */
static void kept_communicator(long step) {
  static MPI_Comm own = MPI_COMM_NULL;
  double value = (double)step;
  if (own == MPI_COMM_NULL)
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
  compute(2e-3);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, own);
}

static void computing(long step) {
  compute(50e-3);
  if (step % 4 == 0)
    sum();
}

/* All ranks wait at the root, whose part of each step is larger. */
static void slow_bcast_root(long step) {
  (void)step;
  compute(rank == 0 ? 3e-3 : 0.5e-3);
  MPI_Bcast(buffer, 1024, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void slow_gather_root(long step) {
  (void)step;
  MPI_Gather(buffer, 1024, MPI_CHAR, buffer + (1 << 20), 1024, MPI_CHAR, 0, MPI_COMM_WORLD);
  compute(rank == 0 ? 3e-3 : 0.5e-3);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void slow_alltoall(long step) {
  (void)step;
  compute(rank == 1 ? 3e-3 : 0.6e-3);
  MPI_Alltoall(buffer, 4096, MPI_CHAR, buffer + (1 << 20), 4096, MPI_CHAR, MPI_COMM_WORLD);
}

static void even_alltoall(long step) {
  (void)step;
  compute(2e-3);
  MPI_Alltoall(buffer, 512, MPI_CHAR, buffer + (1 << 20), 512, MPI_CHAR, MPI_COMM_WORLD);
}

static void tiny_allgatherv(long step) {
  (void)step;
  static int counts[4096];
  static int places[4096];
  for (int i = 0; i < ranks && i < 4096; i++) {
    counts[i] = 2;
    places[i] = 2 * i;
  }
  for (int i = 0; i < 500; i++) {
    compute(0.1e-6);
    MPI_Allgatherv(buffer, 2, MPI_CHAR, buffer + 4096, counts, places, MPI_CHAR, MPI_COMM_WORLD);
  }
}

/* A reduction that is started early, then waited for; another rank is late each time. */
static void iallreduce_turns(long step) {
  double value = rank;
  double result;
  MPI_Request request;
  compute(step % ranks == rank ? 4e-3 : 0.5e-3);
  MPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* One rank computes longer, and all exchange much. */
static void imbalance_and_transfer(long step) {
  (void)step;
  compute(rank == 1 ? 5e-3 : 1e-3);
  sum();
  const int other = rank ^ 1;
  for (int i = 0; i < 3 && other < ranks; i++)
    MPI_Sendrecv(buffer, 4 << 20, MPI_CHAR, other, 0, buffer + (4 << 20), 4 << 20, MPI_CHAR, other,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum();
}

static void nothing(long step) {
  (void)step;
  compute(2e-3);
}

static void work_at_the_end(void) {
  if (rank == 1)
    compute(1.0);
}

static void one_bcast(long step) {
  if (step % 256 == 0)
    MPI_Bcast(buffer, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
  compute(2e-3);
}

/* Streams through more memory than the caches hold. */
static void memory_bound(long step) {
  static double* field;
  enum { CELLS = 8 << 20 };
  if (field == NULL)
    field = calloc(CELLS, sizeof *field);
  for (size_t i = 0; i < CELLS; i++)
    field[i] = field[i] * 0.5 + (double)step;
  sum();
}

static const struct cause causes[] = {
    {"balanced", balanced, NULL},
    {"imbalance", imbalance, NULL},
    {"imbalance-p2p", imbalance_p2p, NULL},
    {"late-sender", late_sender, NULL},
    {"late-receiver", late_receiver, NULL},
    {"serial-io", serial_io, NULL},
    {"message-rate", message_rate, NULL},
    {"transfer", transfer, NULL},
    {"small-collectives", small_collectives, NULL},
    {"sleeping", sleeping, NULL},
    {"turns", turns, NULL},
    {"moving-front", moving_front, NULL},
    {"communicators", communicators, NULL},
    {"kept-communicator", kept_communicator, NULL},
    {"computing", computing, NULL},
    {"slow-bcast-root", slow_bcast_root, NULL},
    {"slow-gather-root", slow_gather_root, NULL},
    {"slow-alltoall", slow_alltoall, NULL},
    {"even-alltoall", even_alltoall, NULL},
    {"tiny-allgatherv", tiny_allgatherv, NULL},
    {"iallreduce-turns", iallreduce_turns, NULL},
    {"imbalance-and-transfer", imbalance_and_transfer, NULL},
    {"late-finalize", nothing, work_at_the_end},
    {"compute-only", nothing, NULL},
    {"one-bcast", one_bcast, NULL},
    {"memory-bound", memory_bound, NULL},
};

int main(int count, char** words) {
  return run(count, words, causes, sizeof causes / sizeof *causes);
}
