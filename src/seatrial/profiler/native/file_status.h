/* stat and fstat as system calls: glibc 2.33 gave them new symbols that older versions do not
 * have. On these processors the kernel fills in the C library's struct stat. */
#ifndef SEATRIAL_FILE_STATUS_H
#define SEATRIAL_FILE_STATUS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `flags` as for fstatat; -1 with errno set on failure. */
static inline int seatrial_status_at(const char* path, struct stat* status, int flags) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, flags);
}

static inline int seatrial_status_of(int file, struct stat* status) {
  return (int)syscall(SYS_fstat, file, status);
}

#endif
