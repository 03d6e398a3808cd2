/* Call sites that are more than an address: the calls that led there, and lines of Python. Only
 * while this library finds one of them does a call take the longer way here. */
#ifndef SEATRIAL_PLACE_H
#define SEATRIAL_PLACE_H

#include "table_file.h"

#include <stdint.h>

/* The bytes that the table needs for places: 0 if call sites are addresses only. Call it before the
 * table is created. */
uint64_t seatrial_wanted_places(void);

/* The requested number of frames of a call path: 0 to SEATRIAL_MOST_FRAMES. */
uint32_t seatrial_wanted_frames(void);

/* Begins to record places in the table, and returns the ticks that one call then takes longer. */
double seatrial_begin_places(void);

#endif
