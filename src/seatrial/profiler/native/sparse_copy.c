#include "sparse_copy.h"

#include "file_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 8 * PAGE };

static int write_all(int file, const char* data, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    const ssize_t written = pwrite(file, data, bytes, (off_t)at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? errno : EIO;
    data += written;
    at += (uint64_t)written;
    bytes -= (uint64_t)written;
  }
  return 0;
}

static bool is_zero(const char* data, uint64_t bytes) {
  return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

int seatrial_write_sparse(int file, const char* data, uint64_t bytes, uint64_t at) {
  uint64_t run = 0; /* start of the run of pages to write */
  uint64_t offset = 0;
  while (offset < bytes) {
    const uint64_t page = bytes - offset < PAGE ? bytes - offset : PAGE;
    if (is_zero(data + offset, page)) {
      const int reason = write_all(file, data + run, offset - run, at + run);
      if (reason != 0)
        return reason;
      run = offset + page;
    }
    offset += page;
  }
  return write_all(file, data + run, offset - run, at + run);
}

static int copy_part(int from, int to, uint64_t at, uint64_t end) {
  char chunk[CHUNK];
  while (at < end) {
    const uint64_t wanted = end - at < CHUNK ? end - at : CHUNK;
    const ssize_t length = pread(from, chunk, wanted, (off_t)at);
    if (length < 0 && errno == EINTR)
      continue;
    if (length < 0)
      return errno;
    if (length == 0)
      return 0;
    const int reason = seatrial_write_sparse(to, chunk, (uint64_t)length, at);
    if (reason != 0)
      return reason;
    at += (uint64_t)length;
  }
  return 0;
}

static int copy_content(int from, int to) {
  struct stat status;
  if (seatrial_status_of(from, &status) != 0 || ftruncate(to, status.st_size) != 0)
    return errno;
  const uint64_t size = (uint64_t)status.st_size;
  uint64_t at = 0;
  while (at < size) {
    const off_t data = lseek(from, (off_t)at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) /* the rest of the file is a hole */
      return 0;
    const off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    const uint64_t end =
        hole < 0 ? size : (uint64_t)hole; /* the file system does not support holes */
    const int reason = copy_part(from, to, data < 0 ? at : (uint64_t)data, end);
    if (reason != 0)
      return reason;
    at = end;
  }
  return 0;
}

int seatrial_copy_file(const char* from, const char* private_name, const char* to) {
  const int source = open(from, O_RDONLY | O_CLOEXEC);
  if (source < 0)
    return errno;
  const int target = open(private_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int reason = target < 0 ? errno : copy_content(source, target);
  close(source);
  if (target < 0)
    return reason;
  if (close(target) != 0 && reason == 0) /* network file systems report a full disk here */
    reason = errno;
  if (reason == 0 && rename(private_name, to) != 0)
    reason = errno;
  if (reason != 0)
    unlink(private_name);
  return reason;
}
