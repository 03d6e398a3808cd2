#include "datatype.h"

#include "library.h"
#include "process.h"

#include <stdbool.h>

enum { KEPT_SIZES = 64 };

struct kept {
  word datatype;
  int64_t size;
  bool has_gaps;
};

static _Thread_local struct {
  uint64_t generation;
  struct kept kept[KEPT_SIZES];
} sizes __attribute__((tls_model("initial-exec")));

/* Whether elements do not fill the memory that they span, alone or one after another. */
static bool has_gaps(word datatype, int64_t size) {
  int64_t begin;
  int64_t extent = size;
  int64_t span = size;
  if (seatrial_library.Type_get_extent_x == NULL || seatrial_library.Type_get_true_extent_x == NULL)
    return false;
  return seatrial_library.Type_get_extent_x(datatype, &begin, &extent) == 0 &&
         seatrial_library.Type_get_true_extent_x(datatype, &begin, &span) == 0 &&
         (extent != size || span != size);
}

/* NULL if the library does not know the datatype. */
static const struct kept* query(word datatype, word handle, struct kept* kept) {
  int64_t size = 0;
  if (seatrial_library.Type_size_x(datatype, &size) != 0 || size < 0)
    return NULL;
  *kept = (struct kept){.datatype = handle, .size = size, .has_gaps = has_gaps(datatype, size)};
  return kept;
}

bool seatrial_has_gaps(word datatype) {
  struct kept kept;
  const struct kept* found =
      seatrial_is_known() ? query(datatype, seatrial_handle(datatype), &kept) : NULL;
  return found != NULL && found->has_gaps;
}

void seatrial_count_noncontiguous(uint64_t bytes) {
  if (seatrial_process.header != NULL)
    __atomic_fetch_add(&seatrial_process.header->noncontiguous_bytes, bytes, __ATOMIC_RELAXED);
}

uint64_t seatrial_query_bytes(int64_t count, word datatype) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (!seatrial_is_known() || count <= 0)
    return 0;
  if (sizes.generation != here->generation) {
    memset(&sizes, 0, sizeof sizes);
    sizes.generation = here->generation;
  }
  const word handle = seatrial_handle(datatype);
  struct kept* place = &sizes.kept[(unsigned)(handle >> 4 ^ handle) % KEPT_SIZES];
  const struct kept* found = place->datatype == handle ? place : query(datatype, handle, place);
  const uint64_t bytes = found == NULL ? 0 : (uint64_t)count * (uint64_t)found->size;
  if (found != NULL && found->has_gaps) {
    /* It does not become the latest datatype, so that each call comes here and is counted. */
    seatrial_count_noncontiguous(bytes);
    return bytes;
  }
  here->type_size = found == NULL ? 0 : found->size;
  here->type_word = datatype;
  return bytes;
}

void seatrial_forget_datatypes(void) {
  __atomic_fetch_add(&seatrial_generation, 1, __ATOMIC_ACQ_REL);
}
