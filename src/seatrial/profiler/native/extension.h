/* What a process records beside its MPI calls: hardware counters, regions that the program names,
 * OpenMP, CPU time over time, where it executes. A part of the table of its own (table_file.h),
 * between the module map and the areas of the threads. */
#ifndef SEATRIAL_EXTENSION_H
#define SEATRIAL_EXTENSION_H

#include "../../native/code_samples.h"
#include "table_file.h"

#include <stdint.h>

enum { SEATRIAL_REQUESTED_COUNTERS = 1, SEATRIAL_REQUESTED_OPENMP = 2 };

enum {
  SEATRIAL_MOST_COUNTERS = 16,
  SEATRIAL_MOST_REGIONS = 64,
  SEATRIAL_REGION_NAME_BYTES = 64,
  SEATRIAL_REGION_DEPTH = 16,
  SEATRIAL_MOST_PARALLEL = 64,
  SEATRIAL_MOST_CPU_SAMPLES = 64,
  SEATRIAL_MOST_OPERATIONS = 11,
  SEATRIAL_EXTENSION_BYTES = 6 * 4096, /* version 3: 4 pages, without `code` */
};

/* What a hardware counter counts, in user mode. Operations are floating-point operations; the first
 * five count instructions by the operations that each makes, the last the operations themselves. */
enum seatrial_counter_kind {
  SEATRIAL_NO_COUNTER = 0,
  SEATRIAL_CYCLES = 1,
  SEATRIAL_INSTRUCTIONS = 2,
  SEATRIAL_CACHE_MISSES = 3, /* of the last level that the processor's generic event counts */
  SEATRIAL_LINES_FROM_MEMORY = 4,
  SEATRIAL_FP_1 = 5, /* instructions that make one operation */
  SEATRIAL_FP_2 = 6,
  SEATRIAL_FP_4 = 7,
  SEATRIAL_FP_8 = 8,
  SEATRIAL_FP_16 = 9,
  SEATRIAL_FP_ALL = 10 /* operations, of all widths */
};

/* Growth from MPI_Init to the end of MPI, of all threads. It counted for `running_ns` of
 * `enabled_ns`: more events than counters take turns. */
struct seatrial_counter {
  uint32_t kind;
  int32_t error; /* errno, if it could not be opened or read; then the numbers are 0 */
  uint64_t value;
  uint64_t enabled_ns;
  uint64_t running_ns;
};

/* A region within its enclosing one. Times are sums over the threads that call; `ticks` excludes
 * the time during which recording was stopped. A region that was begun and not ended counts until
 * MPI ends. */
struct seatrial_region {
  uint32_t is_there; /* written last */
  uint32_t parent;   /* number of the enclosing region; 0: none. The first region is number 1 */
  char name[SEATRIAL_REGION_NAME_BYTES];
  uint64_t begun;
  uint64_t ended;
  uint64_t ticks;
  uint64_t mpi_ticks; /* of these in MPI */
  uint64_t cpu_ns;    /* of the thread that called */
};

struct seatrial_regions {
  uint64_t lost;    /* begun when the table was full, or too deep */
  uint64_t unbegun; /* ends of regions that this thread had not begun */
  uint64_t crossed; /* regions that ended because an enclosing one ended */
  uint64_t early;   /* begun or ended before MPI was initialised, or after it ended */
  uint64_t stops;   /* MPI_Pcontrol(0) */
  uint64_t stopped_ticks;
  uint64_t stopped_at; /* 0: recording */
  struct seatrial_region list[SEATRIAL_MOST_REGIONS];
};

/* Parallel regions begun at one place. `arrived` is the number of threads that reached its end:
 * `busy_ticks` sums the time until they did, `longest_ticks` the time of the last one of each. */
struct seatrial_parallel {
  uint64_t site; /* return address; written last */
  uint64_t count;
  uint64_t most_threads;
  uint64_t ticks; /* of the thread that began it */
  uint64_t arrived;
  uint64_t busy_ticks;    /* sum over threads, barriers within it included */
  uint64_t longest_ticks; /* of the last thread */
  uint64_t last_ticks;    /* the same, times the number of threads */
  uint64_t barriers;      /* within it, each thread counts */
  uint64_t barrier_ticks; /* at these, sum over threads */
};

struct seatrial_openmp {
  uint64_t runtimes;    /* OpenMP runtimes that reported to this library */
  uint64_t lost;        /* parallel regions without a row, or begun outside MPI */
  uint64_t outer_ticks; /* in parallel regions that are not nested, of the thread that began them */
  struct seatrial_parallel list[SEATRIAL_MOST_PARALLEL];
};

/* CPU time so far; as in struct seatrial_cpu_use, but without its rest. */
struct seatrial_cpu_sample {
  uint64_t at; /* ticks */
  uint64_t cpu_ns;
  uint64_t run_delay_ns;
  uint64_t node_busy_ns;
  uint64_t node_steal_ns;
};

/* Samples at the ends of MPI calls, from MPI_Init to the end of MPI. When all are used, every
 * second one is dropped and the period doubles; in a process that is killed meanwhile, some are
 * there twice. */
struct seatrial_cpu_slices {
  uint64_t period; /* ticks between samples, at least; 0: none are taken */
  uint64_t used;
  uint64_t own_ticks; /* the time that taking them took */
  struct seatrial_cpu_sample list[SEATRIAL_MOST_CPU_SAMPLES];
};

/* What the hardware counters counted in MPI calls of the thread that initialised MPI, all threads
 * meanwhile: not in each call, so that reading them takes little of the time. */
struct seatrial_counter_split {
  uint64_t ticks;         /* in MPI calls of this thread, while the counters ran */
  uint64_t counted_ticks; /* in those that were counted */
  uint64_t counted_calls;
  uint64_t own_ticks; /* the time that reading took */
  struct {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
  } in_mpi[SEATRIAL_MOST_COUNTERS];
};

/* CPU time of the loop of speed.h: all of them, and the shortest. */
struct seatrial_speed {
  uint64_t loops;
  uint64_t ns;
  uint64_t least_ns;
};

/* Calls that complete one of many requests, and the requests that they were given. */
struct seatrial_any_use {
  uint64_t calls;
  uint64_t requests;
};

/* What the header has no room for. */
struct seatrial_kernel_use {
  uint64_t system_first_ns; /* CPU time in the kernel, of all threads, when MPI was initialised */
  uint64_t system_last_ns;  /* and when MPI ended; 0: not taken */
  struct seatrial_system_use locks;   /* outside MPI: waiting for locks of files, and semaphores */
  struct seatrial_system_use threads; /* outside MPI: waiting for threads of the process */
  uint64_t children_first_ns;         /* CPU time of processes that it started; children.h */
  uint64_t children_last_ns;
  struct seatrial_speed speed;
  struct seatrial_any_use any;
};

/* A function of the program that was given to MPI_Op_create, in MPI calls. Its time includes that
 * of others that it applies itself. */
struct seatrial_operation {
  uint64_t function; /* its address */
  uint64_t made;     /* operations with it */
  uint64_t calls;
  uint64_t ticks;
};

/* The last row, without an address, holds the functions that found no row, together. */
struct seatrial_operations {
  uint64_t untimed; /* operations whose function is called directly */
  struct seatrial_operation list[SEATRIAL_MOST_OPERATIONS];
};

struct seatrial_extension {
  uint32_t requested;
  int32_t paranoid;  /* kernel.perf_event_paranoid; INT32_MIN: unknown */
  uint64_t has_unit; /* the kernel knows a unit with hardware counters; only if requested */
  struct seatrial_counter counters[SEATRIAL_MOST_COUNTERS];
  struct seatrial_regions regions;
  struct seatrial_openmp openmp;
  struct seatrial_cpu_slices slices;
  struct seatrial_counter_split split;
  struct seatrial_kernel_use kernel;
  struct seatrial_operations operations;
  struct seatrial_code_samples code;
};

_Static_assert(sizeof(struct seatrial_extension) <= SEATRIAL_EXTENSION_BYTES, "it has these pages");

#endif
