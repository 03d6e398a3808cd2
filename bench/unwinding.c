/* Call paths by the MPI profiler's reader of .eh_frame (profiler/native/unwind.h) and by libgcc's
 * _Unwind_Backtrace, of the same frames.
 *
 *   unwinding BATCHES CALLS PATHS
 *
 * Prints "depth FRAMES OURS_NS LIBGCC_NS" for recursions, the 10th percentile over batches of
 * calls, and "paths PATHS DIFFERENT LONGEST": random paths through functions with fixed and
 * variable frames and through a callback of the C library, and how many of them the two read
 * differently. */
#include "native/look_up.h"
#include "native/unwind.h"

#include <alloca.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

enum { MOST = 32, LONGEST_BATCHES = 1000 };

/* The reader's only need of the rest of the profiler. */
seatrial_function seatrial_look_up(const char* name) {
  return (seatrial_function)dlsym(RTLD_DEFAULT, name);
}

struct path {
  uint64_t addresses[MOST];
  unsigned count, most;
  uint64_t site; /* libgcc: frames inside of it are skipped */
};

static _Unwind_Reason_Code add(struct _Unwind_Context* context, void* data) {
  struct path* path = data;
  const uint64_t pc = _Unwind_GetIP(context);
  if (path->count == 0 && pc != path->site)
    return _URC_NO_REASON;
  if (path->count == path->most || pc == 0)
    return _URC_END_OF_STACK;
  path->addresses[path->count++] = pc;
  return _URC_NO_REASON;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

static double tenth(double* times, int count) {
  qsort(times, (size_t)count, sizeof *times, by_value);
  return times[count / 10];
}

static int batches, calls;

/* Times both in turn, with `most` frames each. */
static __attribute__((noinline)) void time_both(unsigned most) {
  static double ours[LONGEST_BATCHES], theirs[LONGEST_BATCHES];
  struct path path = {.most = most, .site = (uint64_t)__builtin_return_address(0)};
  for (int batch = 0; batch < batches; batch++) {
    double begin = now_ns();
    for (int i = 0; i < calls; i++)
      path.count = seatrial_call_path(path.site, path.addresses, most);
    ours[batch] = (now_ns() - begin) / calls;
    begin = now_ns();
    for (int i = 0; i < calls; i++) {
      path.count = 0;
      _Unwind_Backtrace(add, &path);
    }
    theirs[batch] = (now_ns() - begin) / calls;
  }
  printf("depth %u %.1f %.1f\n", most, tenth(ours, batches), tenth(theirs, batches));
}

static __attribute__((noinline)) void descend(unsigned left, unsigned most) {
  if (left == 0)
    time_both(most);
  else
    descend(left - 1, most);
  __asm__ volatile("" ::: "memory"); /* no tail call */
}

static unsigned different, longest;

static __attribute__((noinline)) void compare(void) {
  struct path ours = {.most = MOST, .site = (uint64_t)__builtin_return_address(0)}, theirs = ours;
  ours.count = seatrial_call_path(ours.site, ours.addresses, MOST);
  _Unwind_Backtrace(add, &theirs);
  longest = theirs.count > longest ? theirs.count : longest;
  different += ours.count != theirs.count ||
               memcmp(ours.addresses, theirs.addresses, ours.count * sizeof *ours.addresses) != 0;
}

static uint64_t choices;
static void step(void);

static __attribute__((noinline)) void fixed_frame(void) {
  volatile char kept[200];
  kept[choices % sizeof kept] = 1;
  step();
  kept[choices % sizeof kept] = 2;
}

static __attribute__((noinline)) void variable_frame(void) {
  volatile char* kept = alloca(16 + choices % 300);
  kept[0] = 1;
  step();
  kept[0] = 2;
}

static __attribute__((noinline)) double many_registers(double a, double b, long c, long d, long e,
                                                       long f, long g, long h) {
  step();
  return a * b + (double)(c * d + e * f + g * h);
}

static volatile double sum;
static int once;
static int called_back(const void* a, const void* b) {
  (void)a;
  (void)b;
  if (once != 0) {
    once = 0;
    step();
  }
  return 0;
}

static __attribute__((noinline)) void step(void) {
  const unsigned choice = (unsigned)(choices & 7);
  int two[2] = {1, 2};
  choices >>= 3;
  if (choice == 0)
    compare();
  else if (choice <= 2)
    fixed_frame();
  else if (choice <= 4)
    variable_frame();
  else if (choice <= 6)
    sum += many_registers(1, 2, 3, 4, 5, 6, 7, (long)choices);
  else {
    once = 1;
    qsort(two, 2, sizeof *two, called_back);
  }
  __asm__ volatile("" ::: "memory");
}

int main(int argc, char** argv) {
  batches = argc > 1 ? atoi(argv[1]) : 100;
  calls = argc > 2 ? atoi(argv[2]) : 200;
  const int paths = argc > 3 ? atoi(argv[3]) : 10000;
  if (batches < 1 || batches > LONGEST_BATCHES || calls < 1)
    return 2;
  for (unsigned most = 2; most <= MOST; most *= 2)
    descend(MOST, most);
  uint64_t state = 1;
  for (int i = 0; i < paths; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    choices = state >> 4;
    step();
  }
  printf("paths %d %u %u\n", paths, different, longest);
  return sum < 0;
}
