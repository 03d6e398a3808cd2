/* A program whose traffic is known in closed form, selected by its argument. Ranks communicate
 * in a ring; r is the rank, n their number. test_mpi_profiler.py holds the expected traffic of
 * each part. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int r, n;
static double from[4096], to[4096];

static int next(void) {
  return (r + 1) % n;
}
static int previous(void) {
  return (r + n - 1) % n;
}

/* 5 messages of 56 B in each direction by Sendrecv; 3 of 8 * (r + 1) B, received from any source
 * into a larger buffer without a status; one to MPI_PROC_NULL. */
static void point_to_point(void) {
  for (int i = 0; i < 5; i++)
    MPI_Sendrecv(from, 7, MPI_DOUBLE, next(), 0, to, 7, MPI_DOUBLE, previous(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; i++) {
    if (r % 2 == 0 && !(n % 2 == 1 && r == n - 1))
      MPI_Send(from, r + 1, MPI_DOUBLE, next(), 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (r % 2 == 1)
      MPI_Recv(to, 4096, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Send(from, 100, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Sendrecv_replace(from, 3, MPI_INT, next(), 0, previous(), 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
}

static void collectives(void) {
  int counts[64], places[64], own[64];
  MPI_Datatype types[64];
  for (int i = 0; i < n; i++) {
    counts[i] = i + 1;
    places[i] = 16 * i;
    own[i] = r + 1;
    types[i] = MPI_DOUBLE;
  }
  for (int i = 0; i < 10; i++)
    MPI_Allreduce(from, to, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, to, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  MPI_Bcast(to, 9, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Reduce(from, to, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Gather(r == 0 ? MPI_IN_PLACE : from, 2, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Gatherv(r == 0 ? MPI_IN_PLACE : from, r + 1, MPI_INT, to, counts, places, MPI_INT, 0,
              MPI_COMM_WORLD);
  MPI_Scatter(from, 4, MPI_INT, to, 4, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatterv(from, counts, places, MPI_INT, to, r + 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allgather(from, 5, MPI_INT, to, 5, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoall(from, 6, MPI_INT, to, 6, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoallv(from, counts, places, MPI_INT, to, own, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoallw(from, counts, places, types, to, own, places, types, MPI_COMM_WORLD);
  MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(from, to, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Scan(from, to, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Iallreduce(from, to, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Each rank sends 4 messages of 8 * (i + 1) B to the next one in each of 3 rounds; they are
 * completed in every possible way. */
static void requests(void) {
  MPI_Request all[8];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++) {
      MPI_Irecv(&to[64 * i], 64, MPI_DOUBLE, i % 2 ? MPI_ANY_SOURCE : previous(), i, MPI_COMM_WORLD,
                &all[i]);
      MPI_Isend(from, i + 1, MPI_DOUBLE, next(), i, MPI_COMM_WORLD, &all[4 + i]);
    }
    if (round == 0)
      MPI_Waitall(8, all, MPI_STATUSES_IGNORE);
    for (int done = 0; round == 1 && done < 8; done++) {
      int index;
      MPI_Status status;
      MPI_Waitany(8, all, &index, &status);
    }
    for (int done = 0, some, indices[8]; round == 2 && done < 8; done += some) {
      MPI_Status statuses[8];
      MPI_Waitsome(8, all, &some, indices, statuses);
    }
  }
  MPI_Request request;
  MPI_Irecv(to, 8, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request); /* never sent */
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Irecv(to, 8, MPI_INT, MPI_PROC_NULL, 99, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* 5 starts of a send of 24 B and of its receive. */
static void persistent(void) {
  MPI_Request both[2];
  MPI_Send_init(from, 3, MPI_DOUBLE, next(), 3, MPI_COMM_WORLD, &both[0]);
  MPI_Recv_init(to, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &both[1]);
  for (int i = 0; i < 5; i++) {
    int done = 0;
    if (i == 0) {
      MPI_Start(&both[1]);
      MPI_Start(&both[0]);
    } else
      MPI_Startall(2, both);
    while (!done)
      MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
}

/* 2 messages of 12 B that are first matched by a probe. */
static void matched(void) {
  MPI_Message message;
  MPI_Status status;
  MPI_Request send, receive;
  for (int i = 0; i < 2; i++) {
    MPI_Isend(from, 3, MPI_INT, next(), 4, MPI_COMM_WORLD, &send);
    MPI_Mprobe(previous(), 4, MPI_COMM_WORLD, &message, &status);
    if (i == 0)
      MPI_Mrecv(to, 64, MPI_INT, &message, MPI_STATUS_IGNORE);
    else {
      MPI_Imrecv(to, 64, MPI_INT, &message, &receive);
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

/* 20 communicators with ranks in descending order, one after another, so that handles are
 * reused: in every second one, rank i is rank n - 1 - i of MPI_COMM_WORLD. The last message is
 * received after its communicator was freed. Each rank sends 4 B to the next one. */
static void reversed(void) {
  for (int i = 0; i < 20; i++) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -r : r, &comm);
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Irecv(to, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
    MPI_Send(from, 1, MPI_INT, (rank + 1) % n, 0, comm);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* Between even and odd ranks: each sends 16 B to rank 0 of the other group, and the groups
 * exchange 8 B by all-to-all. */
static void between_groups(void) {
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, r % 2, r, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, r % 2 ? 0 : 1, 5, &inter);
  int rank, others;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &others);
  MPI_Request request;
  MPI_Isend(from, 2, MPI_DOUBLE, 0, 0, inter, &request);
  for (int i = 0; rank == 0 && i < others; i++)
    MPI_Recv(to, 64, MPI_DOUBLE, i, 0, inter, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Alltoall(from, 1, MPI_DOUBLE, to, 1, MPI_DOUBLE, inter);
  MPI_Bcast(to, 5, MPI_INT, r % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

enum { THREADS = 4, ROUNDS = 500 };
static MPI_Comm of_thread[THREADS];

/* Each thread sends 4 * (t + 1) B around the ring in its own communicator. */
static void* ring_of_thread(void* argument) {
  const int t = (int)(size_t)argument;
  int out[THREADS] = {0}, in[THREADS];
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Request request;
    MPI_Irecv(in, THREADS, MPI_INT, MPI_ANY_SOURCE, t, of_thread[t], &request);
    MPI_Send(out, t + 1, MPI_INT, next(), t, of_thread[t]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return NULL;
}

static void threads(void) {
  pthread_t started[THREADS];
  for (int t = 0; t < THREADS; t++)
    MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[t]);
  for (size_t t = 0; t < THREADS; t++)
    pthread_create(&started[t], NULL, ring_of_thread, (void*)t);
  for (int t = 0; t < THREADS; t++)
    pthread_join(started[t], NULL);
}

static void derived(void) {
  MPI_Datatype column;
  MPI_Comm grid;
  const int size = n, periodic = 1;
  for (int i = 1; i <= 3; i++) { /* handles of types of 8, 16, 24 B */
    MPI_Type_vector(i, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Bcast(to, 2, column, 0, MPI_COMM_WORLD);
    MPI_Type_free(&column);
  }
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &grid);
  MPI_Neighbor_alltoall(from, 2, MPI_INT, to, 2, MPI_INT, grid);
  MPI_Neighbor_allgather(from, 2, MPI_INT, to, 2, MPI_INT, grid);
  MPI_Comm_free(&grid);
}

/* Each rank receives 24 B from the next one, and 32 B into a buffer of 4 B. */
static void failing(void) {
  MPI_Request all[4];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Irecv(to, 64, MPI_DOUBLE, previous(), 1, MPI_COMM_WORLD, &all[0]);
  MPI_Irecv(&to[64], 1, MPI_INT, previous(), 2, MPI_COMM_WORLD, &all[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(from, 3, MPI_DOUBLE, next(), 1, MPI_COMM_WORLD, &all[2]);
  MPI_Isend(from, 8, MPI_INT, next(), 2, MPI_COMM_WORLD, &all[3]);
  for (int i = 0; i < 9 && MPI_Waitall(4, all, MPI_STATUSES_IGNORE) != MPI_SUCCESS; i++)
    ;
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 arrives 20 ms after the others, 12 times; then 6 reductions of 24 B without a late
 * rank, half of them on a separate communicator. */
static void late(void) {
  MPI_Comm copy;
  const struct timespec time = {.tv_nsec = 20000000};
  for (int i = 0; i < 12; i++) {
    if (r == 1)
      nanosleep(&time, NULL);
    MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int i = 0; i < 6; i++)
    MPI_Allreduce(from, to, 3, MPI_DOUBLE, MPI_SUM, i % 2 ? copy : MPI_COMM_WORLD);
  for (int i = 0; i < 5; i++)
    MPI_Allreduce(from, to, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  MPI_Comm_free(&copy);
}

/* More kinds of calls than a table has rows: 5 of each size up to 1024 B. */
static void sizes(void) {
  char bytes[1024] = {0}, others[1024];
  for (int i = 1; i <= 1024; i++) {
    MPI_Bcast(bytes, i, MPI_BYTE, 0, MPI_COMM_SELF);
    MPI_Allreduce(bytes, others, i, MPI_BYTE, MPI_BXOR, MPI_COMM_SELF);
    MPI_Reduce(bytes, others, i, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_SELF);
    MPI_Scan(bytes, others, i, MPI_BYTE, MPI_BXOR, MPI_COMM_SELF);
    MPI_Allgather(bytes, i, MPI_BYTE, others, i, MPI_BYTE, MPI_COMM_SELF);
  }
}

#if MPI_VERSION >= 4
static void large(void) {
  MPI_Count counts[64];
  MPI_Aint places[64];
  for (int i = 0; i < n; i++) {
    counts[i] = i + 1;
    places[i] = 16 * i;
  }
  MPI_Sendrecv_c(from, 7, MPI_DOUBLE, next(), 0, to, 64, MPI_DOUBLE, previous(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  MPI_Allgatherv_c(from, r + 1, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Scatterv_c(from, counts, places, MPI_INT, to, r + 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* 2049 MiB to itself, 1 MiB at a time; and a count of 3 GiB that moves nothing. */
static void huge(void) {
  const MPI_Count blocks = 2049, block = 1 << 20;
  char* room = malloc((size_t)3 << 30); /* untouched pages take no memory */
  char* one = calloc((size_t)block, 1);
  MPI_Datatype again;
  if (room == NULL || one == NULL)
    MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Type_create_hvector_c(blocks, block, 0, MPI_BYTE, &again);
  MPI_Type_commit(&again);
  MPI_Sendrecv_c(one, 1, again, r, 0, room, blocks * block, MPI_BYTE, r, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  MPI_Bcast_c(room, (MPI_Count)3 << 30, MPI_BYTE, 0, MPI_COMM_SELF);
  MPI_Type_free(&again);
  free(room);
  free(one);
}

/* 3 starts of a message of 4 partitions of 2 doubles. */
static void partitioned(void) {
  MPI_Request send, receive;
  MPI_Psend_init(from, 4, 2, MPI_DOUBLE, next(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(to, 4, 2, MPI_DOUBLE, previous(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (int i = 0; i < 3; i++) {
    MPI_Start(&receive);
    MPI_Start(&send);
    for (int part = 0; part < 4; part++)
      MPI_Pready(part, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

/* Without MPI_COMM_WORLD: 2 messages of 20 B around the ring. */
static void session(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &n);
  for (int i = 0; i < 2; i++)
    MPI_Sendrecv(from, 5, MPI_INT, next(), 0, to, 5, MPI_INT, previous(), 0, comm,
                 MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
}
#endif

static void file(const char* path) {
  MPI_File file;
  MPI_Status status;
  MPI_Request request;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 800 * r, from, 100, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, 800 * r, to, 50, MPI_DOUBLE, &status);
  MPI_File_iread_at(file, 800 * r, to, 25, MPI_DOUBLE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

static void one_sided(void) {
  int got[5], one = 1;
  MPI_Win win;
  MPI_Win_create(to, sizeof to, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(from, 11, MPI_DOUBLE, next(), 0, 11, MPI_DOUBLE, win);
  MPI_Accumulate(from, 3, MPI_INT, next(), 100, 3, MPI_INT, MPI_SUM, win);
  MPI_Get_accumulate(NULL, 0, MPI_INT, got, 3, MPI_INT, next(), 300, 3, MPI_INT, MPI_NO_OP, win);
  MPI_Fetch_and_op(&one, &got[3], MPI_INT, next(), 310, MPI_SUM, win);
  MPI_Fetch_and_op(NULL, &got[4], MPI_INT, next(), 320, MPI_NO_OP, win);
  MPI_Win_fence(0, win);
  MPI_Get(from, 2, MPI_DOUBLE, next(), 200, 2, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  const char* part = argc > 1 ? argv[1] : "";
#if MPI_VERSION >= 4
  if (strcmp(part, "session") == 0) {
    session();
    return 0;
  }
#endif
  int provided;
  if (strcmp(part, "threads") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {
    {"point_to_point", point_to_point},
    {"collectives", collectives},
    {"requests", requests},
    {"persistent", persistent},
    {"matched", matched},
    {"reversed", reversed},
    {"between_groups", between_groups},
    {"derived", derived},
    {"failing", failing},
    {"late", late},
    {"sizes", sizes},
#if MPI_VERSION >= 4
    {"large", large},
    {"huge", huge},
    {"partitioned", partitioned},
#endif
    {"one_sided", one_sided},
    {"threads", threads}
  };
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (strcmp(part, parts[i].name) == 0)
      parts[i].run();
  if (strcmp(part, "file") == 0)
    file(argv[2]);
  if (strcmp(part, "killed") == 0 || strcmp(part, "aborted") == 0) {
    for (int i = 0; i < 1000; i++)
      MPI_Allreduce(from, to, 2, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_WORLD);
    if (part[0] == 'k')
      raise(SIGKILL);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  if (strcmp(part, "forking") == 0 && fork() == 0) {
    MPI_Initialized(&provided);
    _exit(0);
  }
  MPI_Finalize();
  return 0;
}
