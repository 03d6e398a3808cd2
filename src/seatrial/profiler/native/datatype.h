/* The size of a datatype's data in bytes, queried once per thread and dropped from the cache
 * when any datatype is freed. The bytes of datatypes with gaps, which the library has to pack, are
 * counted in the header. */
#ifndef SEATRIAL_DATATYPE_H
#define SEATRIAL_DATATYPE_H

#include "area.h"
#include "family.h"

/* Bytes of `count` elements; queries the library if this thread has not cached the size. */
uint64_t seatrial_query_bytes(int64_t count, word datatype);

bool seatrial_has_gaps(word datatype);
void seatrial_count_noncontiguous(uint64_t bytes);
void seatrial_forget_datatypes(void);

/* Bytes of `count` elements; 0 if the MPI library is unknown. */
static inline uint64_t seatrial_bytes(int64_t count, word datatype) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  if (SEATRIAL_LIKELY(here->type_word == datatype && count >= 0))
    return (uint64_t)count * (uint64_t)here->type_size;
  return seatrial_query_bytes(count, datatype);
}

#endif
