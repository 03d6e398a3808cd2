/* Programs that load MPI themselves and look its functions up by name (Julia, cffi, ctypes) get the
 * wrapper where dlsym would give them the function that the wrapper calls.
 *
 * The names dlsym and dlvsym are in the way from the start; entries of offset tables could be
 * redirected only after an object was loaded. RTLD_NEXT and RTLD_DEFAULT depend on the caller,
 * whose return address the loader reads: the next dlsym is therefore not called but jumped to, and
 * sees the program as its caller. dlopen and dlmopen are passed on in the same way; they are
 * watched for what cannot be profiled. */
#include "dlsym.h"

#include "loader.h"
#include "loading.h"
#include "next.h"
#include "process.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

static int compare(const void* name, const void* entry) {
  return strcmp(name, ((const struct seatrial_by_name*)entry)->name);
}

static const struct seatrial_by_name* named(const char* name) {
  if (name == NULL || (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "PMPI_", 5) != 0))
    return NULL;
  return bsearch(name, seatrial_by_name, seatrial_by_name_count, sizeof *seatrial_by_name, compare);
}

/* What dlsym returns instead of the next one's answer; NULL: that answer. */
__attribute__((used)) void* seatrial_instead_of(void* handle, const char* name) {
  seatrial_find_loader();
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !seatrial_is_enabled())
    return NULL;
  if (seatrial_has_namespaces && seatrial_dlsym(handle, "MPI_Init") != NULL)
    seatrial_saw_mpi_apart();
  const struct seatrial_by_name* found = named(name);
  if (found == NULL)
    return NULL;
  const seatrial_function there = (seatrial_function)seatrial_dlsym(handle, name);
  if (there == NULL || there == found->wrapper)
    return NULL;
  const seatrial_function known = __atomic_load_n(&seatrial_found[found->number], __ATOMIC_RELAXED);
  const seatrial_function next = known != NULL ? known : seatrial_look_up(name);
  return there == next ? (void*)found->wrapper : NULL;
}

__attribute__((used)) void seatrial_before_dlopen(const char* file, int flags) {
  seatrial_find_loader();
  if ((flags & RTLD_DEEPBIND) != 0 && (flags & RTLD_NOLOAD) == 0)
    seatrial_saw_loading(file, "RTLD_DEEPBIND");
}

__attribute__((used)) void seatrial_before_dlmopen(Lmid_t space, const char* file) {
  seatrial_find_loader();
  if (space == LM_ID_BASE)
    return;
  seatrial_has_namespaces = true;
  seatrial_saw_loading(file, "dlmopen");
}

/* Saves the arguments around a call of `before`; on return, rax is what it returned. */
#define SEATRIAL_ENTRY(name, before, then)                                                         \
  __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                         \
          ".cfi_startproc\n\tendbr64\n"                                                            \
          "\tpush %rdi\n\t.cfi_adjust_cfa_offset 8\n"                                              \
          "\tpush %rsi\n\t.cfi_adjust_cfa_offset 8\n"                                              \
          "\tpush %rdx\n\t.cfi_adjust_cfa_offset 8\n"                                              \
          "\tcall " before "\n"                                                                    \
          "\tpop %rdx\n\t.cfi_adjust_cfa_offset -8\n"                                              \
          "\tpop %rsi\n\t.cfi_adjust_cfa_offset -8\n"                                              \
          "\tpop %rdi\n\t.cfi_adjust_cfa_offset -8\n" then "\n.cfi_endproc\n.size " name           \
          ", . - " name "\n")

#define SEATRIAL_UNLESS_REPLACED "\ttest %rax, %rax\n\tje 1f\n\tret\n1:"

SEATRIAL_ENTRY("dlsym", "seatrial_instead_of",
               SEATRIAL_UNLESS_REPLACED "\tjmp *seatrial_next_loader(%rip)");
SEATRIAL_ENTRY("dlvsym", "seatrial_instead_of",
               SEATRIAL_UNLESS_REPLACED "\tjmp *seatrial_next_loader+8(%rip)");
SEATRIAL_ENTRY("dlopen", "seatrial_before_dlopen", "\tjmp *seatrial_next_loader+16(%rip)");
SEATRIAL_ENTRY("dlmopen", "seatrial_before_dlmopen", "\tjmp *seatrial_next_loader+24(%rip)");

#endif
