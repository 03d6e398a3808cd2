/* Moves a table from the node's folder to its final folder. */
#ifndef SEATRIAL_DELIVER_H
#define SEATRIAL_DELIVER_H

/* Copies the table and trace of this process once MPI has ended, after the row of the finalizing
 * call was written. Later calls are copied when the process exits, and then the node's files are
 * removed. If the process is killed, the collector does both. */
void seatrial_deliver(void);

#endif
