#include "process.h"

#include "area.h"
#include "clock.h"
#include "collector_start.h"
#include "family.h"
#include "io.h"
#include "modules.h"
#include "node_folder.h"
#include "pid_namespace.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct seatrial_process seatrial_process;

static uint64_t loaded_at;
static int64_t loaded_at_raw_ns;
static int64_t loaded_at_ns;
static struct seatrial_io io_loaded;
static int io_error;

/* A child that goes on without exec must not count into the file of its parent. */
static void leave_to_parent(void) {
  seatrial_process.header = NULL;
  seatrial_leave_trace();
  seatrial_leave_area();
}

__attribute__((constructor)) static void begin_clock(void) {
  if (seatrial_is_wanted())
    seatrial_choose_clock();
  loaded_at = seatrial_ticks();
  loaded_at_raw_ns = seatrial_ns(CLOCK_MONOTONIC_RAW);
  loaded_at_ns = seatrial_ns(CLOCK_REALTIME);
  if (!seatrial_is_wanted())
    return;
  pthread_atfork(NULL, NULL, leave_to_parent);
  if (seatrial_is_io_wanted())
    io_error = seatrial_read_own_io(&io_loaded);
}

bool seatrial_is_wanted(void) {
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  return folder != NULL && folder[0] != '\0';
}

bool seatrial_is_io_wanted(void) {
  const char* period = getenv("SEATRIAL_PROFILE_IO");
  return period != NULL && period[0] != '\0';
}

void seatrial_sample_io(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header != NULL && header->io_first.at_ns != 0)
    header->io_error = seatrial_read_own_io(&header->io_last);
}

static double ticks_per_s(void) {
  if (seatrial_asks_system)
    return 1e9;
  const int64_t ns = seatrial_ns(CLOCK_MONOTONIC_RAW) - loaded_at_raw_ns;
  return (double)(seatrial_ticks() - loaded_at) * 1e9 / (double)(ns > 0 ? ns : 1);
}

void seatrial_measure_clock(void) {
  seatrial_process.header->ticks_per_s = ticks_per_s();
}

/* HOST-PID.mpi; a number follows where an earlier program of this process left one, here or (where
 * `other` is not NULL) there. */
static int create_in(const char* folder, const char* other, const char* host) {
  struct seatrial_process* process = &seatrial_process;
  for (int attempt = 0; attempt < 1000; attempt++) {
    char number[16] = "";
    if (attempt > 0)
      snprintf(number, sizeof number, "-%d", attempt);
    char name[320];
    snprintf(name, sizeof name, "%s-%d%s.mpi", host, (int)getpid(), number);
    if (!seatrial_join(process->path, folder, name))
      return -1;
    process->final_path[0] = '\0';
    if (other != NULL && !seatrial_join(process->final_path, other, name))
      return -1;
    if (other != NULL && access(process->final_path, F_OK) == 0)
      continue;
    const int file = open(process->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0 || errno != EEXIST)
      return file;
  }
  return -1;
}

bool seatrial_join(char* path, const char* folder, const char* name) {
  const int length = snprintf(path, SEATRIAL_PATH_BYTES, "%s/%s", folder, name);
  const bool fits = length >= 0 && length < SEATRIAL_PATH_BYTES;
  if (!fits)
    errno = ENAMETOOLONG;
  return fits;
}

static uint64_t whole_pages(uint64_t bytes) {
  return (bytes + SEATRIAL_PAGE - 1) / SEATRIAL_PAGE * SEATRIAL_PAGE;
}

/* Programs that run at the same time are told apart by it. Hydra names no job, but its proxy is the
 * parent of all ranks of a job on a node. */
static void tell_job(struct seatrial_header* header) {
  const char* space = getenv("PMIX_NAMESPACE");
  const char* job = getenv("SLURM_JOB_ID");
  const char* step = getenv("SLURM_STEP_ID");
  if (space != NULL)
    snprintf(header->job, sizeof header->job, "pmix %s", space);
  else if (job != NULL && step != NULL && getenv("PMI_RANK") == NULL)
    snprintf(header->job, sizeof header->job, "slurm %s.%s", job, step);
  else
    snprintf(header->job, sizeof header->job, "parent %d", (int)getppid());
}

static void describe(struct seatrial_header* header, const char* host, const char* version) {
  snprintf(header->host, sizeof header->host, "%s", host);
  const ssize_t length = readlink("/proc/self/exe", header->program, sizeof header->program - 1);
  header->program[length > 0 ? length : 0] = '\0';
  snprintf(header->library, sizeof header->library, "%s", version);
  header->library[strcspn(header->library, "\n")] = '\0';
  tell_job(header);
}

/* Says why once: the program goes on without being recorded. */
static void complain(const char* folder, int reason) {
  fprintf(stderr, "seatrial: nothing is recorded of process %d: %s: %s\n", (int)getpid(), folder,
          strerror(reason));
}

/* Nothing is lost by it, so that one rank says it for all. */
static void complain_of_node(int world_rank, const char* node, const char* folder, int reason) {
  if (world_rank <= 0)
    fprintf(stderr, "seatrial: %s cannot be used: %s; the profile is written to %s at once\n", node,
            strerror(reason), folder);
}

bool seatrial_may_be_so_large(uint64_t bytes) {
  struct rlimit limit;
  const bool may = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
                   bytes <= limit.rlim_cur;
  if (!may)
    errno = EFBIG;
  return may;
}

struct extent {
  uint64_t thread_offset, thread_bytes, bytes;
};

static struct extent extent_of(int world_size) {
  struct extent extent;
  extent.thread_offset = whole_pages(sizeof(struct seatrial_header)) + SEATRIAL_MODULE_BYTES;
  extent.thread_bytes = whole_pages(sizeof(struct seatrial_thread) +
                                    ((uint64_t)world_size + 1) * sizeof(struct seatrial_peer));
  extent.bytes = extent.thread_offset + SEATRIAL_MOST_THREADS * extent.thread_bytes;
  return extent;
}

/* A new table in that folder, with room for the first thread; NULL with errno set. */
static void* map_in(const char* folder, const char* other, const char* host,
                    const struct extent* extent) {
  const int file = seatrial_may_be_so_large(extent->bytes) ? create_in(folder, other, host) : -1;
  if (file < 0)
    return NULL;
  void* mapped = MAP_FAILED;
  if (ftruncate(file, (off_t)extent->bytes) == 0 &&
      seatrial_reserve(0, extent->thread_offset + extent->thread_bytes))
    mapped = mmap(NULL, extent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  close(file);
  if (mapped != MAP_FAILED)
    return mapped;
  unlink(seatrial_process.path);
  errno = reason;
  return NULL;
}

/* The table in the node's own folder where one is named and can be used, else where it belongs.
 * Under whole paths, since the program may change its working folder. */
static void* map_somewhere(int world_rank, const char* host, const struct extent* extent) {
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  const char* node = getenv("SEATRIAL_PROFILE_NODE_DIR");
  char* whole = realpath(folder, NULL);
  void* mapped = NULL;
  int reason = whole == NULL ? errno : 0;
  if (whole != NULL && node != NULL && node[0] == '/') {
    reason = seatrial_make_node_folder(node);
    if (reason == 0 && (mapped = map_in(node, whole, host, extent)) == NULL)
      reason = errno;
    if (mapped == NULL)
      complain_of_node(world_rank, node, whole, reason);
  }
  if (whole != NULL && mapped == NULL && (mapped = map_in(whole, NULL, host, extent)) == NULL)
    reason = errno;
  if (mapped == NULL)
    complain(folder, reason);
  free(whole);
  return mapped;
}

void seatrial_open_file(int world_rank, int world_size, const char* version) {
  if (seatrial_process.header != NULL || world_size < 0)
    return;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const struct extent extent = extent_of(world_size);
  struct seatrial_header* header = map_somewhere(world_rank, host, &extent);
  if (header == NULL)
    return;
  header->version = SEATRIAL_VERSION;
  header->state = SEATRIAL_LOADED;
  header->family = seatrial_mpi.family;
  header->world_rank = world_rank;
  header->world_size = world_size;
  header->pid = (int32_t)getpid();
  header->most_threads = SEATRIAL_MOST_THREADS;
  header->thread_bytes = extent.thread_bytes;
  header->thread_offset = extent.thread_offset;
  header->ticks_per_s = ticks_per_s();
  header->loaded_at = loaded_at;
  header->loaded_at_ns = loaded_at_ns;
  header->own_ticks = seatrial_own_ticks();
  header->io_loaded = io_loaded;
  header->io_error = io_error;
  if (io_loaded.at_ns != 0)
    header->io_error = seatrial_read_own_io(&header->io_first);
  header->pid_namespace = seatrial_pid_namespace();
  describe(header, host, version);
  seatrial_write_modules((char*)header + extent.thread_offset - SEATRIAL_MODULE_BYTES);
  seatrial_process.world_rank = world_rank;
  seatrial_process.world_size = world_size;
  __atomic_store_n(&header->magic, SEATRIAL_MAGIC, __ATOMIC_RELEASE); /* last: now it is whole */
  seatrial_process.header = header;
  if (seatrial_process.final_path[0] != '\0')
    seatrial_start_collector(host);
}

/* By its name, since a program may close descriptors that it did not open. */
bool seatrial_reserve(uint64_t offset, uint64_t bytes) {
  const int file = open(seatrial_process.path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return false;
  const int reason = posix_fallocate(file, (off_t)offset, (off_t)bytes);
  close(file);
  errno = reason;
  return reason == 0 || reason == EOPNOTSUPP || reason == EINVAL;
}
