/* Requests whose completion matters: receives, file reads and persistent requests. Tracked by
 * handle until they complete; persistent requests until they are freed. Memory grows with the
 * largest number in flight. */
#ifndef SEATRIAL_REQUEST_TRACKING_H
#define SEATRIAL_REQUEST_TRACKING_H

#include "request_table.h"

/* Takes a reference to `comm` (NULL for files). `peer` is a rank in it; negative: any, or none. */
void seatrial_track_request(word handle, enum seatrial_request_kind kind,
                            struct seatrial_communicator* comm, int peer, uint64_t bytes);

/* Call with the address of the handle, after the call that created it. `source` as passed by the
 * program. */
void seatrial_track_receive(word request, enum seatrial_request_kind kind, word comm, word source,
                            uint64_t bytes);
/* The receive of MPI_Isendrecv: MPICH (4.0 to 4.3) leaves its status unset, so what arrives there
 * has an unknown length. */
void seatrial_track_receive_of_both(word request, word comm, word source);
void seatrial_track_start(word request, enum seatrial_request_kind kind, word comm, word dest,
                          uint64_t bytes);
/* A persistent send of this datatype: whether it has gaps is looked up once. */
void seatrial_note_gaps(word request, word datatype);

void seatrial_track_read(word request);

/* The message at an address, matched by a probe, belongs to this communicator. */
void seatrial_track_matched(word message, word comm);

#endif
