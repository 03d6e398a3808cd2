/* The table of this rank: made when MPI is initialised first. */
#ifndef SEATRIAL_TABLE_OPEN_H
#define SEATRIAL_TABLE_OPEN_H

/* Makes the file for this rank, unless it is there. `version` is the library's own words. */
void seatrial_open_file(int world_rank, int world_size, const char* version);

#endif
