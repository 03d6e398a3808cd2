#include "operation.h"

#include "extension.h"

_Thread_local uint64_t seatrial_operated;

typedef void (*function_t)(void* in, void* inout, void* length, void* datatype);

enum { FUNCTIONS = 32 };

static word functions[FUNCTIONS];
static _Thread_local bool is_applied; /* a function may apply another operation by itself */

/* The row of a function; the last one for all that have none. NULL: nothing is recorded. */
static struct seatrial_operation* row_of(unsigned number) {
  struct seatrial_extension* extension = seatrial_extension();
  if (extension == NULL || seatrial_thread_state.is_stopped)
    return NULL;
  const unsigned rest = SEATRIAL_MOST_OPERATIONS - 1;
  return &extension->operations.list[number < rest ? number : rest];
}

static void add(uint64_t* to, uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static inline void apply(unsigned number, void* in, void* inout, void* length, void* datatype) {
  const function_t function = (function_t)__atomic_load_n(&functions[number], __ATOMIC_ACQUIRE);
  if (is_applied || seatrial_thread_state.where != SEATRIAL_INSIDE) {
    function(in, inout, length, datatype);
    return;
  }
  is_applied = true;
  const uint64_t begin = seatrial_ticks();
  function(in, inout, length, datatype);
  const uint64_t ticks = seatrial_ticks() - begin;
  is_applied = false;
  seatrial_operated += ticks;
  struct seatrial_operation* row = row_of(number);
  if (row == NULL)
    return;
  add(&row->calls, 1);
  add(&row->ticks, ticks);
}

#define APPLY(n)                                                                                   \
  static void apply_##n(void* in, void* inout, void* length, void* datatype) {                     \
    apply(n, in, inout, length, datatype);                                                         \
  }
#define FOR_EACH(one)                                                                              \
  one(0) one(1) one(2) one(3) one(4) one(5) one(6) one(7) one(8) one(9) one(10) one(11) one(12)    \
      one(13) one(14) one(15) one(16) one(17) one(18) one(19) one(20) one(21) one(22) one(23)      \
          one(24) one(25) one(26) one(27) one(28) one(29) one(30) one(31)
#define NAME(n) apply_##n,

FOR_EACH(APPLY)

static const function_t timed[FUNCTIONS] = {FOR_EACH(NAME)};

/* The number of a function of this library; FUNCTIONS: it is another one. */
static unsigned number_of(word function) {
  unsigned number = 0;
  while (number < FUNCTIONS && (word)timed[number] != function)
    number++;
  return number;
}

word seatrial_timed_operation(word function) {
  if (function == 0 || number_of(function) < FUNCTIONS)
    return function;
  for (unsigned i = 0; i < FUNCTIONS; i++) {
    word there = __atomic_load_n(&functions[i], __ATOMIC_ACQUIRE);
    if (there == function ||
        (there == 0 && __atomic_compare_exchange_n(&functions[i], &there, function, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) ||
        there == function)
      return (word)timed[i];
  }
  return function;
}

void seatrial_note_operation(word function) {
  const unsigned number = number_of(function);
  struct seatrial_extension* extension = seatrial_extension();
  if (extension != NULL && number == FUNCTIONS)
    add(&extension->operations.untimed, 1);
  struct seatrial_operation* row = number < FUNCTIONS ? row_of(number) : NULL;
  if (row == NULL)
    return;
  if (number < SEATRIAL_MOST_OPERATIONS - 1)
    row->function = functions[number];
  add(&row->made, 1);
}

void seatrial_count_operation(unsigned call, uint64_t comm, uint64_t bytes, uint64_t ticks) {
  const uint64_t head = seatrial_slot_head(call, comm, bytes) | (uint64_t)SEATRIAL_OPERATED << 24;
  seatrial_add_to_slot(seatrial_find_slot(head, 0), bytes, ticks);
}
