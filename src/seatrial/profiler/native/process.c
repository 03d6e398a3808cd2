#include "process.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct seatrial_process seatrial_process;
struct seatrial_loaded seatrial_loaded;

__attribute__((constructor)) static void begin_clock(void) {
  if (seatrial_is_enabled())
    seatrial_choose_clock();
  seatrial_loaded.at = seatrial_ticks();
  seatrial_loaded.at_raw_ns = seatrial_ns(CLOCK_MONOTONIC_RAW);
  seatrial_loaded.at_ns = seatrial_ns(CLOCK_REALTIME);
  if (seatrial_is_enabled() && seatrial_is_io_enabled())
    seatrial_loaded.io_error = seatrial_read_own_io(&seatrial_loaded.io);
}

bool seatrial_is_enabled(void) {
  const char* folder = getenv("SEATRIAL_PROFILE_DIR");
  return folder != NULL && folder[0] != '\0';
}

bool seatrial_is_io_enabled(void) {
  const char* period = getenv("SEATRIAL_PROFILE_IO");
  return period != NULL && period[0] != '\0';
}

void seatrial_sample_io(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header != NULL && header->io_first.at_ns != 0)
    header->io_error = seatrial_read_own_io(&header->io_last);
}

void seatrial_sample_cpu(void) {
  struct seatrial_header* header = seatrial_process.header;
  seatrial_read_cpu_use(&header->cpu_last);
  seatrial_extension()->kernel.system_last_ns = seatrial_system_ns();
  seatrial_read_cpu_right(&header->cpu_right);
}

double seatrial_ticks_per_s(void) {
  if (seatrial_uses_system_clock)
    return 1e9;
  const int64_t ns = seatrial_ns(CLOCK_MONOTONIC_RAW) - seatrial_loaded.at_raw_ns;
  return (double)(seatrial_ticks() - seatrial_loaded.at) * 1e9 / (double)(ns > 0 ? ns : 1);
}

void seatrial_measure_clock(void) {
  seatrial_process.header->ticks_per_s = seatrial_ticks_per_s();
}

bool seatrial_join(char* path, const char* folder, const char* name) {
  const int length = snprintf(path, SEATRIAL_PATH_BYTES, "%s/%s", folder, name);
  const bool fits = length >= 0 && length < SEATRIAL_PATH_BYTES;
  if (!fits)
    errno = ENAMETOOLONG;
  return fits;
}

bool seatrial_is_within_file_limit(uint64_t bytes) {
  struct rlimit limit;
  const bool may = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
                   bytes <= limit.rlim_cur;
  if (!may)
    errno = EFBIG;
  return may;
}

/* Opened by name, since a program may close descriptors that it did not open. */
bool seatrial_reserve(uint64_t offset, uint64_t bytes) {
  const int file = open(seatrial_process.path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return false;
  const int reason = posix_fallocate(file, (off_t)offset, (off_t)bytes);
  close(file);
  errno = reason;
  return reason == 0 || reason == EOPNOTSUPP || reason == EINVAL;
}
