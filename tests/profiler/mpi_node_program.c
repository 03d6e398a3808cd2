/* Ends in the way given by its first argument, after 1000 calls of MPI_Allreduce with 8 B. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 8 << 20, WRITE_BYTES = 1 << 20 };

static void rest(double seconds) {
  struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&wait, NULL);
}

static void reduce(void) {
  double from = 1, to;
  for (int i = 0; i < 1000; i++)
    MPI_Allreduce(&from, &to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* All ranks read the whole file; rank 0 appends to it. */
static void read_and_write(const char* path, int rank, int times, double pause) {
  char* data = malloc(READ_BYTES);
  memset(data, 7, READ_BYTES);
  int file = open(path, O_RDWR);
  if (file < 0 || read(file, data, READ_BYTES) != READ_BYTES)
    exit(4);
  for (int i = 0; i < times; i++) {
    rest(pause);
    if (rank == 0 &&
        pwrite(file, data, WRITE_BYTES, READ_BYTES + (off_t)i * WRITE_BYTES) != WRITE_BYTES)
      exit(5);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  close(file);
  free(data);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "plain";
  if (strcmp(way, "limited") == 0)
    signal(SIGXFSZ, SIG_DFL);
  MPI_Init(&argc, &argv);
  int rank, is_over;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  reduce();
  if (strcmp(way, "killed") == 0) {
    rest(0.2);
    raise(SIGKILL);
  } else if (strcmp(way, "aborted") == 0) {
    rest(0.2);
    if (rank == 0)
      MPI_Abort(MPI_COMM_WORLD, 3);
    pause();
  } else if (strcmp(way, "left") == 0) {
    exit(0); /* without MPI_Finalize */
  } else if (strcmp(way, "waiting") == 0) {
    if (fork() == 0)
      _exit(3);
    int children = 0;
    while (wait(NULL) > 0)
      children++;
    printf("%d children, %s\n", children, strerror(errno));
    fflush(stdout);
  } else if (strcmp(way, "resting") == 0) {
    rest(atof(argv[2]));
  } else if (strcmp(way, "files") == 0) {
    read_and_write(argv[2], rank, atoi(argv[3]), atof(argv[4]));
  }
  MPI_Finalize();
  MPI_Finalized(&is_over);
  if (strcmp(way, "killed_late") == 0) {
    rest(0.5); /* the launcher ends the other rank at once, which must have arrived here as well */
    raise(SIGKILL);
  }
  if (strcmp(way, "followed") == 0)
    execl(argv[0], argv[0], "plain", (char*)0);
  return 0;
}
