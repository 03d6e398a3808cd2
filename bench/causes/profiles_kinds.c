/* Planted causes whose remedy is their own: calls that do not communicate, epochs, many requests,
 * memory, the kernel, operations of the program, its children and its threads. */
#define _GNU_SOURCE
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ELEMENTS = 4000, REQUESTS = 2048, FEW = 8, AREA = 32 << 20 };
static double from[REQUESTS > ELEMENTS ? REQUESTS : ELEMENTS], to[sizeof from / sizeof *from];
static MPI_Request open_requests[2 * REQUESTS];

static int partner(void) {
  return rank ^ 1;
}

static void exchange_packed(int bytes) {
  static char packed[8 * ELEMENTS];
  MPI_Sendrecv(buffer, bytes, MPI_PACKED, partner(), 0, packed, sizeof packed, MPI_PACKED,
               partner(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Each element is packed by a call of its own; or all by one. */
static void pack(int each) {
  int at = 0;
  for (int i = 0; i < ELEMENTS; i += each)
    MPI_Pack(from + i, each, MPI_DOUBLE, buffer, BUFFER_BYTES, &at, MPI_COMM_WORLD);
  compute(50e-6);
  exchange_packed(at);
}
static void pack_elements(long step) {
  (void)step;
  pack(1);
}
static void pack_arrays(long step) {
  (void)step;
  compute(1e-3);
  pack(ELEMENTS);
}
static void unpack_elements(long step) {
  (void)step;
  int at = 0;
  for (int i = 0; i < ELEMENTS; i++)
    MPI_Unpack(buffer, BUFFER_BYTES, &at, to + i, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  compute(50e-6);
  sum();
}

/* An epoch for each element; or one for all. */
static void fence(int each, double seconds) {
  static MPI_Win window = MPI_WIN_NULL;
  if (window == MPI_WIN_NULL)
    MPI_Win_create(to, sizeof to, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 1024; i += each) {
    MPI_Put(from + i, each, MPI_DOUBLE, partner(), i, each, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
  }
  compute(seconds);
}
static void fence_elements(long step) {
  (void)step;
  fence(1, 100e-6);
}
static void fence_arrays(long step) {
  (void)step;
  fence(1024, 2e-3);
}

/* Window that is made for each step. */
static void windows(long step) {
  (void)step;
  MPI_Win window;
  MPI_Win_create(to, sizeof to, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_free(&window);
  compute(20e-6);
}

/* The requests are completed one by one. */
static void wait_for_any(int requests, double seconds) {
  for (int i = 0; i < requests; i++)
    MPI_Irecv(to + i, 1, MPI_DOUBLE, partner(), i, MPI_COMM_WORLD, open_requests + i);
  for (int i = 0; i < requests; i++)
    MPI_Isend(from + i, 1, MPI_DOUBLE, partner(), i, MPI_COMM_WORLD, open_requests + requests + i);
  for (int i = 0; i < 2 * requests; i++) {
    int done;
    MPI_Waitany(2 * requests, open_requests, &done, MPI_STATUS_IGNORE);
  }
  compute(seconds);
}
static void many_requests(long step) {
  (void)step;
  wait_for_any(REQUESTS, 100e-6);
}
static void few_requests(long step) {
  (void)step;
  wait_for_any(FEW, 2e-3);
}

static void ask_size(long step) {
  (void)step;
  for (int i = 0; i < 20000; i++) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    chain(size);
  }
  sum();
}

static void datatypes(long step) {
  (void)step;
  for (int i = 0; i < 2000; i++) {
    MPI_Datatype type;
    MPI_Type_vector(16, 1, 4, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
  }
  compute(100e-6);
  sum();
}

static void touch(char* area) {
  for (long i = 0; i < AREA; i += 4096)
    area[i] = (char)i;
}
static void fresh_memory(long step) {
  (void)step;
  char* area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(area, AREA, MADV_NOHUGEPAGE);
  touch(area);
  munmap(area, AREA);
  compute(2e-3);
  sum();
}
static void kept_memory(long step) {
  static char* area;
  (void)step;
  if (area == NULL)
    area = malloc(AREA);
  touch(area);
  compute(2e-3);
  sum();
}

static void random_numbers(long step) {
  (void)step;
  for (int i = 0; i < 200; i++)
    if (getrandom(buffer, 4096, 0) < 0)
      abort();
  compute(500e-6);
  sum();
}

static void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; i++) {
    double x = ((double*)in)[i];
    for (int k = 0; k < 300; k++)
      x = x * 0.999 + 1e-9;
    ((double*)inout)[i] += x;
  }
}
static MPI_Op own(void) {
  static MPI_Op op = MPI_OP_NULL;
  if (op == MPI_OP_NULL)
    MPI_Op_create(multiply, 1, &op);
  return op;
}
static void reduce_to_root(long step) {
  (void)step;
  compute(1e-3);
  MPI_Reduce(from, to, ELEMENTS, MPI_DOUBLE, own(), 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}
static void reduce_large(long step) {
  (void)step;
  compute(1e-3);
  MPI_Allreduce(MPI_IN_PLACE, buffer, 40000, MPI_DOUBLE, own(), MPI_COMM_WORLD);
}
/* The operation is made, and hardly used. */
static void reduce_rarely(long step) {
  compute(2e-3);
  if (step % 64 == 0)
    MPI_Allreduce(MPI_IN_PLACE, from, 10, MPI_DOUBLE, own(), MPI_COMM_WORLD);
  sum();
}

/* A process that runs while the ranks compute. */
static pid_t child;
static void child_beside(long step) {
  if (step == 0 && (child = fork()) == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      kept += 1e-9;
  }
  compute(2e-3);
  sum();
}
static void end_child(void) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}
static void child_waited(long step) {
  (void)step;
  if (system("awk 'BEGIN { for (i = 0; i < 200000; i++) s += i }'") != 0)
    abort();
  compute(2e-3);
  sum();
}

static void* sleeper(void* unused) {
  pause_for(4e-3);
  return unused;
}
static void join(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleeper, NULL);
  pthread_join(thread, NULL);
}
static void join_on_one(long step) {
  (void)step;
  if (rank == 0)
    join();
  compute(1e-3);
  sum();
}
/* The thread that calls MPI waits for one that computes: nothing is lost. */
static sem_t wanted, done;
static void* worker(void* unused) {
  for (;;) {
    sem_wait(&wanted);
    compute(4e-3);
    sem_post(&done);
  }
  return unused;
}
static void by_worker(long step) {
  static pthread_t thread;
  if (step == 0) {
    sem_init(&wanted, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, worker, NULL);
  }
  sem_post(&wanted);
  sem_wait(&done);
  sum();
}
static void* chores(void* unused) {
  compute(20e-3);
  return unused;
}
static void by_threads(long step) {
  pthread_t thread;
  (void)step;
  pthread_create(&thread, NULL, chores, NULL);
  pthread_join(thread, NULL);
  sum();
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long asked, answered;
static void* server(void* unused) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (asked == answered)
      pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    pause_for(3e-3);
    pthread_mutex_lock(&mutex);
    answered = asked;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}
static void wait_for_server(long step) {
  static pthread_t thread;
  if (step == 0)
    pthread_create(&thread, NULL, server, NULL);
  pthread_mutex_lock(&mutex);
  asked++;
  pthread_cond_broadcast(&changed);
  while (answered < asked)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  compute(1e-3);
  sum();
}

static void ping(long step) {
  (void)step;
  for (int i = 0; i < 2000; i++)
    if (rank % 2 == 0)
      MPI_Send(from, 1, MPI_DOUBLE, partner(), 0, MPI_COMM_WORLD);
    else
      MPI_Recv(to, 1, MPI_DOUBLE, partner(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  compute(100e-6);
}

/* Rank 1 sorts four times as much as the others. */
static int by_value(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}
static void sort(long step) {
  const int count = rank == 1 ? ELEMENTS : ELEMENTS / 4;
  for (int i = 0; i < count; i++)
    to[i] = (double)((i * 7919L + step) % count);
  for (int k = 0; k < 4; k++)
    qsort(to, (size_t)count, sizeof *to, k % 2 ? by_value : by_value);
  MPI_Alltoall(from, 8, MPI_DOUBLE, buffer, 8, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void even(long step) {
  (void)step;
  compute(2e-3);
  sum();
}
static void even_neighbours(long step) {
  (void)step;
  compute(2e-3);
  MPI_Sendrecv(from, 64, MPI_DOUBLE, partner(), 0, to, 64, MPI_DOUBLE, partner(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void lock_in_turn(long step) {
  static int file = -1;
  (void)step;
  if (file < 0)
    file = open("locked", O_RDWR | O_CREAT, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  fcntl(file, F_SETLKW, &lock);
  compute(3e-3);
  lock.l_type = F_UNLCK;
  fcntl(file, F_SETLK, &lock);
  pause_for(10e-6);
}

/* Both ranks compute; then rank 1 takes what rank 0 has sent, the latest first. */
static void latest_first(long step) {
  enum { MESSAGES = 6000 };
  (void)step;
  compute(60e-3);
  for (int i = 0; i < MESSAGES && rank == 0; i++)
    MPI_Send(to, 1, MPI_DOUBLE, 1, i, MPI_COMM_WORLD);
  for (int i = MESSAGES; i > 0 && rank == 1; i--)
    MPI_Recv(from, 1, MPI_DOUBLE, 0, i - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Both ranks have sent all; then each takes what it got in an order of its own. */
static void shuffled(long step) {
  enum { MESSAGES = 4096, STRIDE = 1531 };
  static MPI_Request sent[MESSAGES];
  for (int i = 0; i < MESSAGES; i++)
    MPI_Isend(to, 3, MPI_DOUBLE, partner(), i, MPI_COMM_WORLD, sent + i);
  for (int i = 0; i < MESSAGES; i++)
    MPI_Recv(from, 3, MPI_DOUBLE, partner(), (int)((i * (long)STRIDE + step) % MESSAGES),
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(MESSAGES, sent, MPI_STATUSES_IGNORE);
  compute(500e-6);
}

/* The same in the order of sending. */
static void in_order(long step) {
  enum { MESSAGES = 4096 };
  static MPI_Request sent[MESSAGES];
  (void)step;
  for (int i = 0; i < MESSAGES; i++)
    MPI_Isend(to, 3, MPI_DOUBLE, partner(), i, MPI_COMM_WORLD, sent + i);
  for (int i = 0; i < MESSAGES; i++)
    MPI_Recv(from, 3, MPI_DOUBLE, partner(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(MESSAGES, sent, MPI_STATUSES_IGNORE);
  compute(60e-3);
}

static void rename_files(long step) {
  char one[64], other[64];
  (void)step;
  snprintf(one, sizeof one, "f%d", rank);
  snprintf(other, sizeof other, "g%d", rank);
  for (int i = 0; i < 100; i++) {
    struct stat status;
    close(open(one, O_RDWR | O_CREAT, 0600));
    stat(one, &status);
    rename(one, other);
    unlink(other);
  }
  compute(200e-6);
  sum();
}

static void write_pieces(long step) {
  static MPI_File file = MPI_FILE_NULL;
  if (file == MPI_FILE_NULL)
    MPI_File_open(MPI_COMM_SELF, rank % 2 ? "p1" : "p0", MPI_MODE_CREATE | MPI_MODE_RDWR,
                  MPI_INFO_NULL, &file);
  for (int i = 0; i < 200; i++)
    MPI_File_write_at(file, 64L * i, from, 4, MPI_DOUBLE, MPI_STATUS_IGNORE);
  compute(200e-6);
  if (step % 16 == 0)
    sum();
}

/* Odd ranks wait in a loop until their neighbour has set a flag in a window that both share. */
static void flag(long step) {
  static MPI_Win window = MPI_WIN_NULL;
  static _Atomic long* flags;
  MPI_Aint bytes;
  int unit;
  if (window == MPI_WIN_NULL) {
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &window);
    *flags = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_shared_query(window, rank & ~1, &bytes, &unit, &flags);
  }
  if (rank % 2 == 0) {
    compute(2e-3);
    *flags = step;
  } else {
    while (*flags < step)
      ;
  }
  compute(1e-3);
  sum();
}

static const struct cause causes[] = {
    {"pack-elements", pack_elements, NULL},
    {"pack-arrays", pack_arrays, NULL},
    {"unpack-elements", unpack_elements, NULL},
    {"fence-elements", fence_elements, NULL},
    {"fence-arrays", fence_arrays, NULL},
    {"windows", windows, NULL},
    {"many-requests", many_requests, NULL},
    {"few-requests", few_requests, NULL},
    {"ask-size", ask_size, NULL},
    {"datatypes", datatypes, NULL},
    {"fresh-memory", fresh_memory, NULL},
    {"kept-memory", kept_memory, NULL},
    {"random-numbers", random_numbers, NULL},
    {"flag", flag, NULL},
    {"reduce-to-root", reduce_to_root, NULL},
    {"reduce-large", reduce_large, NULL},
    {"reduce-rarely", reduce_rarely, NULL},
    {"child-beside", child_beside, end_child},
    {"child-waited", child_waited, NULL},
    {"join-on-one", join_on_one, NULL},
    {"wait-for-server", wait_for_server, NULL},
    {"by-worker", by_worker, NULL},
    {"by-threads", by_threads, NULL},
    {"latest-first", latest_first, NULL},
    {"shuffled", shuffled, NULL},
    {"in-order", in_order, NULL},
    {"ping", ping, NULL},
    {"sort", sort, NULL},
    {"even", even, NULL},
    {"even-neighbours", even_neighbours, NULL},
    {"lock-in-turn", lock_in_turn, NULL},
    {"rename-files", rename_files, NULL},
    {"write-pieces", write_pieces, NULL},
};

int main(int count, char** words) {
  return run(count, words, causes, sizeof causes / sizeof *causes);
}
