/* A minimal profiler to preload: reads the timer before and after each MPI call that
 * mpi_profiler_calls.c times, and adds up the differences and the number of calls. No profiler of
 * these calls can cost less: a processor overlaps the readings with the call, so two readings in a
 * loop of their own do not tell what they cost around a call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef uintptr_t word;     /* any argument of these functions */
typedef word (*function)(); /* with as many as it has */

enum { MOST = 16 };
static uint64_t ticks[MOST], calls[MOST];
static function next[MOST];

static uint64_t now(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t time;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(time));
  return time;
#endif
}

static function look_up(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  function found;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

#define TIMED(number, name, parameters, arguments)                                                 \
  word name parameters {                                                                           \
    const uint64_t begin = now();                                                                  \
    const word returned = next[number] arguments;                                                  \
    ticks[number] += now() - begin;                                                                \
    calls[number]++;                                                                               \
    return returned;                                                                               \
  }                                                                                                \
  __attribute__((constructor)) static void find_##name(void) {                                     \
    next[number] = look_up(#name);                                                                 \
  }

TIMED(0, MPI_Send, (word a, word b, word c, word d, word e, word f), (a, b, c, d, e, f))
TIMED(1, MPI_Recv, (word a, word b, word c, word d, word e, word f, word g), (a, b, c, d, e, f, g))
TIMED(2, MPI_Allreduce, (word a, word b, word c, word d, word e, word f), (a, b, c, d, e, f))
TIMED(3, MPI_Barrier, (word a), (a))
TIMED(4, MPI_Bcast, (word a, word b, word c, word d, word e), (a, b, c, d, e))
TIMED(5, MPI_Comm_rank, (word a, word b), (a, b))
TIMED(6, MPI_Sendrecv,
      (word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k,
       word l),
      (a, b, c, d, e, f, g, h, i, j, k, l))
TIMED(7, MPI_Isend, (word a, word b, word c, word d, word e, word f, word g), (a, b, c, d, e, f, g))
TIMED(8, MPI_Irecv, (word a, word b, word c, word d, word e, word f, word g), (a, b, c, d, e, f, g))
TIMED(9, MPI_Waitall, (word a, word b, word c), (a, b, c))
