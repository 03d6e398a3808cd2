/* A program with reduction operations of its own: mpi_operation_program CASE FILE. Each function
 * counts its calls and the nanoseconds within; the sums over all ranks are written to the file,
 * after the number of wrong results. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 40, ELEMENTS = 64 };

static int rank, size, wrong;
static uint64_t calls[MANY], spent_ns[MANY];

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The sum, after so many nanoseconds. */
static void add(int n, uint64_t ns, const int64_t* in, int64_t* inout, const int* count) {
  const uint64_t begin = now_ns();
  for (int i = 0; i < *count; i++)
    inout[i] += in[i];
  while (now_ns() - begin < ns)
    ;
  __atomic_fetch_add(&calls[n], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&spent_ns[n], now_ns() - begin, __ATOMIC_RELAXED);
}

#define FUNCTION(n)                                                                                \
  void combine_##n(void* in, void* inout, int* count, MPI_Datatype* type) {                        \
    (void)type;                                                                                    \
    add(n, (n) == 0 ? 300000 : 1000, in, inout, count);                                            \
  }
#define TEN(one, n)                                                                                \
  one(n##0) one(n##1) one(n##2) one(n##3) one(n##4) one(n##5) one(n##6) one(n##7) one(n##8)        \
      one(n##9)
TEN(FUNCTION, )
TEN(FUNCTION, 1)
TEN(FUNCTION, 2)
TEN(FUNCTION, 3)
#define NAME(n) combine_##n,
static MPI_User_function* const functions[MANY] = {TEN(NAME, ) TEN(NAME, 1) TEN(NAME, 2)
                                                       TEN(NAME, 3)};

static MPI_Op made(int n) {
  MPI_Op op;
  MPI_Op_create(functions[n], 1, &op);
  return op;
}

static void check(const int64_t* values, int64_t sum) {
  for (int i = 0; i < ELEMENTS; i++)
    wrong += values[i] != sum;
}

static int64_t ranks_sum(void) {
  return (int64_t)size * (size + 1) / 2;
}

static void reduce(MPI_Op op, MPI_Comm comm) {
  int64_t in[ELEMENTS], out[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++)
    in[i] = rank + 1;
  MPI_Allreduce(in, out, ELEMENTS, MPI_INT64_T, op, comm);
  check(out, ranks_sum());
}

/* Blocking calls of every kind, and MPI_Reduce_local. */
static void blocking(void) {
  MPI_Op slow = made(0), fast = made(1);
  int64_t in[ELEMENTS], out[ELEMENTS];
  for (int round = 0; round < 50; round++) {
    reduce(slow, MPI_COMM_WORLD);
    reduce(fast, MPI_COMM_WORLD);
    for (int i = 0; i < ELEMENTS; i++)
      in[i] = out[i] = rank + 1;
    MPI_Reduce(in, out, ELEMENTS, MPI_INT64_T, fast, 0, MPI_COMM_WORLD);
    if (rank == 0)
      check(out, ranks_sum());
    MPI_Scan(in, out, ELEMENTS, MPI_INT64_T, fast, MPI_COMM_WORLD);
    check(out, (int64_t)(rank + 1) * (rank + 2) / 2);
    MPI_Reduce_local(in, out, ELEMENTS, MPI_INT64_T, fast);
    check(out, (int64_t)(rank + 1) * (rank + 2) / 2 + rank + 1);
    MPI_Allreduce(in, out, ELEMENTS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Op_free(&slow);
  MPI_Op_free(&fast);
}

/* An operation that is freed before the call that it is for is complete, and others in its place.
 */
static void freed(void) {
  for (int round = 0; round < 100; round++) {
    int64_t in[ELEMENTS], out[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
      in[i] = rank + 1;
    MPI_Op op = made(2 + round % 3);
    MPI_Request request;
    MPI_Iallreduce(in, out, ELEMENTS, MPI_INT64_T, op, MPI_COMM_WORLD, &request);
    MPI_Op_free(&op);
    MPI_Op other = made(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, ranks_sum());
    reduce(other, MPI_COMM_WORLD);
    MPI_Op_free(&other);
  }
}

/* More functions than are told apart, and more than are timed. */
static void many(void) {
  for (int n = 1; n < MANY; n++) {
    MPI_Op op = made(n);
    reduce(op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
  }
}

enum { THREADS = 2 };
static MPI_Comm comms[THREADS];

static void* thread(void* number) {
  const int n = (int)(intptr_t)number;
  for (int round = 0; round < 100; round++) {
    MPI_Op op = made(1 + (n + round) % 8);
    reduce(op, comms[n]);
    MPI_Op_free(&op);
  }
  return NULL;
}

static void threads(void) {
  pthread_t ids[THREADS];
  for (int n = 0; n < THREADS; n++)
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
  for (int n = 0; n < THREADS; n++)
    pthread_create(&ids[n], NULL, thread, (void*)(intptr_t)n);
  for (int n = 0; n < THREADS; n++)
    pthread_join(ids[n], NULL);
}

int main(int count, char** words) {
  int provided;
  const char* which = count > 1 ? words[1] : "";
  MPI_Init_thread(NULL, NULL,
                  strcmp(which, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(which, "blocking") == 0)
    blocking();
  else if (strcmp(which, "freed") == 0)
    freed();
  else if (strcmp(which, "many") == 0)
    many();
  else if (strcmp(which, "threads") == 0 && provided == MPI_THREAD_MULTIPLE)
    threads();
  else
    wrong = 1;
  uint64_t all[2 * MANY], sums[2 * MANY];
  memcpy(all, calls, sizeof calls);
  memcpy(all + MANY, spent_ns, sizeof spent_ns);
  MPI_Reduce(all, sums, 2 * MANY, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  int wrong_ones = 0;
  MPI_Reduce(&wrong, &wrong_ones, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  FILE* file = rank == 0 && count > 2 ? fopen(words[2], "w") : NULL;
  if (file != NULL) {
    fprintf(file, "%d\n", wrong_ones);
    for (int n = 0; n < MANY; n++)
      fprintf(file, "%llu %llu\n", (unsigned long long)sums[n], (unsigned long long)sums[MANY + n]);
    fclose(file);
  }
  MPI_Finalize();
  return 0;
}
