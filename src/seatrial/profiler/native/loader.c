#include "loader.h"

#include "elf_symbols.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern const char __ehdr_start __attribute__((visibility("hidden")));

enum { FUNCTIONS = 4 };
static const char* const function_names[FUNCTIONS] = {"dlsym", "dlvsym", "dlopen", "dlmopen"};

struct seatrial_loader seatrial_next_loader;
static void* of_c_library[FUNCTIONS];

struct search {
  bool is_behind; /* this library */
  void* next[FUNCTIONS];
  void* own[FUNCTIONS];
};

static bool is_this_library(const struct dl_phdr_info* info) {
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (uintptr_t)&__ehdr_start - begin < segment->p_memsz)
      return true;
  }
  return false;
}

static bool is_c_library(const char* path) {
  const char* slash = path == NULL ? NULL : strrchr(path, '/');
  const char* name = slash == NULL ? path : slash + 1;
  return name != NULL && (strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0 ||
                          strncmp(name, "libdl.so", 8) == 0 || strncmp(name, "libdl-2.", 8) == 0);
}

static int search_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  if (is_this_library(info)) {
    search->is_behind = true;
    return 0;
  }
  for (int i = 0; i < FUNCTIONS && search->is_behind; i++) {
    void* found = (void*)seatrial_defined_in(info, function_names[i]);
    if (search->next[i] == NULL)
      search->next[i] = found;
    if (search->own[i] == NULL && is_c_library(info->dlpi_name))
      search->own[i] = found;
  }
  return 0;
}

void seatrial_find_loader(void) {
  static bool is_found;
  if (__atomic_load_n(&is_found, __ATOMIC_ACQUIRE))
    return;
  struct search search = {.is_behind = false};
  dl_iterate_phdr(search_object, &search);
  for (int i = 0; i < FUNCTIONS; i++)
    of_c_library[i] = search.own[i] != NULL ? search.own[i] : search.next[i];
  seatrial_next_loader =
      (struct seatrial_loader){search.next[0], search.next[1], search.next[2], search.next[3]};
  __atomic_store_n(&is_found, true, __ATOMIC_RELEASE);
}

void* seatrial_dlsym(void* handle, const char* name) {
  seatrial_find_loader();
  void* const found = ((void* (*)(void*, const char*))of_c_library[0])(handle, name);
  __asm__ volatile("" ::: "memory"); /* not a tail call: the caller must be in this library */
  return found;
}

void* seatrial_dlopen(const char* file, int flags) {
  seatrial_find_loader();
  void* const found = ((void* (*)(const char*, int))of_c_library[2])(file, flags);
  __asm__ volatile("" ::: "memory");
  return found;
}
