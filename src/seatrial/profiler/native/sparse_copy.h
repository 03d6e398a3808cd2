/* Copies that leave out what is zero: tables and traces are mostly holes. */
#ifndef SEATRIAL_SPARSE_COPY_H
#define SEATRIAL_SPARSE_COPY_H

#include <stdbool.h>
#include <stdint.h>

/* Writes so much memory to that offset of a file, without its pages of zeros. 0, or an error
 * number. */
int seatrial_write_sparse(int file, const char* data, uint64_t bytes, uint64_t at);

/* Makes `to` with the content of `from`: under the name `private_name` until it is whole. 0, or an
 * error number; then `to` is what it was. */
int seatrial_copy_file(const char* from, const char* private_name, const char* to);

#endif
