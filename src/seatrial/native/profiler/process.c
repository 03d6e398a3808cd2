#include "process.h"

#include "area.h"
#include "clock.h"
#include "family.h"
#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct seatrial_process seatrial_process;

static uint64_t loaded_at;
static int64_t loaded_at_raw_ns;
static int64_t loaded_at_ns;

/* A child that goes on without exec must not count into the file of its parent. */
static void leave_to_parent(void) {
  seatrial_process.header = NULL;
  seatrial_leave_area();
}

__attribute__((constructor)) static void begin_clock(void) {
  loaded_at = seatrial_ticks();
  loaded_at_raw_ns = seatrial_ns(CLOCK_MONOTONIC_RAW);
  loaded_at_ns = seatrial_ns(CLOCK_REALTIME);
  if (seatrial_is_wanted())
    pthread_atfork(NULL, NULL, leave_to_parent);
}

bool seatrial_is_wanted(void) {
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  return folder != NULL && folder[0] != '\0';
}

static double ticks_per_s(void) {
  const int64_t ns = seatrial_ns(CLOCK_MONOTONIC_RAW) - loaded_at_raw_ns;
  return (double)(seatrial_ticks() - loaded_at) * 1e9 / (double)(ns > 0 ? ns : 1);
}

void seatrial_measure_clock(void) {
  seatrial_process.header->ticks_per_s = ticks_per_s();
}

/* HOST-PID.mpi; a number follows where an earlier program of this process left one. */
static int create_in(const char* folder, const char* host) {
  for (int attempt = 0; attempt < 1000; attempt++) {
    char number[16] = "";
    if (attempt > 0)
      snprintf(number, sizeof number, "-%d", attempt);
    const int length = snprintf(seatrial_process.path, sizeof seatrial_process.path,
                                "%s/%s-%d%s.mpi", folder, host, (int)getpid(), number);
    if (length < 0 || (size_t)length >= sizeof seatrial_process.path) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int file = open(seatrial_process.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0 || errno != EEXIST)
      return file;
  }
  return -1;
}

/* Under its whole path, since the program may change its working folder. */
static int create(const char* folder, const char* host) {
  char* whole = realpath(folder, NULL);
  if (whole == NULL)
    return -1;
  const int file = create_in(whole, host);
  const int reason = errno;
  free(whole);
  errno = reason;
  return file;
}

static uint64_t whole_pages(uint64_t bytes) {
  return (bytes + SEATRIAL_PAGE - 1) / SEATRIAL_PAGE * SEATRIAL_PAGE;
}

static void describe(struct seatrial_header* header, const char* host, const char* version) {
  snprintf(header->host, sizeof header->host, "%s", host);
  const ssize_t length = readlink("/proc/self/exe", header->program, sizeof header->program - 1);
  header->program[length > 0 ? length : 0] = '\0';
  snprintf(header->library, sizeof header->library, "%s", version);
  header->library[strcspn(header->library, "\n")] = '\0';
}

/* Says why once: the program goes on without being recorded. */
static void complain(const char* folder, int reason) {
  fprintf(stderr, "seatrial: nothing is recorded of process %d: %s: %s\n", (int)getpid(), folder,
          strerror(reason));
}

void seatrial_open_file(int world_rank, int world_size, const char* version) {
  if (seatrial_process.header != NULL || world_size < 0)
    return;
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const int file = create(folder, host);
  if (file < 0) {
    complain(folder, errno);
    return;
  }
  const uint64_t thread_offset =
      whole_pages(sizeof(struct seatrial_header)) + SEATRIAL_MODULE_BYTES;
  const uint64_t thread_bytes = whole_pages(
      sizeof(struct seatrial_thread) + ((uint64_t)world_size + 1) * sizeof(struct seatrial_peer));
  const uint64_t bytes = thread_offset + SEATRIAL_MOST_THREADS * thread_bytes;
  void* mapped = MAP_FAILED;
  if (ftruncate(file, (off_t)bytes) == 0 && seatrial_reserve(0, thread_offset))
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    complain(folder, reason);
    unlink(seatrial_process.path);
    return;
  }
  struct seatrial_header* header = mapped;
  header->version = SEATRIAL_VERSION;
  header->state = SEATRIAL_LOADED;
  header->family = seatrial_mpi.family;
  header->world_rank = world_rank;
  header->world_size = world_size;
  header->pid = (int32_t)getpid();
  header->most_threads = SEATRIAL_MOST_THREADS;
  header->thread_bytes = thread_bytes;
  header->thread_offset = thread_offset;
  header->ticks_per_s = ticks_per_s();
  header->loaded_at = loaded_at;
  header->loaded_at_ns = loaded_at_ns;
  header->own_ticks = seatrial_own_ticks();
  describe(header, host, version);
  seatrial_write_modules((char*)mapped +
                         SEATRIAL_PAGE * (whole_pages(sizeof *header) / SEATRIAL_PAGE));
  seatrial_process.world_rank = world_rank;
  seatrial_process.world_size = world_size;
  __atomic_store_n(&header->magic, SEATRIAL_MAGIC, __ATOMIC_RELEASE); /* last: now it is whole */
  seatrial_process.header = header;
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
