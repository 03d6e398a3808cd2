/* The script that this process's interpreter runs: the program that a user knows. */
#ifndef SEATRIAL_SCRIPT_H
#define SEATRIAL_SCRIPT_H

#include <stddef.h>

/* Writes the script as it was named on the command line of Python ("-m NAME" for a module, "-c" for
 * a command); "" if `program` is another interpreter or none. */
void seatrial_find_script(const char* program, char* into, size_t bytes);

#endif
