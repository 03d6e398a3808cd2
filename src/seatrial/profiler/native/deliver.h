/* The way of a table from the node's folder to where it belongs. */
#ifndef SEATRIAL_DELIVER_H
#define SEATRIAL_DELIVER_H

/* Copies the table of this process, and its trace, once MPI has ended: after the row of the call
 * that ended it was written. What is called later is copied when the process ends, and then the
 * node's files are removed. A process that does not end by itself leaves them to the collector. */
void seatrial_deliver(void);

#endif
