/* What the MPI profiler leaves of each process: one file, mapped shared, so that every call that
 * returned is counted whatever ends the process. Little endian; the reader is seatrial's
 * profiler/tables/process_table.py, which checks magic and version.
 *
 *   header                     one page
 *   modules                    MODULE_BYTES: "begin end offset path\n" of mapped code, as text
 *   thread areas               most_threads of them, each a header, slots, and a row of peers
 *
 * A thread area has one writer, the thread that took it (areas of threads that ended are taken over
 * by later ones: counts only ever grow). The file is sparse: what no thread took costs nothing. A
 * reader may look at any time; a row is valid once its `call` is not 0, which is written last.
 */
#ifndef SEATRIAL_TABLE_FILE_H
#define SEATRIAL_TABLE_FILE_H

#include <stdint.h>

#define SEATRIAL_MAGIC 0x464f525041534553ull /* "SESAPROF" */
enum {
  SEATRIAL_VERSION = 1,
  SEATRIAL_PAGE = 4096,
  SEATRIAL_MODULE_BYTES = 64 * 1024,
  SEATRIAL_SLOTS = 4096,       /* of a thread; a power of two */
  SEATRIAL_EXACT_SIZES = 1024, /* bytes: sizes up to here have a bin of their own */
  SEATRIAL_BINS_OVER_TIME = 512
};

enum seatrial_family { /* whose constants are in force */
                       SEATRIAL_UNKNOWN = 0,
                       SEATRIAL_MPICH = 1,
                       SEATRIAL_OPENMPI = 2,
                       SEATRIAL_STANDARD_ABI = 3
};

enum seatrial_state {
  SEATRIAL_LOADED = 0, /* MPI was not begun */
  SEATRIAL_INITIALIZED = 1,
  SEATRIAL_FINALIZED = 2,
  SEATRIAL_ABORTED = 3 /* by MPI_Abort of this process */
};

/* What /proc/PID/io says of a process, in its order (proc_pid_io(5)): rchar, wchar, syscr, syscw,
 * read_bytes, write_bytes, cancelled_write_bytes. */
enum { SEATRIAL_IO_COUNTERS = 7 };

struct seatrial_io {
  int64_t at_ns; /* CLOCK_REALTIME; 0: not taken */
  uint64_t counters[SEATRIAL_IO_COUNTERS];
};

/* Times are in ticks of the clock that `ticks_per_s` tells the rate of. */
struct seatrial_header {
  uint64_t magic;
  uint32_t version;
  uint32_t state;
  uint32_t family;
  int32_t world_rank; /* -1 before MPI was begun */
  int32_t world_size;
  int32_t pid;
  uint32_t most_threads;
  uint32_t threads; /* areas that were taken */
  uint64_t thread_bytes;
  uint64_t thread_offset; /* of the first area */
  double ticks_per_s;
  uint64_t loaded_at;      /* ticks */
  uint64_t initialized_at; /* when MPI_Init returned, 0 before */
  uint64_t finalized_at;   /* when MPI_Finalize was called, 0 before */
  uint64_t last_call_at;
  int64_t loaded_at_ns; /* CLOCK_REALTIME */
  double own_ticks;     /* what the profiler takes for one call, measured when it began */
  uint64_t lost_calls;  /* of threads beyond most_threads */
  uint64_t untold;      /* messages received whose length the library did not tell */
  char host[256];
  char program[1024];
  char library[256];            /* first line of MPI_Get_library_version */
  struct seatrial_io io_loaded; /* when the process was loaded */
  struct seatrial_io io_first;  /* when MPI was begun */
  struct seatrial_io io_last;   /* when MPI ended */
  int32_t io_error;             /* errno where /proc/self/io could not be read */
  uint32_t is_collected;  /* a collector copies this table now and then: its is the last word */
  uint64_t pid_namespace; /* its inode: where `pid` means something; 0 not known */
  char job[128]; /* what started its ranks, by the variables of PMIx or Slurm, else its parent */
};

enum seatrial_part {
  SEATRIAL_WHOLE = 0,
  SEATRIAL_WAITED = 1,     /* until all ranks had come, in calls that had a barrier before them */
  SEATRIAL_TRANSFERRED = 2 /* what these calls took then */
};

/* One kind of call: `call` is its number in the table of functions plus 1, `bin` the class of its
 * bytes, `site` the address that called (0: dropped because the table was nearly full), `comm` what
 * communicator: 0 none, 1 world, 2 self, 3 another. Fuller still, the bin is that of the greatest
 * power of two below, and at last bin and communicator are 0; `count` and `bytes` stay exact.
 * Rows of parts stand beside those of whole calls, which hold their time too, and have no site. */
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
  uint64_t unused;
};

/* Point to point with one rank of MPI_COMM_WORLD; those of ranks outside it stand at world_size. */
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
  struct seatrial_slot slots[SEATRIAL_SLOTS];
  /* then world_size + 1 struct seatrial_peer */
};

/* The bin of a number of bytes: itself up to EXACT_SIZES, then one for each eighth of a power of
 * two, whose least number of bytes `seatrial_bin_floor` tells. */
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
