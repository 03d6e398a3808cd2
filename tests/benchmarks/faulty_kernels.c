// An OpenCL layer (cl_loader_layers) that makes kernels fail. PLANTED=KERNEL:FAULT names the kernel
// and the fault: "nothing" does not launch it, "half" restores the second half of each buffer that
// it may write, "nan" fills these buffers with NaN bits. All other kernels are launched unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_ENTRIES = 256, // entries of a dispatch table
  MAX_ARGUMENTS = 32,
  SET_ARGUMENT = 38, // indices in that table (cl_icd.h of Khronos)
  LAUNCH = 59,
  KERNEL_NAME = 0x1190,
  ADDRESS = 0x1196, // query of an argument, and its answer for memory that kernels may write
  ADDRESS_GLOBAL = 0x119B,
  TYPE_QUALIFIER = 0x1199,
  TYPE_CONST = 1,
  MEMORY_TYPE = 0x1100,
  BUFFER = 0x10F0, // not an image
  MEMORY_BYTES = 0x1102,
  FAILED = -9999
};

typedef void* Handle;
typedef int SetArgument(Handle kernel, unsigned index, size_t bytes, const void* value);
typedef int Launch(Handle queue, Handle kernel, unsigned dimensions, const size_t* offset,
                   const size_t* items, const size_t* group, unsigned waits, const Handle* events,
                   Handle* event);
typedef int KernelInfo(Handle kernel, unsigned what, size_t bytes, void* value, size_t* size);
typedef int ArgumentInfo(Handle kernel, unsigned index, unsigned what, size_t bytes, void* value,
                         size_t* size);
typedef int MemoryInfo(Handle memory, unsigned what, size_t bytes, void* value, size_t* size);
typedef int Read(Handle queue, Handle memory, unsigned is_blocking, size_t at, size_t bytes,
                 void* to, unsigned waits, const Handle* events, Handle* event);
typedef int Write(Handle queue, Handle memory, unsigned is_blocking, size_t at, size_t bytes,
                  const void* from, unsigned waits, const Handle* events, Handle* event);
typedef int Fill(Handle queue, Handle memory, const void* pattern, size_t pattern_bytes, size_t at,
                 size_t bytes, unsigned waits, const Handle* events, Handle* event);
typedef int Finish(Handle queue);

static void* table[MAX_ENTRIES];
static SetArgument* set_argument;
static Launch* launch;

// The latest arguments of each kernel of this program. Each host thread has its own kernels.
typedef struct {
  Handle kernel;
  Handle memory[MAX_ARGUMENTS]; // buffers that the kernel may write; NULL elsewhere
} Given;
enum { MAX_KERNELS = 4096 };
static Given all_given[MAX_KERNELS];

static void* function(const char* name) {
  void* found = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD), name);
  if (found == NULL)
    abort();
  return found;
}

static Given* given(Handle kernel) {
  for (size_t i = 0, at = (uintptr_t)kernel / 16; i < MAX_KERNELS; ++i, ++at) {
    Given* one = &all_given[at % MAX_KERNELS];
    Handle none = NULL;
    if (one->kernel == kernel ||
        __atomic_compare_exchange_n(&one->kernel, &none, kernel, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST) ||
        none == kernel)
      return one;
  }
  abort();
}

static size_t of_memory(Handle memory, unsigned what) {
  MemoryInfo* info = (MemoryInfo*)function("clGetMemObjectInfo");
  size_t answer = 0; // 4 or 8 B
  if (info(memory, what, sizeof answer, &answer, NULL) != 0)
    abort();
  return answer;
}

static int may_write(Handle kernel, unsigned index) {
  ArgumentInfo* info = (ArgumentInfo*)function("clGetKernelArgInfo");
  unsigned address = 0;
  uint64_t qualifiers = 0;
  if (info(kernel, index, ADDRESS, sizeof address, &address, NULL) != 0 ||
      info(kernel, index, TYPE_QUALIFIER, sizeof qualifiers, &qualifiers, NULL) != 0)
    abort();
  return address == ADDRESS_GLOBAL && (qualifiers & TYPE_CONST) == 0;
}

static int keep_argument(Handle kernel, unsigned index, size_t bytes, const void* value) {
  if (index >= MAX_ARGUMENTS)
    abort();
  Handle memory = NULL;
  if (index == 0) // arguments are set in order, all of them for each launch
    memset(given(kernel)->memory, 0, sizeof given(kernel)->memory);
  if (bytes == sizeof memory && value != NULL && may_write(kernel, index))
    memcpy(&memory, value, sizeof memory);
  if (memory != NULL && of_memory(memory, MEMORY_TYPE) != BUFFER)
    memory = NULL;
  given(kernel)->memory[index] = memory;
  return set_argument(kernel, index, bytes, value);
}

// The fault planted into this kernel, or NULL.
static const char* fault_of(Handle kernel) {
  const char* planted = getenv("PLANTED");
  if (planted == NULL)
    return NULL;
  char name[256] = "";
  KernelInfo* info = (KernelInfo*)function("clGetKernelInfo");
  if (info(kernel, KERNEL_NAME, sizeof name, name, NULL) != 0)
    abort();
  const size_t length = strlen(name);
  return strncmp(planted, name, length) == 0 && planted[length] == ':' ? planted + length + 1
                                                                       : NULL;
}

static int faulty_launch(Handle queue, Handle kernel, unsigned dimensions, const size_t* offset,
                         const size_t* items, const size_t* group, unsigned waits,
                         const Handle* events, Handle* event) {
  const char* fault = fault_of(kernel);
  if (fault == NULL)
    return launch(queue, kernel, dimensions, offset, items, group, waits, events, event);
  if (event != NULL || waits != 0)
    abort(); // our programs never use this
  const Given* own = given(kernel);
  void* before[MAX_ARGUMENTS] = {NULL};
  int status = 0;
  for (unsigned i = 0; i < MAX_ARGUMENTS && strcmp(fault, "half") == 0; ++i)
    if (own->memory[i] != NULL) {
      const size_t bytes = of_memory(own->memory[i], MEMORY_BYTES);
      before[i] = malloc(bytes);
      status |= ((Read*)function("clEnqueueReadBuffer"))(
          queue, own->memory[i], 1, bytes / 2, bytes - bytes / 2, before[i], 0, NULL, NULL);
    }
  if (strcmp(fault, "nothing") != 0)
    status |= launch(queue, kernel, dimensions, offset, items, group, 0, NULL, NULL);
  for (unsigned i = 0; i < MAX_ARGUMENTS; ++i)
    if (own->memory[i] != NULL) {
      const size_t bytes = of_memory(own->memory[i], MEMORY_BYTES);
      const uint32_t no_number = 0xffffffff;
      if (strcmp(fault, "nan") == 0)
        status |= ((Fill*)function("clEnqueueFillBuffer"))(
            queue, own->memory[i], &no_number, sizeof no_number, 0, bytes / 4 * 4, 0, NULL, NULL);
      if (before[i] != NULL)
        status |= ((Write*)function("clEnqueueWriteBuffer"))(
            queue, own->memory[i], 1, bytes / 2, bytes - bytes / 2, before[i], 0, NULL, NULL);
      free(before[i]);
    }
  status |= ((Finish*)function("clFinish"))(queue);
  return status == 0 ? 0 : FAILED;
}

// The interface between loader and layer.
int clGetLayerInfo(unsigned what, size_t bytes, void* value, size_t* size);
int clGetLayerInfo(unsigned what, size_t bytes, void* value, size_t* size) {
  static const unsigned version = 100; // CL_LAYER_API_VERSION_100
  static const char name[] = "faulty kernels";
  const int is_version = what == 0x4240;
  const size_t own = is_version ? sizeof version : sizeof name;
  if (value != NULL && bytes >= own)
    memcpy(value, is_version ? (const void*)&version : name, own);
  if (size != NULL)
    *size = own;
  return 0;
}

int clInitLayer(unsigned entries, void* const* target, unsigned* own_entries, void*** own);
int clInitLayer(unsigned entries, void* const* target, unsigned* own_entries, void*** own) {
  if (entries <= LAUNCH || entries > MAX_ENTRIES)
    return FAILED;
  memcpy(table, target, entries * sizeof *target);
  set_argument = (SetArgument*)target[SET_ARGUMENT];
  launch = (Launch*)target[LAUNCH];
  table[SET_ARGUMENT] = (void*)keep_argument;
  table[LAUNCH] = (void*)faulty_launch;
  *own_entries = entries;
  *own = table;
  return 0;
}
