/* Requests whose completion tells something: receives, reads of files, and what is started again
 * and again. Kept by their handles until they complete; those of persistent requests until they are
 * freed. Memory grows with the most that were in flight at once. */
#ifndef SEATRIAL_REQUEST_KEEP_H
#define SEATRIAL_REQUEST_KEEP_H

#include "request_table.h"

/* `comm` is held from now on; NULL of files. `peer` in it; negative: any, or none. */
void seatrial_keep_request(word handle, enum seatrial_request_kind kind,
                           struct seatrial_communicator* comm, int peer, uint64_t bytes);

/* Called with the address of the handle, after the call that made it. `source` as the program gave
 * it. */
void seatrial_keep_receive(word request, enum seatrial_request_kind kind, word comm, word source,
                           uint64_t bytes);
void seatrial_keep_start(word request, enum seatrial_request_kind kind, word comm, word dest,
                         uint64_t bytes);
void seatrial_keep_read(word request);

/* The message at an address, which a probe matched, belongs to a communicator. */
void seatrial_keep_matched(word message, word comm);

#endif
