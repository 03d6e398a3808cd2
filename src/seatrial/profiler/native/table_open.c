#include "table_open.h"

#include "area.h"
#include "collector_start.h"
#include "family.h"
#include "modules.h"
#include "node_folder.h"
#include "pid_namespace.h"
#include "place.h"
#include "process.h"
#include "script.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A child that continues without exec must not count into its parent's file. */
static void detach_from_parent(void) {
  seatrial_process.header = NULL;
  seatrial_stop_trace();
  seatrial_release_area();
}

__attribute__((constructor)) static void watch_forks(void) {
  if (seatrial_is_enabled())
    pthread_atfork(NULL, NULL, detach_from_parent);
}

/* HOST-PID.mpi; a number is appended if an earlier program of this process left such a file in
 * `folder`, or in `other` if that is not NULL. */
static int create_in_folder(const char* folder, const char* other, const char* host) {
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

_Static_assert(sizeof(struct seatrial_header) <= SEATRIAL_PAGE, "the collector maps one page");

static uint64_t whole_pages(uint64_t bytes) {
  return (bytes + SEATRIAL_PAGE - 1) / SEATRIAL_PAGE * SEATRIAL_PAGE;
}

/* Distinguishes programs that run at the same time. Hydra sets no job name, but its proxy is the
 * parent of all ranks of a job on a node. */
static void record_job(struct seatrial_header* header) {
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
  seatrial_find_script(header->program, header->script, sizeof header->script);
  snprintf(header->library, sizeof header->library, "%s", version);
  header->library[strcspn(header->library, "\n")] = '\0';
  record_job(header);
}

/* Prints the reason once: the program continues without being recorded. */
static void warn(const char* folder, int reason) {
  fprintf(stderr, "seatrial: process %d is not recorded: %s: %s\n", (int)getpid(), folder,
          strerror(reason));
}

/* No data is lost, so one rank reports it for all. */
static void warn_of_node(int world_rank, const char* node, const char* folder, int reason) {
  if (world_rank <= 0)
    fprintf(stderr, "seatrial: cannot use %s: %s; writing the profile directly to %s\n", node,
            strerror(reason), folder);
}

struct extent {
  uint64_t extension_offset, places_offset, thread_offset, thread_bytes, bytes;
  uint32_t rows;
};

/* A power of two from SEATRIAL_SLOTS on. */
static uint32_t wanted_rows(void) {
  const char* text = getenv("SEATRIAL_PROFILE_ROWS");
  const long wanted = text == NULL ? 0 : strtol(text, NULL, 10);
  uint32_t rows = SEATRIAL_SLOTS;
  while (rows < SEATRIAL_MOST_SLOTS && (long)rows < wanted)
    rows *= 2;
  return rows;
}

static struct extent extent_of(int world_size) {
  struct extent extent;
  extent.rows = wanted_rows();
  extent.extension_offset = whole_pages(sizeof(struct seatrial_header)) + SEATRIAL_MODULE_BYTES;
  extent.places_offset = extent.extension_offset + SEATRIAL_EXTENSION_BYTES;
  extent.thread_offset = extent.places_offset + seatrial_wanted_places();
  extent.thread_bytes = whole_pages(sizeof(struct seatrial_thread) +
                                    (uint64_t)extent.rows * sizeof(struct seatrial_slot) +
                                    ((uint64_t)world_size + 1) * sizeof(struct seatrial_peer));
  extent.bytes = extent.thread_offset + SEATRIAL_MOST_THREADS * extent.thread_bytes;
  return extent;
}

/* Creates a table in a folder, with space for the first thread; NULL with errno set. */
static void* map_in_folder(const char* folder, const char* other, const char* host,
                           const struct extent* extent) {
  const int file =
      seatrial_is_within_file_limit(extent->bytes) ? create_in_folder(folder, other, host) : -1;
  if (file < 0)
    return NULL;
  void* mapped = MAP_FAILED;
  if (ftruncate(file, (off_t)extent->bytes) == 0 && seatrial_reserve(0, extent->places_offset) &&
      seatrial_reserve(extent->thread_offset, extent->thread_bytes))
    mapped = mmap(NULL, extent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  close(file);
  if (mapped != MAP_FAILED)
    return mapped;
  unlink(seatrial_process.path);
  errno = reason;
  return NULL;
}

/* Creates the table in the node's folder if one is named and usable, else in the final folder.
 * Paths are absolute, since the program may change its working folder. */
static void* map_table(int world_rank, const char* host, const struct extent* extent) {
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  const char* node = getenv("SEATRIAL_PROFILE_NODE_DIR");
  char* whole = realpath(folder, NULL);
  void* mapped = NULL;
  int reason = whole == NULL ? errno : 0;
  if (whole != NULL && node != NULL && node[0] == '/') {
    reason = seatrial_make_node_folder(node);
    if (reason == 0 && (mapped = map_in_folder(node, whole, host, extent)) == NULL)
      reason = errno;
    if (mapped == NULL)
      warn_of_node(world_rank, node, whole, reason);
  }
  if (whole != NULL && mapped == NULL &&
      (mapped = map_in_folder(whole, NULL, host, extent)) == NULL)
    reason = errno;
  if (mapped == NULL)
    warn(folder, reason);
  free(whole);
  return mapped;
}

void seatrial_open_file(int world_rank, int world_size, const char* version) {
  if (seatrial_process.header != NULL || world_size < 0)
    return;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const struct extent extent = extent_of(world_size);
  struct seatrial_header* header = map_table(world_rank, host, &extent);
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
  header->extension_offset = extent.extension_offset;
  header->rows = extent.rows;
  header->places_bytes = extent.thread_offset - extent.places_offset;
  header->path_frames = seatrial_wanted_frames();
  header->ticks_per_s = seatrial_ticks_per_s();
  header->loaded_at = seatrial_loaded.at;
  header->loaded_at_ns = seatrial_loaded.at_ns;
  header->own_ticks = seatrial_own_ticks();
  header->reading_ticks = seatrial_reading_ticks();
  seatrial_read_cpu_use(&header->cpu_first);
  seatrial_read_cpu_right(&header->cpu_right); /* of a process that is killed, too */
  header->io_loaded = seatrial_loaded.io;
  header->io_error = seatrial_loaded.io_error;
  if (seatrial_loaded.io.at_ns != 0)
    header->io_error = seatrial_read_own_io(&header->io_first);
  header->pid_namespace = seatrial_pid_namespace();
  describe(header, host, version);
  seatrial_write_modules((char*)header + SEATRIAL_PAGE);
  seatrial_process.world_rank = world_rank;
  seatrial_process.world_size = world_size;
  __atomic_store_n(&header->magic, SEATRIAL_MAGIC,
                   __ATOMIC_RELEASE); /* last: marks the header as complete */
  seatrial_process.header = header;
  header->own_ticks += seatrial_begin_places();
  if (seatrial_process.final_path[0] != '\0')
    seatrial_start_collector(host);
}
