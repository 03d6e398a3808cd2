#include "deliver.h"

#include "process.h"
#include "sparse_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t delivered; /* number of calls in the latest copy, plus 1 */
static bool has_warned;

/* False in a child process that shares or copied the memory of this process. */
static bool is_own(void) {
  const struct seatrial_header* header = seatrial_process.header;
  return header != NULL && seatrial_process.final_path[0] != '\0' &&
         syscall(SYS_getpid) == header->pid;
}

static const struct seatrial_thread* area(uint32_t number) {
  const struct seatrial_header* header = seatrial_process.header;
  const char* first = (const char*)header + header->thread_offset;
  return (const struct seatrial_thread*)(first + number * header->thread_bytes);
}

static uint64_t calls(void) {
  const struct seatrial_header* header = seatrial_process.header;
  uint64_t sum = header->lost_calls;
  for (uint32_t i = 0; i < header->threads; i++)
    for (unsigned k = 0; k < header->rows; k++)
      sum += ((const struct seatrial_slot*)(area(i) + 1))[k].count;
  return sum;
}

/* Written from memory, since the file in the node's folder may have been removed. */
static int write_table(int file) {
  const struct seatrial_header* header = seatrial_process.header;
  const uint64_t bytes = header->thread_offset + header->threads * header->thread_bytes;
  if (ftruncate(file, (off_t)bytes) != 0)
    return errno;
  int reason = seatrial_write_sparse(file, (const char*)header, header->thread_offset, 0);
  for (uint32_t i = 0; i < header->threads && reason == 0; i++)
    reason = seatrial_write_sparse(file, (const char*)area(i), header->thread_bytes,
                                   header->thread_offset + i * header->thread_bytes);
  return reason;
}

static int copy_table(const char* private_name) {
  const int file = open(private_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return errno;
  int reason = write_table(file);
  if (close(file) != 0 && reason == 0)
    reason = errno;
  if (reason == 0 && rename(private_name, seatrial_process.final_path) != 0)
    reason = errno;
  if (reason != 0)
    unlink(private_name);
  return reason;
}

/* The trace is stored beside the table. */
static bool trace_path(char* path, const char* table) {
  const size_t stem = strlen(table) - strlen(".mpi");
  const int length = snprintf(path, SEATRIAL_PATH_BYTES, "%.*s.trace", (int)stem, table);
  return length > 0 && length < SEATRIAL_PATH_BYTES;
}

static int copy_trace(const char* private_name) {
  char from[SEATRIAL_PATH_BYTES];
  char to[SEATRIAL_PATH_BYTES];
  if (!trace_path(from, seatrial_process.path) || !trace_path(to, seatrial_process.final_path))
    return ENAMETOOLONG;
  return access(from, F_OK) == 0 ? seatrial_copy_file(from, private_name, to) : 0;
}

static bool copy(void) {
  char private_name[SEATRIAL_PATH_BYTES + 16];
  const char* name = strrchr(seatrial_process.final_path, '/') + 1;
  snprintf(private_name, sizeof private_name, "%.*s.%s.part",
           (int)(name - seatrial_process.final_path), seatrial_process.final_path, name);
  const uint64_t now = calls() + 1;
  if (now == delivered)
    return true;
  int reason = copy_table(private_name);
  if (reason == 0)
    reason = copy_trace(private_name);
  if (reason == 0)
    delivered = now;
  else if (!has_warned)
    fprintf(stderr, "seatrial: the profile of process %d stays in %s: %s: %s\n",
            (int)seatrial_process.header->pid, seatrial_process.path, seatrial_process.final_path,
            strerror(reason));
  has_warned = has_warned || reason != 0;
  return reason == 0;
}

void seatrial_deliver(void) {
  if (is_own() && seatrial_process.header->state >= SEATRIAL_FINALIZED)
    copy();
}

/* Runs when a process exits on its own, with or without MPI_Finalize. */
__attribute__((destructor)) static void deliver_at_exit(void) {
  if (!is_own())
    return;
  if (seatrial_process.header->state < SEATRIAL_FINALIZED)
    seatrial_sample_io();
  if (!copy())
    return;
  /* A copy that was started earlier may replace this one; in that case the collector makes the
   * last copy. */
  if (__atomic_load_n(&seatrial_process.header->is_collected, __ATOMIC_SEQ_CST))
    return;
  char trace[SEATRIAL_PATH_BYTES];
  unlink(seatrial_process.path);
  if (trace_path(trace, seatrial_process.path))
    unlink(trace);
}
