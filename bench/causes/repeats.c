/* Programs without MPI that do one thing too often: repeats MODE SECONDS.

   locks: two threads take one mutex for each little step. rows: the same with a mutex for each of
   many rows. pool: two workers wait on a condition variable for work of some ms. faults: memory is
   allocated and freed for each step. once: the same memory is touched again and again. polls: it
   sleeps until a time is reached, and computes a little. watched: it computes beside a thread that
   sleeps. child: it waits for other processes, and computes.
   bound: two threads, each on a CPU of its own, compute and wait for each other.
   queue: two threads take one mutex for each of many tiny items. crew: three threads are started
   for each small block, and end. shells: a program is started for each small block. lookups: a
   small file is opened, read and closed for each value. bytes: single bytes go through a socket to
   a child. maps: memory is mapped and released for each step, but not touched. wedge: two threads
   share a triangle by its rows, and wait for each other. records: results are written to a
   file in large blocks. tasks: two threads take items from a counter that they share. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

static double total;
static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;

static void* enqueue(void* none) {
  for (int k = 0; k % 1000 || now() < until; ++k) {
    pthread_mutex_lock(&one_lock);
    total += k & 7;
    pthread_mutex_unlock(&one_lock);
  }
  return none;
}

static void* add_block(void* number) {
  double own = 0;
  for (int i = 0; i < 300; ++i)
    own += sqrt(i + (size_t)number);
  sink = own;
  return NULL;
}

static void crew(void) {
  pthread_t members[3];
  while (now() < until) {
    for (size_t i = 0; i < 3; ++i)
      pthread_create(&members[i], NULL, add_block, (void*)i);
    for (int i = 0; i < 3; ++i)
      pthread_join(members[i], NULL);
  }
}

static void look_up(void) {
  char name[] = "/tmp/repeats-XXXXXX", text[32];
  const int made = mkstemp(name);
  if (made < 0 || write(made, "0.125\n", 6) != 6)
    exit(3);
  close(made);
  while (now() < until) {
    const int file = open(name, O_RDONLY);
    if (read(file, text, sizeof text) > 0)
      sink += atof(text);
    close(file);
  }
  unlink(name);
}

static void send_bytes(void) {
  int ends[2];
  char byte = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
    exit(3);
  const pid_t child = fork();
  close(ends[child == 0 ? 0 : 1]);
  if (child == 0) {
    while (read(ends[1], &byte, 1) == 1)
      sink += byte;
    _exit(0);
  }
  while (now() < until)
    if (write(ends[0], &byte, 1) != 1)
      exit(3);
  close(ends[0]);
  waitpid(child, NULL, 0);
}

static void map_often(void) {
  while (now() < until)
    munmap(mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), BYTES);
}

static pthread_barrier_t rows_end;

static void* wedge(void* number) {
  const int first = number == (void*)1 ? 0 : 1500, last = first + 1500;
  double own = 0;
  for (int again = 1; again;) {
    for (int row = first; row < last; ++row)
      for (int k = 0; k < row * 4; ++k)
        own += sqrt(k);
    pthread_barrier_wait(&rows_end);
    again = now() < until;
    pthread_barrier_wait(&rows_end);
    again = again && now() < until + 0.05;
    pthread_barrier_wait(&rows_end);
  }
  sink = own;
  return NULL;
}

static void write_records(void) {
  static char block[1 << 20];
  char name[] = "/tmp/repeats-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  while (now() < until) {
    compute(0.02);
    if (pwrite(file, block, sizeof block, 0) < 0)
      exit(3);
  }
  close(file);
}

static int next_task;

static void* take_tasks(void* none) {
  double own = 0;
  while (now() < until) {
    const int task = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
    for (int k = 0; k < 1000 * (1 + task % 37); ++k)
      own += sqrt(k);
  }
  sink = own;
  return none;
}

/* Two threads take turns; the one whose turn it is not waits in a loop. */
static _Atomic int turn;

static void* relay(void* number) {
  const int own = number == (void*)1;
  while (now() < until) {
    while (turn != own)
      if (now() > until + 0.5)
        return NULL;
      else
        for (int i = 0; i < 1000000 && turn != own; ++i)
          __builtin_ia32_pause();
    compute(0.005);
    turn = !own;
  }
  turn = !own;
  return NULL;
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
  } else if (strcmp(mode, "queue") == 0) {
    with_threads(enqueue, 2, nothing);
  } else if (strcmp(mode, "crew") == 0) {
    crew();
  } else if (strcmp(mode, "shells") == 0) {
    char* words[] = {"/bin/true", NULL};
    while (now() < until)
      start_child(words);
  } else if (strcmp(mode, "lookups") == 0) {
    look_up();
  } else if (strcmp(mode, "bytes") == 0) {
    send_bytes();
  } else if (strcmp(mode, "maps") == 0) {
    map_often();
  } else if (strcmp(mode, "wedge") == 0) {
    pthread_barrier_init(&rows_end, NULL, 2);
    with_threads(wedge, 2, nothing);
  } else if (strcmp(mode, "relay") == 0) {
    with_threads(relay, 2, nothing);
  } else if (strcmp(mode, "records") == 0) {
    write_records();
  } else if (strcmp(mode, "tasks") == 0) {
    with_threads(take_tasks, 2, nothing);
  } else if (strcmp(mode, "compute") == 0) {
    compute_all();
  } else {
    return 2;
  }
  return 0;
}
