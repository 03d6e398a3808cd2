/* The Python code that makes a call. MPI is called without the interpreter's lock (mpi4py releases
 * it) and must not wait for it, so the frames of this thread, which do not change during the call,
 * are read from memory. */
#ifndef SEATRIAL_PYTHON_FRAMES_H
#define SEATRIAL_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seatrial_python_frame {
  const char* code;     /* PyCodeObject */
  uint64_t instruction; /* identifies one in `code` */
  const char* frame;
};

/* Whether this process has a Python whose frames can be read. */
bool seatrial_find_python(void);

/* Finds out whether what is read agrees with what the interpreter says. It waits for the
 * interpreter's lock: only for MPI_Init, when nobody who holds it can wait for a message of this
 * thread. */
void seatrial_check_python(void);

/* The innermost frames of this thread; their number is 0 outside of Python. */
unsigned seatrial_python_frames(struct seatrial_python_frame* frames, unsigned most);

/* Writes "line function\0file\0"; returns the number of bytes, 0 if there is too little space. */
size_t seatrial_describe_python(const struct seatrial_python_frame* frame, char* text,
                                size_t space);

#endif
