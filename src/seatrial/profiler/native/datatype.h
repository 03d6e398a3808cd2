/* The size of a datatype's data in bytes, asked once by each thread and
 * forgotten when any is freed. */
#ifndef SEATRIAL_DATATYPE_H
#define SEATRIAL_DATATYPE_H

#include "area.h"
#include "family.h"

/* Of `count` elements, asked of the library where this thread does not know it.
 */
uint64_t seatrial_ask_bytes(int64_t count, word datatype);
void seatrial_forget_datatypes(void);

/* Of `count` elements; an unknown library tells nothing. */
static inline uint64_t seatrial_bytes(int64_t count, word datatype) {
  const struct seatrial_here* here = &seatrial_here;
  if (SEATRIAL_LIKELY(here->type_word == datatype && count >= 0))
    return (uint64_t)count * (uint64_t)here->type_size;
  return seatrial_ask_bytes(count, datatype);
}

#endif
