#include "rebind.h"

#include "elf_symbols.h"
#include "loader.h"
#include "process.h"
#include "system_time.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CALLED = R_X86_64_JUMP_SLOT, TAKEN = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALLED = R_AARCH64_JUMP_SLOT, TAKEN = R_AARCH64_GLOB_DAT };
#endif

extern const char __ehdr_start __attribute__((visibility("hidden")));

struct object {
  uintptr_t base;
  const ElfW(Sym) * symbols;
  const char* strings;
  const ElfW(Rela) * tables[2];
  size_t counts[2];
  uintptr_t relro_begin, relro_end; /* read-only after relocation (RELRO) */
  uintptr_t begin, end;             /* mapped range */
};

static bool is_within(const struct object* object, uintptr_t value) {
  return value >= object->begin && value < object->end;
}

static int compare(const void* name, const void* entry) {
  return strcmp(name, ((const struct seatrial_unnamed*)entry)->name);
}

static const struct seatrial_unnamed* unnamed_of(const char* name) {
  if (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "PMPI_", 5) != 0)
    return NULL;
  return bsearch(name, seatrial_unnamed, seatrial_unnamed_count, sizeof *seatrial_unnamed, compare);
}

static uintptr_t address(const struct object* object, ElfW(Addr) value) {
  return seatrial_dynamic_address(object->base, value);
}

static bool read_dynamic(struct object* object, const ElfW(Dyn) * entry) {
  size_t bytes[2] = {0, 0};
  for (; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
    case DT_SYMTAB:
      object->symbols = (const void*)address(object, entry->d_un.d_ptr);
      break;
    case DT_STRTAB:
      object->strings = (const void*)address(object, entry->d_un.d_ptr);
      break;
    case DT_JMPREL:
      object->tables[0] = (const void*)address(object, entry->d_un.d_ptr);
      break;
    case DT_PLTRELSZ:
      bytes[0] = entry->d_un.d_val;
      break;
    case DT_RELA:
      object->tables[1] = (const void*)address(object, entry->d_un.d_ptr);
      break;
    case DT_RELASZ:
      bytes[1] = entry->d_un.d_val;
      break;
    default:
      break;
    }
  }
  for (int i = 0; i < 2; i++)
    object->counts[i] = object->tables[i] == NULL ? 0 : bytes[i] / sizeof(ElfW(Rela));
  return object->symbols != NULL && object->strings != NULL;
}

static bool read_object(struct object* object, const struct dl_phdr_info* info) {
  const ElfW(Dyn)* dynamic = NULL;
  *object = (struct object){.base = info->dlpi_addr, .begin = UINTPTR_MAX};
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    const uintptr_t end = begin + segment->p_memsz;
    if (segment->p_type == PT_DYNAMIC)
      dynamic = (const void*)begin;
    else if (segment->p_type == PT_GNU_RELRO) {
      object->relro_begin = begin;
      object->relro_end = end;
    } else if (segment->p_type == PT_LOAD) {
      object->begin = begin < object->begin ? begin : object->begin;
      object->end = end > object->end ? end : object->end;
    }
  }
  if (is_within(object, (uintptr_t)&__ehdr_start))
    return false; /* this library */
  return dynamic != NULL && read_dynamic(object, dynamic);
}

static void write_entry(const struct object* object, uintptr_t* entry, uintptr_t value) {
  const uintptr_t at = (uintptr_t)entry;
  if (at < object->relro_begin || at >= object->relro_end) {
    __atomic_store_n(entry, value, __ATOMIC_RELAXED);
    return;
  }
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  void* const begin = (void*)(at / page * page);
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0)
    return;
  __atomic_store_n(entry, value, __ATOMIC_RELAXED);
  mprotect(begin, page, PROT_READ);
}

/* Only entries that are bound to the next function, or will be. Another tool's wrapper stays in
 * place; it calls the function through its own entry. */
static void rebind_to(const struct object* object, const ElfW(Rela) * relocation, const char* name,
                      seatrial_function wrapper, uintptr_t next) {
  uintptr_t* entry = (uintptr_t*)(object->base + relocation->r_offset);
  uintptr_t bound = *entry;
  if (bound == 0 || bound == (uintptr_t)wrapper) /* 0: a weak symbol without a definition */
    return;
  if (ELF64_R_TYPE(relocation->r_info) == CALLED && bound != next &&
      is_within(object, bound)) { /* lazily bound: not resolved yet */
    const uintptr_t first = (uintptr_t)seatrial_dlsym(RTLD_DEFAULT, name);
    bound = first == 0 || is_within(object, first) ? next : first;
  }
  if (next != 0 && bound == next)
    write_entry(object, entry, (uintptr_t)wrapper);
}

/* What an object's entries are searched for. */
enum { MPI_FUNCTIONS = 1, SYSTEM_FUNCTIONS = 2 };

static void rebind_entry(const struct object* object, const ElfW(Rela) * relocation,
                         unsigned wanted) {
  const unsigned kind = (unsigned)ELF64_R_TYPE(relocation->r_info);
  if (kind != CALLED && kind != TAKEN)
    return;
  const ElfW(Sym)* symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
  const char* name = object->strings + symbol->st_name;
  const struct seatrial_unnamed* unnamed = wanted & MPI_FUNCTIONS ? unnamed_of(name) : NULL;
  if (unnamed != NULL) {
    rebind_to(object, relocation, name, unnamed->wrapper, (uintptr_t)seatrial_look_up(name));
    return;
  }
  const struct seatrial_timed* timed = wanted & SYSTEM_FUNCTIONS ? seatrial_timed_of(name) : NULL;
  if (timed != NULL)
    rebind_to(object, relocation, name, timed->wrapper, (uintptr_t)*timed->next);
}

/* Objects loaded so far, when the entries of either kind were last written. */
struct pass {
  unsigned long long known[2];
  unsigned long long now;
  bool has_system;
};

static int rebind_object(struct dl_phdr_info* info, size_t size, void* data) {
  struct pass* pass = data;
  unsigned wanted = MPI_FUNCTIONS | (pass->has_system ? SYSTEM_FUNCTIONS : 0u);
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs)) {
    pass->now = info->dlpi_adds;
    if (pass->now == pass->known[0])
      wanted &= ~(unsigned)MPI_FUNCTIONS;
    if (pass->now == pass->known[1])
      wanted &= ~(unsigned)SYSTEM_FUNCTIONS;
    if (wanted == 0)
      return 1;
  }
  struct object object;
  if (read_object(&object, info))
    for (int i = 0; i < 2; i++)
      for (size_t k = 0; k < object.counts[i]; k++)
        rebind_entry(&object, &object.tables[i][k], wanted);
  return 0;
}

void seatrial_rebind(void) {
  static int is_busy;
  static unsigned long long known[2];
  if (!seatrial_is_enabled() || __atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE) != 0)
    return; /* another thread is doing it */
  const struct seatrial_header* header = seatrial_process.header;
  struct pass pass = {
      {known[0], known[1]}, known[0], header != NULL && header->times_system_calls != 0};
  dl_iterate_phdr(rebind_object, &pass);
  known[0] = pass.now;
  if (pass.has_system)
    known[1] = pass.now;
  __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void rebind_at_start(void) {
  seatrial_rebind();
}
