#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* Parses lines of "name: number". No scanf: this runs inside programs that may have set a
 * locale. */
static int parse(const char* text, struct seatrial_io* into) {
  int known = 0;
  while (known < SEATRIAL_IO_COUNTERS) {
    while (*text != ':' && *text != '\0')
      text++;
    if (*text == '\0')
      return EPROTO;
    for (text++; *text == ' '; text++)
      ;
    if (*text < '0' || *text > '9')
      return EPROTO;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
      value = value * 10 + (uint64_t)(*text - '0');
    into->counters[known++] = value;
  }
  return 0;
}

int seatrial_read_io(int file, struct seatrial_io* into) {
  char text[512];
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  if (length <= 0)
    return length < 0 ? errno : ESRCH;
  text[length] = '\0';
  const int reason = parse(text, into);
  if (reason != 0)
    return reason;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  into->at_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  return 0;
}

int seatrial_read_own_io(struct seatrial_io* into) {
  const int file = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return errno;
  const int reason = seatrial_read_io(file, into);
  close(file);
  return reason;
}
