#include "detach.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LOW_PRIORITY = 10 };

static void close_inherited(void) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) {
    for (int file = 0; file < 4096; file++)
      close(file);
  } else {
    const struct dirent* entry;
    while ((entry = readdir(folder)) != NULL) {
      const int file = atoi(entry->d_name);
      if (entry->d_name[0] != '.' && file != dirfd(folder))
        close(file);
    }
    closedir(folder);
  }
  /* These take the lowest free numbers: standard input, output and error. */
  if (open("/dev/null", O_RDWR) == 0 && dup(0) == 1)
    dup(0);
}

static void allow_all_cpus(void) {
  unsigned char all[1024];
  memset(all, 0xff, sizeof all); /* the kernel restricts this to the allowed CPUs */
  sched_setaffinity(0, sizeof all, (const cpu_set_t*)all);
}

static void reset_signals(void) {
  for (int number = 1; number < NSIG; number++)
    signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGHUP);
  sigprocmask(SIG_SETMASK, &held, NULL);
}

void seatrial_detach(void) {
  reset_signals();
  close_inherited();
  if (chdir("/") != 0)
    _exit(1);
  setpriority(PRIO_PROCESS, 0, LOW_PRIORITY);
  allow_all_cpus();
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}
