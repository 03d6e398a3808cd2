/* OpenMP by the tools interface of its runtime. */
#ifndef SEATRIAL_OMPT_H
#define SEATRIAL_OMPT_H

/* When the table was created: the runtime may have started before. */
void seatrial_open_openmp(void);

#endif
