/* An MPI and OpenMP program with a planted cause inside a rank: nodes CAUSE SECONDS. It repeats a
 * step until SECONDS have passed on rank 0. */
#include <fcntl.h>
#include <malloc.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 256 << 20, PAGE = 4096, TRIAD = 8 << 20, CHAINS = 16, ARRAY = 1 << 20 };

static int rank;
static double *a, *b, *c;
static unsigned char* mapped;
static int file;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static volatile double kept = 1;
static void chain(long steps) {
  double x = kept;
  for (long i = 0; i < steps; i++)
    x = x * 1.0000001 + 1e-9;
  kept = x > 1e6 ? 1 : x;
}

static void threads_uneven(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < 64; i++)
    chain(3000l * i);
  kept += 0; /* the call that begins the region is not the last one: it keeps its place */
}

static void threads_dynamic(void) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 63; i >= 0; i--)
    chain(3000l * i);
  kept += 0; /* the call that begins the region is not the last one: it keeps its place */
}

static void threads_even(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < 64; i++)
    chain(3000l * 32);
  kept += 0; /* the call that begins the region is not the last one: it keeps its place */
}

static void threads_short(void) {
  for (int k = 0; k < 1000; k++) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 2; i++)
      chain(200);
  }
}

/* A file of its own for each rank, which is removed at once. */
static void map_file(void) {
  char name[64];
  snprintf(name, sizeof name, "nodes-%d.data", rank);
  file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  char* block = malloc(1 << 20);
  memset(block, 7, 1 << 20);
  for (int i = 0; i < FILE_BYTES >> 20; i++)
    if (write(file, block, 1 << 20) != 1 << 20)
      exit(3);
  fsync(file);
  unlink(name);
  free(block);
  mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED || madvise(mapped, FILE_BYTES, MADV_RANDOM) != 0)
    exit(3);
}

static void touch(int pages) {
  static unsigned at = 12345;
  unsigned sum = 0;
  for (int i = 0; i < pages; i++) {
    at = at * 1664525u + 1013904223u;
    sum += mapped[(at >> 4) % (FILE_BYTES / PAGE) * (size_t)PAGE];
  }
  kept += sum == 1;
}

static void paging(void) {
  if (rank == 0) {
    madvise(mapped, FILE_BYTES, MADV_DONTNEED);
    posix_fadvise(file, 0, FILE_BYTES, POSIX_FADV_DONTNEED);
  }
  touch(rank == 0 ? 2000 : 10);
  chain(100000);
}

static void in_memory(void) {
  touch(2000);
  chain(1000000);
}

static void fill(double* array) {
  for (long i = 0; i < ARRAY; i++)
    array[i] = (double)i;
  kept += array[ARRAY / 2] < 0;
}

/* An array for each step, given back to the kernel each time. */
static void allocations(void) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  double* array = malloc(ARRAY * sizeof *array);
  fill(array);
  free(array);
}

/* Much memory that is touched once, in small parts. */
static void touched_once(void) {
  static char* memory;
  static size_t used;
  const size_t bytes = (size_t)256 << 20;
  const size_t part = 2 << 20;
  if (memory == NULL)
    memory = malloc(bytes);
  for (size_t i = 0; i < part && used < bytes; i += PAGE, used += PAGE)
    memory[used] = 1;
  chain(100000);
}

static void kept_array(void) {
  static double array[ARRAY];
  fill(array);
}

static void triad(void) {
  for (long i = 0; i < TRIAD; i++)
    a[i] = b[i] + 3.0 * c[i];
}

static void arithmetic(void) {
  double x[CHAINS];
  for (int k = 0; k < CHAINS; k++)
    x[k] = kept + k;
  for (long i = 0; i < 4000000; i++)
    for (int k = 0; k < CHAINS; k++)
      x[k] = x[k] * 1.0000001 + 1e-9;
  double sum = 0;
  for (int k = 0; k < CHAINS; k++)
    sum += x[k];
  kept = sum > 1e6 ? 1 : 1.5;
}

static const struct {
  const char* name;
  void (*step)(void);
} causes[] = {
    {"threads-uneven", threads_uneven},
    {"threads-dynamic", threads_dynamic},
    {"threads-even", threads_even},
    {"threads-short", threads_short},
    {"paging", paging},
    {"mapped", in_memory},
    {"allocations", allocations},
    {"kept", kept_array},
    {"touched-once", touched_once},
    {"triad", triad},
    {"arithmetic", arithmetic},
};

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void (*step)(void) = NULL;
  for (size_t i = 0; count > 2 && i < sizeof causes / sizeof *causes; i++)
    if (strcmp(words[1], causes[i].name) == 0)
      step = causes[i].step;
  if (step == NULL) {
    fprintf(stderr, "usage: nodes CAUSE SECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  if (step == paging || step == in_memory)
    map_file();
  if (step == in_memory)
    for (size_t i = 0; i < FILE_BYTES; i += PAGE)
      kept += mapped[i] == 1;
  if (step == triad) {
    a = calloc(TRIAD, sizeof *a);
    b = calloc(TRIAD, sizeof *b);
    c = calloc(TRIAD, sizeof *c);
    memset(b, 1, TRIAD * sizeof *b);
    memset(c, 1, TRIAD * sizeof *c);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double until = now() + strtod(words[2], NULL);
  int goes_on = 1;
  while (goes_on) {
    step();
    goes_on = now() < until;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
