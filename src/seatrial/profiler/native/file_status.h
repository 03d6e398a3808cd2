/* stat and fstat as system calls: glibc 2.33 gave them new symbols, which older ones lack. What the
 * kernel fills in is the C library's struct stat on these processors. */
#ifndef SEATRIAL_FILE_STATUS_H
#define SEATRIAL_FILE_STATUS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `flags` as fstatat takes them; -1 with errno set where there is no such file. */
static inline int seatrial_status_at(const char* path, struct stat* status, int flags) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, flags);
}

static inline int seatrial_status_of(int file, struct stat* status) {
  return (int)syscall(SYS_fstat, file, status);
}

#endif
