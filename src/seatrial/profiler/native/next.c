#include "next.h"

#include "rebind.h"

#include <stdio.h>
#include <unistd.h>

seatrial_function seatrial_find_next(unsigned number) {
  seatrial_rebind();
  const char* name = seatrial_names[number];
  seatrial_function function = seatrial_look_up(name);
  if (function == NULL && name[0] == 'P')
    function = seatrial_look_up(name + 1);
  else if (function == NULL && name[0] == 'M') {
    char behind[128];
    snprintf(behind, sizeof behind, "P%s", name);
    function = seatrial_look_up(behind);
  }
  if (function == NULL) {
    fprintf(stderr, "seatrial: symbol lookup error: undefined symbol: %s\n", name);
    _exit(127);
  }
  __atomic_store_n(&seatrial_found[number], function, __ATOMIC_RELAXED);
  return function;
}
