#include "children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096, PATH_BYTES = 320, MOST_DEPTH = 4, MOST_TASKS = 256 };

static bool read_text(const char* path, char* text) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, TEXT_BYTES - 1);
  if (file >= 0)
    close(file);
  text[length > 0 ? length : 0] = '\0';
  return length > 0;
}

/* The fields utime, stime, cutime and cstime of a process, in clock ticks (proc_pid_stat(5)): the
 * 12th to 15th after its name, which may hold anything. */
static uint64_t ticks_of(const char* process) {
  enum { BEFORE = 11, FIELDS = 4 };
  char path[PATH_BYTES];
  char text[TEXT_BYTES];
  snprintf(path, sizeof path, "/proc/%s/stat", process);
  char* at = read_text(path, text) ? strrchr(text, ')') : NULL;
  for (int i = 0; at != NULL && i <= BEFORE; i++)
    at = strchr(at + 1, ' ');
  uint64_t sum = 0;
  for (int i = 0; at != NULL && i < FIELDS; i++)
    sum += strtoull(at, &at, 10);
  return sum;
}

static uint64_t ticks_below(const char* process, int depth);

/* Of the children of one thread: "12 34 56 ". */
static uint64_t ticks_of_children(const char* process, const char* task, int depth) {
  char path[2 * PATH_BYTES];
  char text[TEXT_BYTES];
  uint64_t sum = 0;
  snprintf(path, sizeof path, "/proc/%.64s/task/%.64s/children", process, task);
  if (!read_text(path, text))
    return 0;
  char* rest = NULL;
  for (char* child = strtok_r(text, " ", &rest); child != NULL; child = strtok_r(NULL, " ", &rest))
    sum += ticks_of(child) + ticks_below(child, depth + 1);
  return sum;
}

static uint64_t ticks_below(const char* process, int depth) {
  char path[PATH_BYTES];
  uint64_t sum = 0;
  snprintf(path, sizeof path, "/proc/%.64s/task", process);
  DIR* tasks = depth < MOST_DEPTH ? opendir(path) : NULL;
  if (tasks == NULL)
    return 0;
  const struct dirent* entry;
  for (int count = 0; (entry = readdir(tasks)) != NULL && count < MOST_TASKS; count++)
    if (entry->d_name[0] != '.')
      sum += ticks_of_children(process, entry->d_name, depth);
  closedir(tasks);
  return sum;
}

static uint64_t ns_of(struct timeval time) {
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

uint64_t seatrial_children_ns(void) {
  const int kept = errno;
  struct rusage usage;
  const bool is_known = getrusage(RUSAGE_CHILDREN, &usage) == 0;
  const long per_s = sysconf(_SC_CLK_TCK);
  const uint64_t running = per_s > 0 ? ticks_below("self", 0) * (1000000000u / (uint64_t)per_s) : 0;
  errno = kept;
  return running + (is_known ? ns_of(usage.ru_utime) + ns_of(usage.ru_stime) : 0);
}
