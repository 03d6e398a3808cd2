#include "counters.h"

#include "counter_events.h"
#include "extension.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HIGH_DESCRIPTOR = 512 }; /* programs expect low numbers for their own files */

/* `id` is the kernel's number of the event: a program may close descriptors that it did not open,
 * and the same number may be a file of its own later. */
static struct {
  struct seatrial_event event;
  int file;
  int error;
  uint64_t id;
  struct seatrial_counter_reading first;
} opened[SEATRIAL_MOST_COUNTERS];
static unsigned count;
static bool has_started;

/* The events to count: none, those of the hardware (1), or those that every kernel has (software).
 */
static unsigned requested_events(struct seatrial_event* events) {
  const char* requested = getenv("SEATRIAL_PROFILE_COUNTERS");
  if (!seatrial_is_enabled() || requested == NULL)
    return 0;
  if (strcmp(requested, "software") == 0)
    return seatrial_software_events(events, SEATRIAL_MOST_COUNTERS);
  return requested[0] == '1' ? seatrial_counter_events(events, SEATRIAL_MOST_COUNTERS) : 0;
}

static int open_event(const struct seatrial_event* event) {
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event->type;
  attributes.config = event->config;
  attributes.inherit = 1; /* threads that start later */
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const int file = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0)
    return -1;
  const int high = fcntl(file, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
  if (high < 0)
    return file;
  close(file);
  return high;
}

/* When the library is loaded, before the program starts threads. */
__attribute__((constructor)) static void open_counters(void) {
  const int saved = errno;
  struct seatrial_event events[SEATRIAL_MOST_COUNTERS];
  count = requested_events(events);
  for (unsigned i = 0; i < count; i++) {
    opened[i].event = events[i];
    opened[i].file = open_event(&events[i]);
    opened[i].error = opened[i].file < 0 ? errno : 0;
    if (opened[i].file >= 0 && ioctl(opened[i].file, PERF_EVENT_IOC_ID, &opened[i].id) != 0)
      opened[i].error = errno;
  }
  errno = saved;
}

unsigned seatrial_counter_count(void) {
  return has_started ? count : 0;
}

int seatrial_read_counter(unsigned i, struct seatrial_counter_reading* into) {
  uint64_t id;
  if (opened[i].error != 0)
    return opened[i].error;
  if (ioctl(opened[i].file, PERF_EVENT_IOC_ID, &id) != 0 || id != opened[i].id)
    return EBADF;
  const ssize_t length = read(opened[i].file, into, sizeof *into);
  if (length == (ssize_t)sizeof *into)
    return 0;
  return length < 0 ? errno : EIO;
}

/* kernel.perf_event_paranoid may be below 0. */
static int32_t paranoid(void) {
  char text[16] = "";
  const int file = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0)
    close(file);
  return length > 0 ? (int32_t)strtol(text, NULL, 10) : INT32_MIN;
}

static bool has_unit(void) {
  const char* const names[] = {"cpu", "cpu_core", "armv8_pmuv3_0", "armv8_pmuv3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[64];
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s", names[i]);
    if (access(path, F_OK) == 0)
      return true;
  }
  return false;
}

void seatrial_start_counters(void) {
  if (count == 0 || has_started)
    return;
  has_started = true;
  const int saved = errno;
  seatrial_extension()->requested |= SEATRIAL_REQUESTED_COUNTERS;
  seatrial_extension()->paranoid = paranoid();
  seatrial_extension()->has_unit = has_unit();
  errno = saved;
  for (unsigned i = 0; i < count; i++) {
    struct seatrial_counter* counter = &seatrial_extension()->counters[i];
    const int reason = seatrial_read_counter(i, &opened[i].first);
    if (opened[i].error == 0)
      opened[i].error = reason;
    counter->kind = opened[i].event.kind;
    counter->error = opened[i].error;
  }
}

void seatrial_read_counters(void) {
  if (!has_started)
    return;
  for (unsigned i = 0; i < count; i++) {
    struct seatrial_counter* counter = &seatrial_extension()->counters[i];
    struct seatrial_counter_reading now;
    const struct seatrial_counter_reading* first = &opened[i].first;
    counter->error = seatrial_read_counter(i, &now);
    if (counter->error != 0)
      continue;
    counter->value = now.value - first->value;
    counter->enabled_ns = now.enabled_ns - first->enabled_ns;
    counter->running_ns = now.running_ns - first->running_ns;
  }
}
