/* An MPI program with a planted cause of lost time: profiles CAUSE SECONDS.
 *
 * It repeats a step until SECONDS have passed on rank 0. "balanced" is the control: each step
 * computes for 2 ms on all ranks and exchanges little. */
#include <fcntl.h>
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

static void pause_for(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static void sum(void) {
  double value = rank;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

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

static void computing(long step) {
  compute(50e-3);
  if (step % 4 == 0)
    sum();
}

static const struct {
  const char* name;
  void (*step)(long);
} causes[] = {
    {"balanced", balanced},
    {"imbalance", imbalance},
    {"imbalance-p2p", imbalance_p2p},
    {"late-sender", late_sender},
    {"late-receiver", late_receiver},
    {"serial-io", serial_io},
    {"message-rate", message_rate},
    {"transfer", transfer},
    {"small-collectives", small_collectives},
    {"sleeping", sleeping},
    {"turns", turns},
    {"computing", computing},
};

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  void (*step)(long) = NULL;
  for (size_t i = 0; count > 2 && i < sizeof causes / sizeof *causes; i++)
    if (strcmp(words[1], causes[i].name) == 0)
      step = causes[i].step;
  if (step == NULL || ranks < 2) {
    fprintf(stderr, "usage: profiles CAUSE SECONDS, on at least 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  buffer = malloc(BUFFER_BYTES);
  memset(buffer, 1, BUFFER_BYTES);
  calibrate();
  const double start = now();
  int is_over = 0;
  for (long done = 0; !is_over; done++) {
    step(done);
    if (done % 16 == 15) {
      is_over = now() - start > atof(words[2]);
      MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  MPI_Finalize();
  return 0;
}
