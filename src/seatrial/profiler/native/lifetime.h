/* The beginning and the end of MPI in this process. */
#ifndef SEATRIAL_LIFETIME_H
#define SEATRIAL_LIFETIME_H

#include "word.h"

/* After MPI_Init*, or MPI_Session_init with the address of its session: the file is made. */
void seatrial_opened(void);
void seatrial_opened_session(word address);

/* Before and after MPI_Finalize; no communication, nothing is printed. */
void seatrial_closing(void);
void seatrial_closed(void);

/* The same of a session, by its handle. MPI has ended with the last of them. */
void seatrial_closing_session(word session);
void seatrial_closed_session(void);

/* Before MPI_Abort. In most libraries it does not return: the state tells of it, no slot. */
void seatrial_aborting(void);

#endif
