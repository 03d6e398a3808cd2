/* Planted causes in input and output, and in other things that ranks wait for outside MPI. */
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static int own_file(void) {
  static int file = -1;
  char name[64];
  snprintf(name, sizeof name, "planted-%d.out", rank);
  if (file < 0)
    file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  return file;
}

static void write_own(int file, size_t bytes) {
  if (write(file, buffer, bytes) != (ssize_t)bytes)
    exit(3);
  if (lseek(file, 0, SEEK_CUR) > 1l << 27 && lseek(file, 0, SEEK_SET) != 0)
    exit(3);
}

/* Every rank makes sure of every record. */
static void fsync_storm(long step) {
  (void)step;
  write_own(own_file(), 4096);
  fsync(own_file());
  compute(0.1e-3);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_storm(long step) {
  (void)step;
  write_own(own_file(), 4 << 20);
  compute(0.2e-3);
  sum();
}

/* All ranks read one file, again and again. */
static void read_storm(long step) {
  static int file = -1;
  if (file < 0) {
    if (rank == 0) {
      file = open("planted-shared.in", O_RDWR | O_CREAT | O_TRUNC, 0600);
      for (int i = 0; i < 4; i++)
        if (write(file, buffer, BUFFER_BYTES) != BUFFER_BYTES)
          exit(3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
      file = open("planted-shared.in", O_RDONLY);
  }
  for (int i = 0; i < 4; i++)
    if (pread(file, buffer, BUFFER_BYTES, (off_t)(step % 4) * BUFFER_BYTES) != BUFFER_BYTES)
      exit(3);
  compute(0.2e-3);
  sum();
}

/* Ranks book in a file of all, under its lock: one at a time. */
static void locked_file(long step) {
  static int file = -1;
  (void)step;
  if (file < 0)
    file = open("planted-ledger", O_RDWR | O_CREAT, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(file, F_SETLKW, &lock) != 0)
    exit(3);
  compute(2e-3);
  lock.l_type = F_UNLCK;
  fcntl(file, F_SETLK, &lock);
  compute(1e-3);
  sum();
}

static void many_files(long step) {
  for (int i = 0; i < 50; i++) {
    char name[64];
    struct stat status;
    snprintf(name, sizeof name, "planted-%d-%ld-%d", rank, step % 4, i);
    const int file = open(name, O_RDWR | O_CREAT, 0600);
    close(file);
    if (stat(name, &status) != 0 || unlink(name) != 0)
      exit(3);
  }
  compute(0.2e-3);
  sum();
}

/* Output that is read slowly. */
static FILE* slow_reader;
static void slow_pipe(long step) {
  if (slow_reader == NULL)
    slow_reader = popen("while [ $(head -c 65536 | wc -c) -gt 0 ]; do sleep 0.02; done", "w");
  for (int i = 0; i < 100; i++)
    fprintf(slow_reader, "rank %d step %ld line %d: all is well, and so is the rest of this line\n",
            rank, step, i);
  compute(0.1e-3);
  sum();
}

static void close_reader(void) {
  pclose(slow_reader);
}

/* Rank 0 compresses and writes for all. */
static void compressed(long step) {
  (void)step;
  if (rank == 0) {
    compute(4e-3);
    write_own(own_file(), 4096);
  }
  compute(0.5e-3);
  sum();
}

static void buffered_serial(long step) {
  static FILE* file;
  if (rank == 0) {
    if (file == NULL)
      file = fopen("planted-buffered.out", "w");
    if (step % 16 == 0)
      rewind(file);
    fwrite(buffer, 1, 4 << 20, file);
    fflush(file);
    fsync(fileno(file));
  }
  compute(0.2e-3);
  sum();
}

static void child(long step) {
  (void)step;
  if (rank == 0 && system("sleep 0.01") != 0)
    exit(3);
  compute(1e-3);
  sum();
}

/* Rank 0 waits for a filter, whose output it reads through a pipe. */
static void child_pipe(long step) {
  (void)step;
  if (rank == 0) {
    char line[64];
    FILE* const filter = popen("sleep 0.01; echo 1", "r");
    if (filter == NULL || fgets(line, sizeof line, filter) == NULL || pclose(filter) != 0)
      exit(3);
  }
  compute(1e-3);
  sum();
}

static void all_sleep(long step) {
  (void)step;
  compute(1e-3);
  pause_for(2e-3);
  sum();
}

/* Rank 0 writes alone; then the pair computes in turn. */
static void io_and_late_sender(long step) {
  if (rank == 0) {
    for (int i = 0; i < 2; i++)
      write_own(own_file(), 2 << 20);
    if (step % 2 == 0)
      fsync(own_file());
  }
  sum();
  if (rank == 0) {
    compute(3e-3);
    MPI_Send(buffer, 1024, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(buffer, 1024, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(3e-3);
    MPI_Send(buffer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
}

/* A thread writes while the rank computes. */
static void* writes(void* unused) {
  write_own(own_file(), 64 << 10);
  return unused;
}

static void overlapped(long step) {
  pthread_t thread;
  if (step % 8 == 0)
    pthread_create(&thread, NULL, writes, NULL);
  compute(4e-3);
  if (step % 8 == 0)
    pthread_join(thread, NULL);
  sum();
}

static void logging(long step) {
  static FILE* file;
  char name[64];
  snprintf(name, sizeof name, "planted-%d.log", rank);
  if (file == NULL)
    file = fopen(name, "w");
  fprintf(file, "step %ld\n", step);
  compute(2e-3);
  sum();
}

static MPI_File particles = MPI_FILE_NULL;
static void write_particles(MPI_Offset place, int bytes) {
  if (particles == MPI_FILE_NULL)
    MPI_File_open(MPI_COMM_WORLD, "planted-particles", MPI_MODE_CREATE | MPI_MODE_WRONLY,
                  MPI_INFO_NULL, &particles);
  MPI_File_write_at(particles, place, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
}

static void close_particles(void) {
  if (particles != MPI_FILE_NULL)
    MPI_File_close(&particles);
}

static void tiny_accesses(long step) {
  compute(1e-3);
  for (long i = step % 16 * 1000; i < (step % 16 + 1) * 1000; i++)
    write_particles((2 * i + rank) * 32, 32);
}

/* Few pieces, while the ranks mostly compute. */
static void large_accesses(long step) {
  compute(2e-3);
  if (step % 100 == 0)
    write_particles((MPI_Offset)rank << 20, 1 << 20);
  sum();
}

/* Rank 0 writes a log without a buffer, character by character. */
static void unbuffered(long step) {
  (void)step;
  static int is_set = 0;
  if (!is_set)
    is_set = setvbuf(stderr, NULL, _IONBF, 0) == 0;
  compute(10e-3);
  for (int i = 0; rank == 0 && i < 8000; i++)
    fputc(i % 80 == 79 ? '\n' : '.', stderr);
  sum();
}

static const struct cause causes[] = {
    {"unbuffered", unbuffered, NULL},
    {"fsync-storm", fsync_storm, NULL},
    {"write-storm", write_storm, NULL},
    {"read-storm", read_storm, NULL},
    {"many-files", many_files, NULL},
    {"locked-file", locked_file, NULL},
    {"slow-pipe", slow_pipe, close_reader},
    {"compressed", compressed, NULL},
    {"buffered-serial", buffered_serial, NULL},
    {"child", child, NULL},
    {"child-pipe", child_pipe, NULL},
    {"all-sleep", all_sleep, NULL},
    {"io-and-late-sender", io_and_late_sender, NULL},
    {"overlapped", overlapped, NULL},
    {"logging", logging, NULL},
    {"tiny-accesses", tiny_accesses, close_particles},
    {"large-accesses", large_accesses, close_particles},
};

int main(int count, char** words) {
  return run(count, words, causes, sizeof causes / sizeof *causes);
}
