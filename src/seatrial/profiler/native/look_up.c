#include "look_up.h"

#include "loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

extern const char __ehdr_start __attribute__((visibility("hidden")));

/* The next definition in the loader's search order, behind this library. */
static void* next_in_order(const char* name) {
  return seatrial_dlsym(RTLD_NEXT, name);
}

struct search {
  const char* name;
  void* found;
};

/* An MPI library that was loaded with dlopen and RTLD_LOCAL (as Python modules do) is not in the
 * global search order, so each loaded object is searched. */
static int search_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (uintptr_t)&__ehdr_start - begin < segment->p_memsz)
      return 0; /* this library */
  }
  if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0')
    return 0;
  void* object = seatrial_dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (object == NULL)
    return 0;
  search->found = seatrial_dlsym(object, search->name);
  return search->found != NULL;
}

static void* in_any_object(const char* name) {
  struct search search = {name, NULL};
  dl_iterate_phdr(search_object, &search);
  return search.found;
}

/* The program may hold a copy relocation of the object, which is then the one in use. */
void* seatrial_look_up_data(const char* name) {
  void* found = seatrial_dlsym(RTLD_DEFAULT, name);
  return found != NULL ? found : in_any_object(name);
}

seatrial_function seatrial_look_up(const char* name) {
  void* found = next_in_order(name);
  if (found == NULL)
    found = in_any_object(name);
  seatrial_function function;
  memcpy(&function, &found, sizeof function);
  return function;
}
