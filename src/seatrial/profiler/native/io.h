/* The kernel's counters of a process's I/O. */
#ifndef SEATRIAL_IO_H
#define SEATRIAL_IO_H

#include "table_file.h"

/* Reads /proc/PID/io from its beginning through an open descriptor and records the time. Returns
 * 0 or an error number: ESRCH once the process is gone, EACCES if it may not be inspected. */
int seatrial_read_io(int file, struct seatrial_io* into);

/* The same for this process. */
int seatrial_read_own_io(struct seatrial_io* into);

#endif
