/* The table of this rank, created when MPI is first initialised. */
#ifndef SEATRIAL_TABLE_OPEN_H
#define SEATRIAL_TABLE_OPEN_H

/* Creates the file for this rank, unless it exists. `version` is the text of
 * MPI_Get_library_version. */
void seatrial_open_file(int world_rank, int world_size, const char* version);

#endif
