#include "collector_start.h"

#include "detached.h"
#include "file_status.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { STARTING_S = 5 }; /* by then a collector holds its lock */

#define COPY_EVERY_S "60"

static bool folder_of(char* folder, const char* path) {
  const char* slash = strrchr(path, '/');
  const int length = snprintf(folder, SEATRIAL_PATH_BYTES, "%.*s", (int)(slash - path), path);
  return length > 0 && length < SEATRIAL_PATH_BYTES;
}

/* True if a collector holds the lock. */
static bool is_held(int file) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Whether this rank starts the collector: it created the file first, or nobody holds the lock
 * any more. */
static bool is_first(const char* lock_path) {
  int file = open(lock_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool is_mine = file >= 0;
  if (!is_mine && errno == EEXIST && (file = open(lock_path, O_RDWR | O_CLOEXEC)) >= 0) {
    struct stat status;
    is_mine = seatrial_status_of(file, &status) == 0 && time(NULL) - status.st_mtime > STARTING_S &&
              !is_held(file) && futimens(file, NULL) == 0;
  }
  if (file >= 0)
    close(file);
  return is_mine;
}

/* Whether this process inherits orphans: PID 1 of a container, or a child subreaper. */
static bool inherits_orphans(void) {
  int is_subreaper = 0;
  return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0 && is_subreaper != 0);
}

static int start(char* program, char* node, char* folder, const char* lock_path,
                 const char* marker) {
  const char* period = getenv("SEATRIAL_PROFILE_IO");
  char io_s[32];
  snprintf(io_s, sizeof io_s, "%s", period != NULL ? period : "0");
  char every[] = COPY_EVERY_S;
  char* const arguments[] = {program, node, folder, every, io_s, NULL};
  char locale[] = "LC_ALL=C";
  char* const environment[] = {locale, NULL};
  const int file = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0)
    close(file);
  const int reason = seatrial_run_detached(arguments, environment);
  if (reason != 0) {
    unlink(marker);
    unlink(lock_path);
  }
  return reason;
}

void seatrial_start_collector(const char* host) {
  char* program = getenv("SEATRIAL_PROFILE_COLLECTOR");
  char node[SEATRIAL_PATH_BYTES];
  char folder[SEATRIAL_PATH_BYTES];
  char name[300];
  char lock_path[SEATRIAL_PATH_BYTES];
  char marker[SEATRIAL_PATH_BYTES];
  if (program == NULL || program[0] == '\0' || inherits_orphans() ||
      !folder_of(node, seatrial_process.path) || !folder_of(folder, seatrial_process.final_path))
    return;
  snprintf(name, sizeof name, "%s.collector", host);
  if (!seatrial_join(lock_path, node, name) || !is_first(lock_path))
    return;
  snprintf(name, sizeof name, "%s.collecting", host);
  const int reason = seatrial_join(marker, folder, name)
                         ? start(program, node, folder, lock_path, marker)
                         : ENAMETOOLONG;
  if (reason != 0)
    fprintf(stderr,
            "seatrial: cannot start %s: %s; the profile of a rank that is killed stays in %s\n",
            program, strerror(reason), node);
}
