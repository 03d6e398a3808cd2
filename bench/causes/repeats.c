/* Programs without MPI that do one thing too often: repeats MODE SECONDS.

   locks: two threads take one mutex for each little step. rows: the same with a mutex for each of
   many rows. pool: two workers wait on a condition variable for work of some ms. faults: memory is
   allocated and freed for each step. once: the same memory is touched again and again. polls: it
   sleeps until a time is reached, and computes a little. watched: it computes beside a thread that
   sleeps. child: it waits for other processes, and computes.
   bound: two threads, each on a CPU of its own, compute and wait for each other. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS 1024
#define BYTES (32L << 20)

static double until;
static volatile double sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void compute(double seconds) {
  const double end = now() + seconds;
  while (now() < end)
    for (int i = 0; i < 1000; ++i)
      sink += sqrt(i);
}

static struct {
  pthread_mutex_t mutex;
  double sum;
  char pad[64];
} rows[ROWS];
static unsigned used_rows = 1;

static void* take_locks(void* seed) {
  unsigned random = (unsigned)(size_t)seed;
  double own = 0;
  while (now() < until) {
    random = random * 1664525u + 1013904223u;
    const unsigned row = (random >> 16) % used_rows;
    if (used_rows > 1)
      for (int i = 0; i < 500; ++i)
        own += sqrt(i + own);
    pthread_mutex_lock(&rows[row].mutex);
    for (int i = 0; i < 300; ++i)
      rows[row].sum += sqrt(i);
    pthread_mutex_unlock(&rows[row].mutex);
  }
  sink = own;
  return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int step, finished, is_over;

static void* work(void* none) {
  for (int seen = 0;; ++seen) {
    pthread_mutex_lock(&mutex);
    while (step == seen && !is_over)
      pthread_cond_wait(&go, &mutex);
    const int ends = is_over;
    pthread_mutex_unlock(&mutex);
    if (ends)
      return none;
    compute(0.003);
    pthread_mutex_lock(&mutex);
    if (++finished == 2)
      pthread_cond_signal(&done);
    pthread_mutex_unlock(&mutex);
  }
}

static void lead(void) {
  while (now() < until) {
    pthread_mutex_lock(&mutex);
    finished = 0;
    ++step;
    pthread_cond_broadcast(&go);
    while (finished < 2)
      pthread_cond_wait(&done, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_broadcast(&go);
  pthread_mutex_unlock(&mutex);
}

static void* nap(void* none) {
  while (now() < until)
    usleep(5000);
  return none;
}

static void with_threads(void* (*run)(void*), long count, void (*main_does)(void)) {
  pthread_t threads[2];
  for (long i = 0; i < count; ++i)
    pthread_create(&threads[i], NULL, run, (void*)(i + 1));
  main_does();
  for (long i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
}

static void nothing(void) {}
static void compute_all(void) {
  compute(until - now());
}

static pthread_barrier_t barrier;

static void* compute_bound(void* number) {
  cpu_set_t allowed, own;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&own);
  long left = (long)number;
  for (int cpu = 0; cpu < CPU_SETSIZE && left > 0; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && --left == 0)
      CPU_SET(cpu, &own);
  pthread_setaffinity_np(pthread_self(), sizeof own, &own);
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 1000000; ++k)
      sink += sqrt(k);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void touch(int again) {
  char* memory = NULL;
  while (now() < until) {
    if (memory == NULL)
      memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    for (long i = 0; i < BYTES; i += 4096)
      memory[i] += 1;
    if (again)
      munmap(memory, BYTES), memory = NULL;
  }
}

static void start_child(char** words) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(words[0], words);
    _exit(127);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  if (argc < 3)
    return 2;
  const char* mode = argv[1];
  until = now() + atof(argv[2]);
  for (int i = 0; i < ROWS; ++i)
    pthread_mutex_init(&rows[i].mutex, NULL);
  if (strcmp(mode, "locks") == 0) {
    with_threads(take_locks, 2, nothing);
  } else if (strcmp(mode, "rows") == 0) {
    used_rows = ROWS;
    with_threads(take_locks, 2, nothing);
  } else if (strcmp(mode, "pool") == 0) {
    with_threads(work, 2, lead);
  } else if (strcmp(mode, "bound") == 0) {
    pthread_barrier_init(&barrier, NULL, 2);
    with_threads(compute_bound, 2, nothing);
  } else if (strcmp(mode, "faults") == 0 || strcmp(mode, "once") == 0) {
    touch(mode[0] == 'f');
  } else if (strcmp(mode, "polls") == 0) {
    while (now() < until) {
      compute(0.01);
      usleep(20000);
    }
  } else if (strcmp(mode, "watched") == 0) {
    with_threads(nap, 1, compute_all);
  } else if (strcmp(mode, "child") == 0) {
    char* words[] = {argv[0], "compute", "0.1", NULL};
    while (now() < until) {
      compute(0.05);
      start_child(words);
    }
  } else if (strcmp(mode, "compute") == 0) {
    compute_all();
  } else {
    return 2;
  }
  return 0;
}
