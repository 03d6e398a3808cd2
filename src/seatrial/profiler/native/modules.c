#include "modules.h"

#include "table_file.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct text {
  char* begin;
  size_t used;
};

static int write_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct text* text = data;
  char program[1024];
  const char* path = info->dlpi_name;
  if (path == NULL || path[0] == '\0') { /* the executable */
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
      return 0;
    program[length] = '\0';
    path = program;
  }
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
      continue;
    const unsigned long begin = info->dlpi_addr + segment->p_vaddr;
    char line[1280];
    const int length = snprintf(line, sizeof line, "%lx %lx %lx %s\n", begin,
                                begin + segment->p_memsz, (unsigned long)segment->p_offset, path);
    if (length < 0 || (size_t)length >= sizeof line ||
        text->used + (size_t)length >= SEATRIAL_MODULE_BYTES)
      continue;
    memcpy(text->begin + text->used, line, (size_t)length);
    text->used += (size_t)length;
  }
  return 0;
}

void seatrial_write_modules(char* begin) {
  struct text text = {begin, 0};
  dl_iterate_phdr(write_object, &text);
  memset(begin + text.used, 0, SEATRIAL_MODULE_BYTES - text.used);
}
