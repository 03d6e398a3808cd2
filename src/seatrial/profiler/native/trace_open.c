#include "trace.h"

#include "area.h"
#include "lock.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RESERVED_AT_ONCE = 16384 }; /* records: 1 MiB */

struct seatrial_trace seatrial_trace;

static char path[sizeof seatrial_process.path + 8];

/* Indices fit into 32 bits, with one value to spare for "none". */
static uint64_t wanted_records(void) {
  const char* text = getenv("SEATRIAL_PROFILE_TRACE");
  const uint64_t bytes = text == NULL ? 0 : strtoull(text, NULL, 10);
  if (bytes <= SEATRIAL_TRACE_HEADER_BYTES)
    return 0;
  const uint64_t records =
      (bytes - SEATRIAL_TRACE_HEADER_BYTES) / sizeof(struct seatrial_trace_record);
  return records < UINT32_MAX - 1 ? records : UINT32_MAX - 1;
}

/* Opened by name, since a program may close descriptors that it did not open. */
static bool reserve(uint64_t offset, uint64_t bytes) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return false;
  const int reason = posix_fallocate(file, (off_t)offset, (off_t)bytes);
  close(file);
  return reason == 0 || reason == EOPNOTSUPP || reason == EINVAL;
}

bool seatrial_reserve_trace(uint64_t place) {
  static int lock;
  const uint64_t room = seatrial_trace.header->room;
  seatrial_lock(&lock);
  uint64_t reserved = seatrial_trace.reserved;
  while (place >= reserved && reserved < room) {
    const uint64_t left = room - reserved;
    const uint64_t more = left < RESERVED_AT_ONCE ? left : RESERVED_AT_ONCE;
    const uint64_t size = sizeof(struct seatrial_trace_record);
    if (!reserve(SEATRIAL_TRACE_HEADER_BYTES + reserved * size, more * size)) {
      seatrial_trace.header->room = reserved; /* the disk is full: limit the trace to this */
      break;
    }
    reserved += more;
    seatrial_trace.header->ticks_per_s = seatrial_process.header->ticks_per_s;
    __atomic_store_n(&seatrial_trace.reserved, reserved, __ATOMIC_RELEASE);
  }
  seatrial_unlock(&lock);
  return place < reserved;
}

static void describe(struct seatrial_trace_header* header, uint64_t room) {
  const struct seatrial_header* process = seatrial_process.header;
  header->version = SEATRIAL_TRACE_VERSION;
  header->record_bytes = sizeof(struct seatrial_trace_record);
  header->world_rank = process->world_rank;
  header->world_size = process->world_size;
  header->pid = process->pid;
  header->room = room;
  header->ticks_per_s = process->ticks_per_s;
  header->loaded_at = process->loaded_at;
  header->loaded_at_ns = process->loaded_at_ns;
  memcpy(header->host, process->host, sizeof header->host);
  __atomic_store_n(&header->magic, SEATRIAL_TRACE_MAGIC,
                   __ATOMIC_RELEASE); /* marks the header as complete */
}

/* HOST-PID.trace for the table HOST-PID.mpi. */
static struct seatrial_trace_header* create(uint64_t room) {
  const uint64_t bytes = SEATRIAL_TRACE_HEADER_BYTES + room * sizeof(struct seatrial_trace_record);
  const char* dot = strrchr(seatrial_process.path, '.');
  const int stem = dot == NULL ? 0 : (int)(dot - seatrial_process.path);
  snprintf(path, sizeof path, "%.*s.trace", stem, seatrial_process.path);
  if (!seatrial_is_within_file_limit(bytes))
    return NULL;
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return NULL;
  void* mapped = MAP_FAILED;
  if (ftruncate(file, (off_t)bytes) == 0 && reserve(0, SEATRIAL_TRACE_HEADER_BYTES))
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int reason = errno;
  close(file);
  if (mapped == MAP_FAILED)
    unlink(path);
  errno = reason;
  return mapped == MAP_FAILED ? NULL : mapped;
}

void seatrial_open_trace(bool has_world) {
  const uint64_t room = wanted_records();
  if (room == 0 || seatrial_process.header == NULL || seatrial_trace.header != NULL ||
      seatrial_process.header->family == SEATRIAL_UNKNOWN)
    return;
  struct seatrial_trace_header* header = create(room);
  if (header == NULL) {
    fprintf(stderr, "seatrial: no trace of process %d: %s: %s\n", (int)getpid(), path,
            strerror(errno));
    return;
  }
  describe(header, room);
  seatrial_trace.header = header;
  seatrial_trace.reserved = 0;
  seatrial_trace.records =
      (struct seatrial_trace_record*)((char*)header + SEATRIAL_TRACE_HEADER_BYTES);
  seatrial_examine_reasons |= SEATRIAL_EXAMINES_FOR_TRACE;
  if (has_world)
    seatrial_trace_world();
}

void seatrial_end_trace(uint64_t now) {
  if (seatrial_trace.header == NULL)
    return;
  seatrial_trace.header->ended_at = now;
  seatrial_trace.header->ticks_per_s = seatrial_process.header->ticks_per_s;
}

void seatrial_stop_trace(void) {
  seatrial_trace.records = NULL;
  seatrial_examine_reasons &= ~(unsigned)SEATRIAL_EXAMINES_FOR_TRACE;
}
