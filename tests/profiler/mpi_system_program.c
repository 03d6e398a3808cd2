/* Known calls that enter the kernel: 20 files of 4 KiB; rank 0 synchronises each. A thread of its
 * own writes one more, and so does each rank before MPI_Init, inside MPI-IO, and after
 * MPI_Finalize. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 4096, FILES = 20 };
static char data[BYTES];

static int write_file(const char* name, int is_safe) {
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (write(file, data, BYTES) != BYTES)
    exit(3);
  if (is_safe)
    fsync(file);
  return close(file);
}

static void* write_beside(void* name) {
  write_file(name, 1);
  return NULL;
}

/* Twice with a datatype that has gaps, 8 of 29 bytes, once without. */
static void send_to_self(int rank) {
  static char sent[4 * 32];
  static char received[4 * 32];
  MPI_Datatype gaps;
  MPI_Type_vector(8, 1, 4, MPI_CHAR, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < 3; i++)
    MPI_Sendrecv(sent, i < 2 ? 4 : 100, i < 2 ? gaps : MPI_CHAR, rank, 0, received, 100, MPI_CHAR,
                 rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&gaps);
}

int main(int count, char** words) {
  char name[1024];
  snprintf(name, sizeof name, "%s-%d", count > 1 ? words[1] : "planted", (int)getpid());
  write_file(name, 1);
  MPI_Init(&count, &words);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < FILES; i++) {
    struct stat status;
    write_file(name, rank == 0);
    if (stat(name, &status) != 0 || status.st_size != BYTES)
      exit(3);
  }
  const int locked = open(name, O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(locked, F_SETLKW, &lock) != 0 || fcntl(locked, F_SETLK, &lock) != 0 ||
      flock(locked, LOCK_EX) != 0)
    exit(3);
  close(locked);
  usleep(20000);
  if (system("true") != 0)
    exit(3);
  pthread_t thread;
  if (pthread_create(&thread, NULL, write_beside, name) != 0 || pthread_join(thread, NULL) != 0)
    exit(3);
  send_to_self(rank);
  MPI_File file;
  if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS) {
    MPI_File_write(file, data, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
  FILE* stream = fopen(name, "w");
  fprintf(stream, "%s\n", name);
  fclose(stream);
  MPI_Finalize();
  return write_file(name, 1);
}
