/* MPI_Pcontrol(0) stops recording, MPI_Pcontrol(1) resumes it. Meanwhile each thread counts into
 * an area that is never read, so that requests, communicators and datatypes stay known. */
#ifndef SEATRIAL_STOPPED_H
#define SEATRIAL_STOPPED_H

#include "area.h"

#include <stdbool.h>

extern bool seatrial_is_stopped SEATRIAL_HIDDEN;

void seatrial_stop(void);
void seatrial_resume(void);

/* Makes this thread count where it belongs now; it has an area. */
void seatrial_change_area(void);

/* The area of this thread in the table, also while recording is stopped; NULL: it has none. */
struct seatrial_thread* seatrial_table_area(void);

/* Ticks that recording was stopped until `now`. */
uint64_t seatrial_stopped_ticks(uint64_t now);

#endif
