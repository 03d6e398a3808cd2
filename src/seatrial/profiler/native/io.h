/* The kernel's counters of what a process read and wrote. */
#ifndef SEATRIAL_IO_H
#define SEATRIAL_IO_H

#include "table_file.h"

/* Reads a descriptor of /proc/PID/io from its beginning, and tells the time. 0, or an error number:
 * ESRCH once the process is gone, EACCES where it may not be looked at. */
int seatrial_read_io(int file, struct seatrial_io* into);

/* The same of this process. */
int seatrial_read_own_io(struct seatrial_io* into);

#endif
