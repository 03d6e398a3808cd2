/* MPI_Pcontrol, in C and Fortran: 0 stops recording, 1 resumes it; 1 and -1 with a name begin and
 * end a region. Whether a name was passed cannot be known: in a call without one its register
 * holds anything. Therefore only readable, printable, terminated text counts as a name, and 1
 * resumes first. */
#include "look_up.h"
#include "region.h"
#include "stopped.h"
#include "word.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SMALLEST_ADDRESS = 4096 };

/* The kernel reads the mask before it rejects the first argument. */
static bool is_readable(uintptr_t address) {
  const int saved = errno;
  const long result = syscall(SYS_rt_sigprocmask, ~0, address & ~(uintptr_t)7, NULL, 8);
  const bool is_fault = result == -1 && errno == EFAULT;
  errno = saved;
  return !is_fault;
}

static bool is_name(word text) {
  const uintptr_t at = (uintptr_t)text;
  if (at < SMALLEST_ADDRESS || at > UINTPTR_MAX - SEATRIAL_REGION_NAME_BYTES)
    return false;
  for (unsigned i = 0; i < SEATRIAL_REGION_NAME_BYTES; i++) {
    if ((i == 0 || (at + i) % 8 == 0) && !is_readable(at + i))
      return false;
    const unsigned char letter = *(const unsigned char*)(at + i);
    if (letter == '\0')
      return i > 0;
    if (letter < ' ' || letter == 0x7f)
      return false;
  }
  return false;
}

static void control(int level, word name) {
  if (level == 0)
    seatrial_stop();
  else if (level == 1 && seatrial_is_stopped)
    seatrial_resume();
  else if (level == 1 && is_name(name))
    seatrial_begin_region((const char*)(uintptr_t)name);
  else if (level == -1 && is_name(name))
    seatrial_end_region((const char*)(uintptr_t)name);
}

static _Thread_local bool is_in_binding; /* a Fortran binding may call the C function */

__attribute__((visibility("default"))) word MPI_Pcontrol(word level, word name, word more,
                                                         word other, word third, word last);

/* It is declared with any number of arguments: those in registers are passed on. */
word MPI_Pcontrol(word level, word name, word more, word other, word third, word last) {
  typedef int (*next_t)(int, ...);
  if (seatrial_is_enabled() && !is_in_binding)
    control((int)level, name);
  next_t next = (next_t)seatrial_look_up("MPI_Pcontrol");
  if (next == NULL)
    next = (next_t)seatrial_look_up("PMPI_Pcontrol");
  return next == NULL ? 0 : (word)next((int)level, name, more, other, third, last);
}

static void bound(const char* symbol, word level, word name, word more) {
  typedef void (*next_t)(word, word, word);
  if (seatrial_is_enabled())
    control(*(const int*)(uintptr_t)level, name);
  const next_t next = (next_t)seatrial_look_up(symbol);
  is_in_binding = true;
  if (next != NULL)
    next(level, name, more);
  is_in_binding = false;
}

#define BINDING(symbol)                                                                            \
  __attribute__((visibility("default"))) void symbol(word level, word name, word more);            \
  void symbol(word level, word name, word more) {                                                  \
    bound(#symbol, level, name, more);                                                             \
  }

BINDING(mpi_pcontrol_)
BINDING(mpi_pcontrol_f08_)
