/* Identifies the PID namespace in which a PID is valid. */
#ifndef SEATRIAL_PID_NAMESPACE_H
#define SEATRIAL_PID_NAMESPACE_H

#include "file_status.h"

#include <stdint.h>

/* The inode of this process's PID namespace; 0 if it cannot be read. */
static inline uint64_t seatrial_pid_namespace(void) {
  struct stat status;
  return seatrial_status_at("/proc/self/ns/pid", &status, 0) == 0 ? (uint64_t)status.st_ino : 0;
}

#endif
