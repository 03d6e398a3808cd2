/* NCCL between processes of one host, for the made-up CUDA driver, whose device memory is host
 * memory. Operations are queued in the stream and carried out when it is waited for, as by the
 * real one; the ranks meet in shared memory. MADE_UP_NCCL plants a fault in rank MADE_UP_RANK:
 * late (it queues the first operation 100 ms late), nothing, half, wrong-rank, hang (it
 * never comes). */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  char bytes[128];
} Id;

enum { most_ranks = 8, room = 8 << 20 };
enum { reduces, gathers, scatters, broadcasts, to_root, passes };

typedef struct {
  pthread_barrier_t barrier;
  unsigned char data[most_ranks][room];
} Shared;

typedef struct Comm {
  Shared* shared;
  int rank, ranks;
  int queued; /* operations since the stream was last waited for */
} Comm;

typedef struct {
  Comm* comm;
  int kind, type, operation, root;
  size_t count;
  char* send;
  char* receive;
  /* of a group: what is sent to and received from each rank */
  char* sends[most_ranks];
  char* receives[most_ranks];
} Work;

static Work* group;
static int depth;

static size_t size_of(int type) {
  return type == 7 || type == 2 ? 4 : type == 8 || type == 4 ? 8 : 1;
}

static int has_fault(const Comm* comm, const char* name) {
  const char* fault = getenv("MADE_UP_NCCL");
  const char* rank = getenv("MADE_UP_RANK");
  return fault != NULL && strcmp(fault, name) == 0 && comm->rank == (rank == NULL ? 0 : atoi(rank));
}

#define REDUCE(Type)                                                                               \
  for (size_t i = 0; i < count; ++i) {                                                             \
    Type sum = ((const Type*)(comm->shared->data[0] + from))[i];                                   \
    for (int r = 1; r < comm->ranks; ++r) {                                                        \
      const Type next = ((const Type*)(comm->shared->data[r] + from))[i];                          \
      sum = operation == 0   ? (Type)(sum + next)                                                  \
            : operation == 2 ? (next > sum ? next : sum)                                           \
                             : (next < sum ? next : sum);                                          \
    }                                                                                              \
    ((Type*)to)[i] = sum;                                                                          \
  }

static void reduce(const Comm* comm, char* to, size_t from, size_t count, int type, int operation) {
  if (type == 7)
    REDUCE(float)
  else if (type == 8)
    REDUCE(double)
  else if (type == 2)
    REDUCE(int32_t)
  else if (type == 4)
    REDUCE(int64_t)
  else
    REDUCE(signed char)
}

static void carry_out(void* argument) {
  Work* work = argument;
  Comm* comm = work->comm;
  Shared* shared = comm->shared;
  const size_t each = size_of(work->type);
  const size_t bytes = work->count * each;
  const size_t own = (size_t)comm->rank * bytes;
  comm->queued = 0;
  if (work->kind == passes)
    for (int r = 0; r < comm->ranks; ++r) {
      if (work->sends[r] != NULL)
        memcpy(shared->data[comm->rank] + (size_t)r * bytes, work->sends[r], bytes);
    }
  else
    memcpy(shared->data[comm->rank], work->send,
           work->kind == scatters ? bytes * (size_t)comm->ranks : bytes);
  pthread_barrier_wait(&shared->barrier);
  const int is_left_out = has_fault(comm, "nothing");
  const size_t count = has_fault(comm, "half") ? work->count / 2 : work->count;
  const int shift = has_fault(comm, "wrong-rank") ? 1 : 0;
  if (!is_left_out)
    switch (work->kind) {
    case reduces:
      reduce(comm, work->receive, 0, count, work->type, work->operation);
      break;
    case to_root:
      if (comm->rank == work->root)
        reduce(comm, work->receive, 0, count, work->type, work->operation);
      break;
    case scatters:
      reduce(comm, work->receive, shift ? (own + bytes) % (bytes * (size_t)comm->ranks) : own,
             count, work->type, work->operation);
      break;
    case gathers:
      for (int r = 0; r < comm->ranks; ++r)
        memmove(work->receive + (size_t)r * bytes, shared->data[(r + shift) % comm->ranks],
                count * each);
      break;
    case broadcasts:
      memcpy(work->receive, shared->data[work->root], count * each);
      break;
    case passes:
      for (int r = 0; r < comm->ranks; ++r)
        if (work->receives[r] != NULL)
          memcpy(work->receives[r],
                 shared->data[(r + shift) % comm->ranks] + (size_t)comm->rank * bytes,
                 count * each);
    }
  pthread_barrier_wait(&shared->barrier);
  free(work);
}

static int queue(Work work) {
  static void (*defer)(void (*)(void*), void*);
  if (defer == NULL)
    defer =
        (void (*)(void (*)(void*), void*))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "made_up_defer");
  if (work.count * size_of(work.type) * (size_t)work.comm->ranks > room)
    return 4; /* ncclInvalidArgument */
  while (has_fault(work.comm, "hang"))
    pause();
  if (has_fault(work.comm, "late") && work.comm->queued == 0)
    nanosleep(&(struct timespec){0, 100000000}, NULL);
  ++work.comm->queued;
  Work* kept = malloc(sizeof work);
  *kept = work;
  return defer(carry_out, kept), 0;
}

int ncclGetVersion(int* version) {
  return *version = 22809, 0;
}
const char* ncclGetErrorString(int code) {
  return code == 4 ? "invalid argument" : "made up";
}
int ncclGetUniqueId(Id* id) {
  snprintf(id->bytes, sizeof id->bytes, "/made-up-nccl-%d", getpid());
  const int file = shm_open(id->bytes, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
    return 2;
  return close(file);
}
int ncclCommInitRank(void** made, int ranks, Id id, int rank) {
  if (ranks > most_ranks)
    return 4;
  const int file = shm_open(id.bytes, O_RDWR, 0600);
  Comm* comm = calloc(1, sizeof *comm);
  comm->shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  comm->rank = rank;
  comm->ranks = ranks;
  close(file);
  if (rank == 0) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&comm->shared->barrier, &attributes, (unsigned)ranks);
    __atomic_store_n(&comm->shared->data[0][0], 1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&comm->shared->data[0][0], __ATOMIC_ACQUIRE) == 0)
    usleep(100);
  pthread_barrier_wait(&comm->shared->barrier);
  if (rank == 0)
    shm_unlink(id.bytes);
  return *made = comm, 0;
}
int ncclCommDestroy(Comm* comm) {
  return munmap(comm->shared, sizeof(Shared));
}
int ncclGroupStart(void) {
  return ++depth, 0;
}
int ncclGroupEnd(void) {
  if (--depth > 0 || group == NULL)
    return 0;
  const Work work = *group;
  free(group);
  group = NULL;
  return queue(work);
}
static Work* of_group(Comm* comm, size_t count, int type) {
  if (group == NULL)
    group = calloc(1, sizeof *group);
  group->kind = passes;
  group->comm = comm;
  group->count = count;
  group->type = type;
  return group;
}
int ncclSend(void* data, size_t count, int type, int peer, Comm* comm, void* stream) {
  return (void)stream, of_group(comm, count, type)->sends[peer] = data, 0;
}
int ncclRecv(void* data, size_t count, int type, int peer, Comm* comm, void* stream) {
  return (void)stream, of_group(comm, count, type)->receives[peer] = data, 0;
}
int ncclAllReduce(void* send, void* receive, size_t count, int type, int operation, Comm* comm,
                  void* stream) {
  (void)stream;
  return queue((Work){comm, reduces, type, operation, 0, count, send, receive, {0}, {0}});
}
int ncclReduce(void* send, void* receive, size_t count, int type, int operation, int root,
               Comm* comm, void* stream) {
  (void)stream;
  return queue((Work){comm, to_root, type, operation, root, count, send, receive, {0}, {0}});
}
int ncclReduceScatter(void* send, void* receive, size_t count, int type, int operation, Comm* comm,
                      void* stream) {
  (void)stream;
  return queue((Work){comm, scatters, type, operation, 0, count, send, receive, {0}, {0}});
}
int ncclAllGather(void* send, void* receive, size_t count, int type, Comm* comm, void* stream) {
  (void)stream;
  return queue((Work){comm, gathers, type, 0, 0, count, send, receive, {0}, {0}});
}
int ncclBroadcast(void* send, void* receive, size_t count, int type, int root, Comm* comm,
                  void* stream) {
  (void)stream;
  return queue((Work){comm, broadcasts, type, 0, root, count, send, receive, {0}, {0}});
}
