/* Isolates the collector from the program it runs beside. */
#ifndef SEATRIAL_DETACH_H
#define SEATRIAL_DETACH_H

/* Closes inherited descriptors; drops the working folder, priority and CPU affinity of the rank
 * that started it; blocks SIGTERM, SIGINT and SIGHUP, which are then waited for. */
void seatrial_detach(void);

#endif
