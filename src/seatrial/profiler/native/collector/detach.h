/* What makes the collector a stranger to the program beside which it runs. */
#ifndef SEATRIAL_DETACH_H
#define SEATRIAL_DETACH_H

/* Closes what it inherited, leaves the folder, the priority and the processors of the rank that
 * started it, and holds back SIGTERM, SIGINT and SIGHUP: they are waited for. */
void seatrial_detach(void);

#endif
