/* The MPI profiler's table of one process: one file, mapped shared, so that every call that
 * returned is counted however the process ends. Little endian; read by seatrial's
 * profiler/tables/process_table.py and header.py, which check magic and version.
 *
 *   header                     one page
 *   modules                    MODULE_BYTES: "begin end offset path\n" of mapped code, as text
 *   extension                  what is recorded beside MPI calls (extension.h)
 *   places                     places_bytes: struct seatrial_place, one after another; may be none
 *   thread areas               most_threads of them, each a header, slots, and a row of peers
 *
 * A thread area has one writer, the thread that took it (later threads take over areas of
 * threads that ended: counts only ever grow). The file is sparse: unused areas take no space. It
 * may be read at any time; a row is valid once its `call`, which is written last, is not 0. */
#ifndef SEATRIAL_TABLE_FILE_H
#define SEATRIAL_TABLE_FILE_H

#include <stdint.h>

#define SEATRIAL_MAGIC 0x464f525041534553ull /* "SESAPROF" */
enum {
  SEATRIAL_VERSION = 4, /* 3: a shorter extension; 2: without what follows cpu_right */
  SEATRIAL_PAGE = 4096,
  SEATRIAL_MODULE_BYTES = 64 * 1024,
  SEATRIAL_SLOTS = 4096, /* per thread, if no other number is requested; a power of two */
  SEATRIAL_MOST_SLOTS = 1 << 18,
  SEATRIAL_EXACT_SIZES = 1024, /* bytes: each size up to this has its own bin */
  SEATRIAL_BINS_OVER_TIME = 512
};

enum seatrial_family { /* MPI library family */
                       SEATRIAL_UNKNOWN = 0,
                       SEATRIAL_MPICH = 1,
                       SEATRIAL_OPENMPI = 2,
                       SEATRIAL_STANDARD_ABI = 3
};

enum seatrial_state {
  SEATRIAL_LOADED = 0, /* MPI was not initialised */
  SEATRIAL_INITIALIZED = 1,
  SEATRIAL_FINALIZED = 2,
  SEATRIAL_ABORTED = 3 /* this process called MPI_Abort */
};

/* The counters of /proc/PID/io, in its order (proc_pid_io(5)): rchar, wchar, syscr, syscw,
 * read_bytes, write_bytes, cancelled_write_bytes. */
enum { SEATRIAL_IO_COUNTERS = 7 };

struct seatrial_io {
  int64_t at_ns; /* CLOCK_REALTIME; 0: not taken */
  uint64_t counters[SEATRIAL_IO_COUNTERS];
};

#define SEATRIAL_UNREPORTED (~(uint64_t)0) /* a number that the kernel did not report */

/* A process's CPU time so far, and what else its node did. */
struct seatrial_cpu_use {
  int64_t at_ns;         /* CLOCK_MONOTONIC_RAW; 0: not taken */
  uint64_t cpu_ns;       /* of all threads, user and system */
  uint64_t run_delay_ns; /* ready to run, but not running: all threads that are alive */
  uint64_t voluntary;    /* context switches */
  uint64_t involuntary;
  uint64_t minor_faults;
  uint64_t major_faults;
  uint64_t most_resident_bytes;
  uint64_t throttled_ns; /* of the control group with the smallest CPU quota */
  uint64_t throttled_periods;
  uint64_t periods;
  uint64_t node_busy_ns; /* of all CPUs of the node, by all processes */
  uint64_t node_steal_ns;
};

/* The CPUs that a process may use. */
enum { SEATRIAL_MOST_CPUS = 4096 };
struct seatrial_cpu_right {
  uint64_t online;                        /* CPUs of the node */
  double quota;                           /* CPUs, of the control groups; 0: none */
  uint64_t mask[SEATRIAL_MOST_CPUS / 64]; /* affinity: bit n % 64 of word n / 64 is CPU n */
};

/* Calls outside MPI that enter the kernel (system_time.h). */
enum seatrial_system_kind {
  SEATRIAL_SYSTEM_READ = 0,
  SEATRIAL_SYSTEM_WRITE = 1,
  SEATRIAL_SYSTEM_SYNC = 2, /* fsync and the like */
  SEATRIAL_SYSTEM_OPEN = 3,
  SEATRIAL_SYSTEM_CLOSE = 4,
  SEATRIAL_SYSTEM_METADATA = 5, /* stat, unlink, mkdir, ... */
  SEATRIAL_SYSTEM_SLEEP = 6,
  SEATRIAL_SYSTEM_POLL = 7,   /* sockets, and waiting for them or for pipes */
  SEATRIAL_SYSTEM_CHILD = 8,  /* starting child processes and waiting for them */
  SEATRIAL_SYSTEM_KINDS = 9,  /* in the header; */
  SEATRIAL_SYSTEM_LOCK = 9,   /* locks of files, and semaphores: in the extension, as are */
  SEATRIAL_SYSTEM_THREAD = 10 /* threads of the process: mutexes, conditions, joins */
};

struct seatrial_system_use {
  uint64_t calls;
  uint64_t ticks;
  uint64_t bytes;
};

/* Times are in ticks of the clock whose rate is `ticks_per_s`. */
struct seatrial_header {
  uint64_t magic;
  uint32_t version;
  uint32_t state;
  uint32_t family;
  int32_t world_rank; /* -1 before MPI was initialised */
  int32_t world_size;
  int32_t pid;
  uint32_t most_threads;
  uint32_t threads; /* areas in use */
  uint64_t thread_bytes;
  uint64_t thread_offset; /* of the first area */
  double ticks_per_s;
  uint64_t loaded_at;      /* ticks */
  uint64_t initialized_at; /* when MPI_Init returned, 0 before */
  uint64_t finalized_at;   /* when MPI_Finalize was called, 0 before */
  uint64_t last_call_at;
  int64_t loaded_at_ns; /* CLOCK_REALTIME */
  double own_ticks;     /* cost of recording one call, measured at the start */
  uint64_t lost_calls;  /* of threads beyond most_threads */
  uint64_t untold;      /* received messages whose length the library did not report */
  char host[256];
  char program[1024];
  char library[256];            /* first line of MPI_Get_library_version */
  struct seatrial_io io_loaded; /* when the process was loaded */
  struct seatrial_io io_first;  /* when MPI was initialised */
  struct seatrial_io io_last;   /* when MPI ended */
  int32_t io_error;             /* errno if /proc/self/io could not be read */
  uint32_t is_collected; /* a collector copies this table periodically: its copy is the final one */
  uint64_t pid_namespace; /* inode of the namespace of `pid`; 0: unknown */
  char job[128]; /* what started its ranks, by the variables of PMIx or Slurm, else its parent */
  struct seatrial_cpu_use cpu_first;   /* when MPI was initialised */
  struct seatrial_cpu_use cpu_last;    /* when MPI ended */
  struct seatrial_cpu_right cpu_right; /* when MPI was initialised, then when it ended */
  uint64_t times_system_calls; /* 1: the following are counted, outside MPI, from MPI_Init on */
  struct seatrial_system_use system_uses[SEATRIAL_SYSTEM_KINDS];
  uint64_t extension_offset;
  uint32_t rows;                /* slots of each thread */
  uint32_t path_frames;         /* requested length of call paths */
  uint64_t places_bytes;        /* 0: call sites are addresses only */
  uint64_t places_used;         /* bytes; grows once a place is complete */
  uint64_t lost_places;         /* calls whose place did not fit */
  char script[256];             /* that the interpreter `program` runs (script.h); "": none */
  uint64_t noncontiguous_bytes; /* passed for sending or writing, of datatypes with gaps */
  double reading_ticks;         /* cost of one reading of the clock, measured at the start */
};

/* A call site that is more than an address: the addresses of the calls that led to it, innermost
 * first, and the lines of the Python frames that did. A slot refers to it by `key`, whose highest
 * bit, which no address has, is set. */
#define SEATRIAL_PLACE_BIT (1ull << 63)
/* The bits of a call site for the number of a region (region.h). */
#define SEATRIAL_REGION_SHIFT 56
#define SEATRIAL_REGION_BITS (0x7full << SEATRIAL_REGION_SHIFT)
enum { SEATRIAL_MOST_FRAMES = 32, SEATRIAL_PYTHON_TEXT = 512 };
struct seatrial_place {
  uint64_t key;
  uint32_t bytes; /* of this record, a multiple of 8 */
  uint16_t addresses;
  uint16_t python_frames;
  /* followed by uint64_t[addresses], the first of which is the call site, then, for each Python
   * frame, "line function\0file\0" */
};

enum seatrial_part {
  SEATRIAL_WHOLE = 0,
  SEATRIAL_WAITED = 1,      /* until all ranks had arrived, in calls preceded by a barrier */
  SEATRIAL_TRANSFERRED = 2, /* the time these calls then took */
  SEATRIAL_OPERATED = 3     /* in functions that the program gave to MPI_Op_create */
};

/* One kind of call: `call` is its number in the table of functions plus 1, `bin` the class of
 * its bytes (of one message on average, if the call completed several), `site` the caller's address
 * (0: dropped because the table was nearly full) or the key of a place, `comm` the kind of
 * communicator: 0 none, 1 world, 2 self, 3 another. As the table fills further, the bin becomes
 * that of the next lower power of two, and finally bin and communicator become 0; `count` and
 * `bytes` stay exact. Partial rows are stored beside those of whole calls, whose time includes
 * theirs, and have no site. */
struct seatrial_slot {
  uint16_t call;
  uint8_t comm;
  uint8_t part; /* enum seatrial_part */
  uint32_t bin;
  uint64_t site;
  uint64_t count;
  uint64_t bytes;
  uint64_t ticks;
  uint64_t least_ticks;
  uint64_t most_ticks;
  uint64_t pause_ticks; /* before calls that ask if something is complete, since the last such call:
                           extrapolated from samples, with one reading of the clock each */
};

/* Point-to-point traffic with one rank of MPI_COMM_WORLD; ranks outside it are counted at
 * world_size. */
struct seatrial_peer {
  uint64_t sent_count;
  uint64_t sent_bytes;
  uint64_t received_count;
  uint64_t received_bytes;
};

struct seatrial_thread {
  uint32_t is_taken;
  uint32_t used;         /* slots */
  uint64_t without_site; /* calls whose site was dropped */
  uint64_t bin_ticks;    /* width of a bin over time; doubled when the bins run out */
  uint64_t over_time[SEATRIAL_BINS_OVER_TIME]; /* ticks in MPI since loaded_at, bin by bin */
  /* followed by struct seatrial_slot[rows], then world_size + 1 struct seatrial_peer */
};

/* The bin of a number of bytes: the number itself up to EXACT_SIZES, then one bin for each
 * eighth of a power of two; `seatrial_bin_floor` gives its lowest number of bytes. */
static inline uint32_t seatrial_bin(uint64_t bytes) {
  if (__builtin_expect(bytes <= SEATRIAL_EXACT_SIZES, 1))
    return (uint32_t)bytes;
  const unsigned power = 63u - (unsigned)__builtin_clzll(bytes);
  return SEATRIAL_EXACT_SIZES + 1u + (power - 10u) * 8u + (uint32_t)(bytes >> (power - 3u) & 7u);
}

static inline uint64_t seatrial_bin_floor(uint32_t bin) {
  if (bin <= SEATRIAL_EXACT_SIZES)
    return bin;
  const uint32_t step = bin - SEATRIAL_EXACT_SIZES - 1u;
  return (uint64_t)(8u + step % 8u) << (step / 8u + 10u - 3u);
}

#endif
