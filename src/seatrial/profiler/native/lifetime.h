/* Start and end of MPI in this process. */
#ifndef SEATRIAL_LIFETIME_H
#define SEATRIAL_LIFETIME_H

#include "word.h"

/* After MPI_Init*, or MPI_Session_init with the address of its session: creates the file. */
void seatrial_opened(void);
void seatrial_opened_session(word address);

/* Before and after MPI_Finalize; they neither communicate nor print. */
void seatrial_closing(void);
void seatrial_closed(void);

/* The same for a session, by its handle. MPI ends with the last session. */
void seatrial_closing_session(word session);
void seatrial_closed_session(void);

/* Before MPI_Abort. In most libraries it does not return, so it is recorded in the state, not in
 * a slot. */
void seatrial_aborting(void);

#endif
