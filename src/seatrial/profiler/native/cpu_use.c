#include "cpu_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096, PATH_BYTES = 4096 + 64, MOST_TASKS = 4096 };

/* The beginning of a file as text; false if it cannot be read. */
static bool read_text(const char* path, char* text) {
  const int saved = errno;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, TEXT_BYTES - 1);
  if (file >= 0)
    close(file);
  errno = saved;
  text[length > 0 ? length : 0] = '\0';
  return length > 0;
}

/* The number after `name` and blanks at the beginning of a line. No scanf: the program may have set
 * a locale. */
static uint64_t number_of(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* line = text; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, length) == 0 && line[length] == ' ')
      return strtoull(line + length, NULL, 10);
  }
  return SEATRIAL_UNREPORTED;
}

/* The time that the process's threads were ready to run, but did not: the second number of
 * schedstat (proc_pid_schedstat, Documentation/scheduler/sched-stats.rst). Threads that ended are
 * missing. */
static uint64_t run_delay_ns(void) {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL)
    return SEATRIAL_UNREPORTED;
  uint64_t sum = 0;
  bool is_known = false;
  const struct dirent* entry;
  for (int count = 0; (entry = readdir(tasks)) != NULL && count < MOST_TASKS; count++) {
    char path[320];
    char text[TEXT_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
    if (entry->d_name[0] == '.' || !read_text(path, text))
      continue;
    char* behind;
    strtoull(text, &behind, 10);
    sum += strtoull(behind, NULL, 10);
    is_known = true;
  }
  closedir(tasks);
  return is_known ? sum : SEATRIAL_UNREPORTED;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal ..., in clock ticks.
 */
static void read_node(struct seatrial_cpu_use* into) {
  enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, KINDS };
  char text[TEXT_BYTES];
  into->node_busy_ns = into->node_steal_ns = SEATRIAL_UNREPORTED;
  const long per_s = sysconf(_SC_CLK_TCK);
  if (per_s <= 0 || !read_text("/proc/stat", text) || strncmp(text, "cpu ", 4) != 0)
    return;
  uint64_t ticks[KINDS];
  char* at = text + 4;
  for (int kind = 0; kind < KINDS; kind++)
    ticks[kind] = strtoull(at, &at, 10);
  const uint64_t tick_ns = 1000000000u / (uint64_t)per_s;
  into->node_busy_ns =
      tick_ns * (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ]);
  into->node_steal_ns = tick_ns * ticks[STEAL];
}

struct group {
  char path[PATH_BYTES]; /* of its folder */
  size_t root;           /* length of the path of the root group */
  bool is_v2;
};

/* The control group of this process that limits CPU time. */
static bool find_group(struct group* group) {
  char text[TEXT_BYTES];
  if (!read_text("/proc/self/cgroup", text))
    return false;
  char* rest = NULL;
  group->root = 0;
  for (char* line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    char* names = strchr(line, ':');
    char* place = names == NULL ? NULL : strchr(names + 1, ':');
    if (place == NULL)
      continue;
    *place++ = '\0';
    names++;
    const bool is_v2 = names[0] == '\0';
    const bool is_cpu = strcmp(names, "cpu") == 0 || strncmp(names, "cpu,", 4) == 0 ||
                        strstr(names, ",cpu,") != NULL ||
                        (strlen(names) > 4 && strcmp(names + strlen(names) - 4, ",cpu") == 0);
    if (!is_cpu && (!is_v2 || group->root != 0))
      continue;
    const char* root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    snprintf(group->path, sizeof group->path, "%s%s", root, strcmp(place, "/") == 0 ? "" : place);
    group->root = strlen(root);
    group->is_v2 = is_v2;
  }
  return group->root != 0;
}

static bool read_in(const struct group* group, const char* name, char* text) {
  char path[PATH_BYTES + 32];
  snprintf(path, sizeof path, "%s/%s", group->path, name);
  return read_text(path, text);
}

/* The quota of this group in CPUs; 0: none. */
static double quota_of(const struct group* group) {
  char text[TEXT_BYTES];
  double quota = 0;
  double period = 0;
  if (group->is_v2) {
    if (!read_in(group, "cpu.max", text) || strncmp(text, "max", 3) == 0)
      return 0;
    char* behind;
    quota = (double)strtoull(text, &behind, 10);
    period = (double)strtoull(behind, NULL, 10);
  } else {
    if (!read_in(group, "cpu.cfs_quota_us", text) || text[0] == '-')
      return 0;
    quota = (double)strtoull(text, NULL, 10);
    if (read_in(group, "cpu.cfs_period_us", text))
      period = (double)strtoull(text, NULL, 10);
  }
  return period > 0 ? quota / period : 0;
}

/* The ancestor with the smallest quota, itself included. False if there is no quota. */
static bool find_quota(struct group* least, double* cpus) {
  struct group group;
  *cpus = 0;
  if (!find_group(&group))
    return false;
  for (;;) {
    const double quota = quota_of(&group);
    if (quota > 0 && (*cpus == 0 || quota < *cpus)) {
      *cpus = quota;
      *least = group;
    }
    char* last = strrchr(group.path, '/');
    if (strlen(group.path) <= group.root || last == NULL)
      return *cpus > 0;
    *last = '\0';
  }
}

static void read_throttling(struct seatrial_cpu_use* into) {
  struct group group;
  double cpus;
  char text[TEXT_BYTES];
  into->throttled_ns = into->throttled_periods = into->periods = SEATRIAL_UNREPORTED;
  if (!find_quota(&group, &cpus) || !read_in(&group, "cpu.stat", text))
    return;
  into->periods = number_of(text, "nr_periods");
  into->throttled_periods = number_of(text, "nr_throttled");
  into->throttled_ns = number_of(text, group.is_v2 ? "throttled_usec" : "throttled_time");
  if (group.is_v2 && into->throttled_ns != SEATRIAL_UNREPORTED)
    into->throttled_ns *= 1000;
}

static uint64_t time_ns(clockid_t clock) {
  struct timespec time;
  if (clock_gettime(clock, &time) != 0)
    return SEATRIAL_UNREPORTED;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t seatrial_system_ns(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0)
    return 0;
  return (uint64_t)usage.ru_stime.tv_sec * 1000000000u + (uint64_t)usage.ru_stime.tv_usec * 1000u;
}

void seatrial_read_cpu_time(struct seatrial_cpu_use* into) {
  memset(into, 0xff, sizeof *into);
  into->cpu_ns = time_ns(CLOCK_PROCESS_CPUTIME_ID);
  into->run_delay_ns = run_delay_ns();
  read_node(into);
}

void seatrial_read_cpu_use(struct seatrial_cpu_use* into) {
  struct rusage usage;
  seatrial_read_cpu_time(into);
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    into->voluntary = (uint64_t)usage.ru_nvcsw;
    into->involuntary = (uint64_t)usage.ru_nivcsw;
    into->minor_faults = (uint64_t)usage.ru_minflt;
    into->major_faults = (uint64_t)usage.ru_majflt;
    into->most_resident_bytes = (uint64_t)usage.ru_maxrss * 1024u;
  }
  read_throttling(into);
  into->at_ns = (int64_t)time_ns(CLOCK_MONOTONIC_RAW);
}

void seatrial_read_cpu_right(struct seatrial_cpu_right* into) {
  cpu_set_t* set = CPU_ALLOC(SEATRIAL_MOST_CPUS);
  const size_t bytes = CPU_ALLOC_SIZE(SEATRIAL_MOST_CPUS);
  struct group group;
  memset(into, 0, sizeof *into);
  if (set != NULL && sched_getaffinity(0, bytes, set) == 0)
    for (int cpu = 0; cpu < SEATRIAL_MOST_CPUS; cpu++)
      if (CPU_ISSET_S(cpu, bytes, set))
        into->mask[cpu / 64] |= (uint64_t)1 << (cpu % 64);
  if (set != NULL)
    CPU_FREE(set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  into->online = online > 0 ? (uint64_t)online : 0;
  find_quota(&group, &into->quota);
}
