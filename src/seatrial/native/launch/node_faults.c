// A layer between programs and the C library, which the nodes of a cluster on one machine preload
// (ld.so.preload(5)): their clock of the time of day is off and may drift, which no namespace can
// do, and making, renaming or syncing a file takes longer. `LIBRARY.faults` beside this library
// holds "OFFSET_S DRIFT SINCE_S DELAY_S": how far the clock is ahead, how much faster it runs since
// when, and the delay. Files keep the kernel's times.

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const double ns_per_s = 1e9;
static const time_t least_time_of_day_s = 1000000000;

static double offset_s, drift, since_s, delay_s;
static __typeof__(&clock_gettime) real_clock;

__attribute__((constructor)) static void read_faults(void) {
  Dl_info info;
  char file[4096];
  if (dladdr((const void*)&least_time_of_day_s, &info) == 0 ||
      snprintf(file, sizeof file, "%s.faults", info.dli_fname) >= (int)sizeof file)
    return;
  FILE* const stream = fopen(file, "re");
  if (stream == NULL)
    return;
  double found[4];
  if (fscanf(stream, "%lf %lf %lf %lf", &found[0], &found[1], &found[2], &found[3]) == 4) {
    offset_s = found[0];
    drift = found[1];
    since_s = found[2];
    delay_s = found[3];
  }
  fclose(stream);
}

static struct timespec added(struct timespec time, double s) {
  const long long whole = 1000000000;
  const long long ns = time.tv_nsec + (long long)(s * ns_per_s);
  const long long carry = ns >= 0 ? ns / whole : -((whole - 1 - ns) / whole);
  return (struct timespec){time.tv_sec + (time_t)carry, (long)(ns - carry * whole)};
}

static double ahead_s(struct timespec true_time) {
  const double now_s = (double)true_time.tv_sec + (double)true_time.tv_nsec / ns_per_s;
  return offset_s + (drift != 0.0 ? drift * (now_s - since_s) : 0.0);
}

// A deadline of the node's clock as one of the kernel's. Conditions may count since the start.
static struct timespec of_kernel(const struct timespec* deadline) {
  return deadline->tv_sec < least_time_of_day_s ? *deadline : added(*deadline, -ahead_s(*deadline));
}

static void wait_longer(void) {
  struct timespec left = added((struct timespec){0, 0}, delay_s);
  while (nanosleep(&left, &left) != 0) {
  }
}

SHOWN int clock_gettime(clockid_t which, struct timespec* time) {
  if (real_clock == NULL)
    real_clock = REAL(clock_gettime);
  const int status = real_clock(which, time);
  if (status == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    *time = added(*time, ahead_s(*time));
  return status;
}

SHOWN int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0)
    return -1;
  *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

SHOWN time_t time(time_t* kept) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (kept != NULL)
    *kept = now.tv_sec;
  return now.tv_sec;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t* restrict condition,
                                 pthread_mutex_t* restrict mutex,
                                 const struct timespec* restrict deadline) {
  // x86-64 has an older version of this symbol, which dlsym may find.
  __typeof__(&pthread_cond_timedwait) next =
      (__typeof__(next))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (next == NULL)
    next = REAL(pthread_cond_timedwait);
  const struct timespec until = of_kernel(deadline);
  return next(condition, mutex, &until);
}

SHOWN int sem_timedwait(sem_t* restrict semaphore, const struct timespec* restrict deadline) {
  const struct timespec until = of_kernel(deadline);
  return REAL(sem_timedwait)(semaphore, &until);
}

SHOWN int mkdir(const char* path, mode_t mode) {
  wait_longer();
  return REAL(mkdir)(path, mode);
}

SHOWN int mkdirat(int folder, const char* path, mode_t mode) {
  wait_longer();
  return REAL(mkdirat)(folder, path, mode);
}

SHOWN int rename(const char* from, const char* to) {
  wait_longer();
  return REAL(rename)(from, to);
}

SHOWN int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  wait_longer();
  return REAL(renameat)(from_folder, from, to_folder, to);
}

SHOWN int fsync(int descriptor) {
  wait_longer();
  return REAL(fsync)(descriptor);
}
