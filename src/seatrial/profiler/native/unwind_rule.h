/* How to leave a function: where its caller's frame, frame pointer and return address are. */
#ifndef SEATRIAL_UNWIND_RULE_H
#define SEATRIAL_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum seatrial_base { SEATRIAL_NO_BASE, SEATRIAL_FROM_RSP, SEATRIAL_FROM_RBP };

/* The canonical frame address (CFA) is `base` + `cfa`; the return address is right below it; the
 * caller's rbp is at CFA + `rbp`, or unchanged if that is 0. */
struct seatrial_rule {
  enum seatrial_base base; /* SEATRIAL_NO_BASE: the path ends here */
  int32_t cfa;
  int32_t rbp;
};

/* The rule for the code at `pc`, by its entry in .eh_frame. It searches all loaded objects. */
struct seatrial_rule seatrial_read_rule(uintptr_t pc);

#endif
