/* Looks up symbols after this library: those of another preloaded tool, else those of MPI. */
#ifndef SEATRIAL_LOOK_UP_H
#define SEATRIAL_LOOK_UP_H

typedef void (*seatrial_function)(void);

/* NULL if there is none. */
seatrial_function seatrial_look_up(const char* name);
void* seatrial_look_up_data(const char* name);

#endif
