/* The size of a datatype's data in bytes, asked once by each thread and forgotten when any is
 * freed. */
#ifndef SEATRIAL_DATATYPE_H
#define SEATRIAL_DATATYPE_H

#include "family.h"

enum { SEATRIAL_KEPT_SIZES = 64 };

struct seatrial_sizes {
  uint64_t generation;
  struct {
    word datatype;
    int64_t size;
  } kept[SEATRIAL_KEPT_SIZES];
};

extern _Thread_local struct seatrial_sizes seatrial_sizes
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern uint64_t seatrial_datatype_generation;

int64_t seatrial_ask_size(word datatype);
void seatrial_forget_datatypes(void);

static inline int64_t seatrial_size(word datatype) {
  const word handle = seatrial_handle(datatype);
  const unsigned place = (unsigned)(handle >> 4 ^ handle) % SEATRIAL_KEPT_SIZES;
  if (seatrial_sizes.kept[place].datatype == handle &&
      seatrial_sizes.generation == __atomic_load_n(&seatrial_datatype_generation, __ATOMIC_RELAXED))
    return seatrial_sizes.kept[place].size;
  return seatrial_ask_size(datatype);
}

/* Of `count` elements; an unknown library tells nothing. */
static inline uint64_t seatrial_bytes(int64_t count, word datatype) {
  if (!seatrial_is_known() || count <= 0)
    return 0;
  return (uint64_t)count * (uint64_t)seatrial_size(datatype);
}

#endif
