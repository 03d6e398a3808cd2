#include "loading.h"

#include "elf_symbols.h"
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool seatrial_has_namespaces;

static char loaded[1024];
static const char* loaded_how;
static bool is_mpi_apart;

void seatrial_saw_loading(const char* file, const char* how) {
  if (loaded_how != NULL || file == NULL)
    return;
  snprintf(loaded, sizeof loaded, "%s", file);
  loaded_how = how;
}

void seatrial_saw_mpi_apart(void) {
  is_mpi_apart = true;
}

static int defines_mpi(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  (void)data;
  const uintptr_t own = (uintptr_t)&loaded;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        own - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
      return 0; /* this library */
  return seatrial_defined_in(info, "MPI_Init") != 0;
}

/* A file in the folder of the tables, one for each host. */
static void write_note(void) {
  char host[256] = "";
  char name[320];
  char path[SEATRIAL_PATH_BYTES];
  gethostname(host, sizeof host - 1);
  snprintf(name, sizeof name, "%s.note", host);
  if (!seatrial_join(path, getenv("SEATRIAL_PROFILE_DIR"), name))
    return;
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0)
    return;
  char text[sizeof loaded + 64];
  const int length = snprintf(text, sizeof text, "%s %s\n", loaded_how, loaded);
  const ssize_t written = write(file, text, (size_t)length);
  (void)written;
  close(file);
}

__attribute__((destructor)) static void note_at_exit(void) {
  if (loaded_how == NULL || seatrial_process.path[0] != '\0' || !seatrial_is_enabled())
    return;
  if (is_mpi_apart || (!seatrial_has_namespaces && dl_iterate_phdr(defines_mpi, NULL) != 0))
    write_note();
}
