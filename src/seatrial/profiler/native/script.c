#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_BYTES = 4096 };

static bool is_python(const char* program) {
  const char* slash = strrchr(program, '/');
  const char* name = slash == NULL ? program : slash + 1;
  return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* The beginning of the command line: words that each end with 0. Returns its length. */
static size_t read_command(char* text) {
  const int saved = errno;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, COMMAND_BYTES - 1);
  if (file >= 0)
    close(file);
  errno = saved;
  text[length > 0 ? length : 0] = '\0';
  return length > 0 ? (size_t)length : 0;
}

static const char* word_after(const char* at, const char* end) {
  const char* next = at + strlen(at) + 1;
  return next < end ? next : NULL;
}

/* An option of Python may hold several letters; the value of some is the rest or the next word. */
static const char* behind_option(const char* option, const char* end, const char** module) {
  if (strcmp(option, "--check-hash-based-pycs") == 0) {
    const char* value = word_after(option, end);
    return value == NULL ? NULL : word_after(value, end);
  }
  if (option[1] != '-')
    for (const char* letter = option + 1; *letter != '\0'; letter++)
      if (strchr("mcWX", *letter) != NULL) {
        const char* value = letter[1] != '\0' ? letter + 1 : word_after(option, end);
        if (*letter == 'm')
          *module = value;
        return *letter == 'm' || *letter == 'c' || value == NULL ? NULL : word_after(value, end);
      }
  return word_after(option, end);
}

void seatrial_find_script(const char* program, char* into, size_t bytes) {
  char text[COMMAND_BYTES];
  into[0] = '\0';
  if (!is_python(program))
    return;
  const size_t length = read_command(text);
  const char* end = text + length;
  const char* module = NULL;
  const char* at = length == 0 ? NULL : word_after(text, end);
  while (at != NULL && at[0] == '-' && at[1] != '\0') {
    const char* next = behind_option(at, end, &module);
    if (module == NULL && next == NULL)
      snprintf(into, bytes, "-c");
    at = next;
  }
  if (module != NULL)
    snprintf(into, bytes, "-m %s", module);
  else if (at != NULL)
    snprintf(into, bytes, "%s", at);
}
