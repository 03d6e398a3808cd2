/* Sparse copies that skip zero pages: tables and traces are mostly holes. */
#ifndef SEATRIAL_SPARSE_COPY_H
#define SEATRIAL_SPARSE_COPY_H

#include <stdbool.h>
#include <stdint.h>

/* Writes `bytes` of memory to a file at offset `at`, skipping zero pages. Returns 0 or an error
 * number. */
int seatrial_write_sparse(int file, const char* data, uint64_t bytes, uint64_t at);

/* Copies `from` to `to`, under the name `private_name` until the copy is complete. Returns 0 or
 * an error number; on failure `to` is unchanged. */
int seatrial_copy_file(const char* from, const char* private_name, const char* to);

#endif
