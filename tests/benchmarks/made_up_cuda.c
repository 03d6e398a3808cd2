/* A CUDA driver with four devices in host memory: 0 and 1 can access each other, and so can 2
 * and 3. It executes calls at once, as documented, but allows one peer per device at a time, and
 * rejects copies that do not name the contexts of their memory. The path of copies between
 * devices is written to the file named by MADE_UP_WAYS. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { devices = 4, max_allocated = 256 };
enum {
  invalid_value = 1,
  out_of_memory = 2,
  unsupported = 217,
  already_on = 704,
  not_on = 705,
  too_many = 711
};

typedef uint64_t Address;

static char contexts[devices];
static __thread int current = -1;
static int is_peer[devices][devices];
static int copied[devices][devices][2]; /* without peer access, and with it */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct {
  Address begin;
  size_t bytes;
  int device;
} allocated[max_allocated];

/* What other libraries queue in streams, in order; carried out when a stream is waited for, or a
 * copy follows. */
static struct {
  void (*function)(void*);
  void* argument;
} deferred[1 << 20];
static size_t deferred_count;

void made_up_defer(void (*function)(void*), void* argument) {
  if (deferred_count == sizeof deferred / sizeof deferred[0])
    abort();
  deferred[deferred_count].function = function;
  deferred[deferred_count++].argument = argument;
}

static void carry_out_deferred(void) {
  for (size_t i = 0; i < deferred_count; ++i)
    deferred[i].function(deferred[i].argument);
  deferred_count = 0;
}

static int device_of(const void* context) {
  return (int)((const char*)context - contexts);
}

/* The device that owns all of this memory; -1: none. */
static int owner_of(Address begin, size_t bytes) {
  int owner = -1;
  pthread_mutex_lock(&guard);
  for (int i = 0; i < max_allocated; ++i)
    if (allocated[i].begin != 0 && begin >= allocated[i].begin &&
        begin + bytes <= allocated[i].begin + allocated[i].bytes)
      owner = allocated[i].device;
  pthread_mutex_unlock(&guard);
  return owner;
}

__attribute__((destructor)) static void write_copies(void) {
  const char* name = getenv("MADE_UP_WAYS");
  FILE* file = name == NULL ? NULL : fopen(name, "w");
  for (int a = 0; file != NULL && a < devices; ++a)
    for (int b = 0; b < devices; ++b)
      fprintf(file, "%d %d %d %d\n", a, b, copied[a][b][0] != 0, copied[a][b][1] != 0);
  if (file != NULL)
    fclose(file);
}

int cuInit(unsigned flags) {
  return (int)flags;
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuDeviceGetCount(int* count) {
  return *count = devices, 0;
}
int cuDeviceGet(int* device, int index) {
  return *device = index, 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  return (void)device, strncpy(name, "made up", (size_t)size), 0;
}
int cuDeviceGetPCIBusId(char* name, int size, int device) {
  return snprintf(name, (size_t)size, "0000:%02x:00.0", device + 1), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return (void)device, *bytes = 1 << 30, 0;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* bytes) {
  return *free_bytes = *bytes = 1 << 30, 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  const char* capability = getenv("MADE_UP_CAPABILITY");
  const int number = capability == NULL ? 90 : atoi(capability);
  *value = attribute == 75 ? number / 10 : attribute == 76 ? number % 10 : 1;
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int device, int other) {
  return *can = device / 2 == other / 2, 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = &contexts[device], 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return (void)device, 0;
}
int cuCtxSetCurrent(void* context) {
  return current = device_of(context), 0;
}
int cuCtxEnablePeerAccess(void* context, unsigned flags) {
  const int other = device_of(context);
  if (flags != 0 || other / 2 != current / 2 || other == current)
    return unsupported;
  if (is_peer[current][other])
    return already_on;
  for (int i = 0; i < devices; ++i)
    if (is_peer[current][i])
      return too_many;
  return is_peer[current][other] = 1, 0;
}
int cuCtxDisablePeerAccess(void* context) {
  const int other = device_of(context);
  if (!is_peer[current][other])
    return not_on;
  return is_peer[current][other] = 0;
}
int cuMemAlloc_v2(Address* address, size_t bytes) {
  const char* most = getenv("MADE_UP_MEMORY");
  if (most != NULL && bytes > strtoull(most, NULL, 10))
    return out_of_memory;
  *address = (Address)malloc(bytes);
  pthread_mutex_lock(&guard);
  int place = 0;
  while (place < max_allocated - 1 && allocated[place].begin != 0)
    ++place;
  allocated[place].begin = *address;
  allocated[place].bytes = bytes;
  allocated[place].device = current;
  pthread_mutex_unlock(&guard);
  return 0;
}
int cuMemAllocManaged(Address* address, size_t bytes, unsigned flags) {
  return flags == 1 ? cuMemAlloc_v2(address, bytes) : invalid_value;
}
int cuMemFree_v2(Address address) {
  pthread_mutex_lock(&guard);
  for (int i = 0; i < max_allocated; ++i)
    if (allocated[i].begin == address)
      allocated[i].begin = 0;
  pthread_mutex_unlock(&guard);
  return free((void*)address), 0;
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return (void)flags, *address = malloc(bytes), 0;
}
int cuMemFreeHost(void* address) {
  return free(address), 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  return (void)flags, *stream = &contexts[current], 0;
}
int cuStreamDestroy_v2(void* stream) {
  return (void)stream, 0;
}
int cuStreamSynchronize(void* stream) {
  carry_out_deferred();
  return stream != &contexts[current];
}
int cuEventCreate(void** event, unsigned flags) {
  return (void)flags, *event = malloc(sizeof(struct timespec)), 0;
}
int cuEventDestroy_v2(void* event) {
  return free(event), 0;
}
int cuEventRecord(void* event, void* stream) {
  return (void)stream, clock_gettime(CLOCK_MONOTONIC, event);
}
int cuEventSynchronize(void* event) {
  return event == NULL;
}
int cuEventElapsedTime(float* milliseconds, void* first, void* last) {
  const struct timespec* begin = first;
  const struct timespec* end = last;
  *milliseconds = (float)(1e3 * (double)(end->tv_sec - begin->tv_sec) +
                          1e-6 * (double)(end->tv_nsec - begin->tv_nsec));
  return 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  carry_out_deferred();
  if (owner_of(to, bytes) != current || stream != &contexts[current])
    return invalid_value;
  return memcpy((void*)to, from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  carry_out_deferred();
  if (owner_of(from, bytes) != current || stream != &contexts[current])
    return invalid_value;
  return memcpy(to, (void*)from, bytes), 0;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  if (owner_of(to, bytes) != current || owner_of(from, bytes) != current ||
      stream != &contexts[current])
    return invalid_value;
  return memcpy((void*)to, (void*)from, bytes), 0;
}
int cuMemcpyPeerAsync(Address to, void* to_context, Address from, void* from_context, size_t bytes,
                      void* stream) {
  const int target = device_of(to_context);
  const int source = device_of(from_context);
  if (owner_of(to, bytes) != target || owner_of(from, bytes) != source ||
      stream != &contexts[current])
    return invalid_value;
  copied[source][target][is_peer[source][target] && is_peer[target][source]] = 1;
  return memcpy((void*)to, (void*)from, bytes), 0;
}
/* CUDA_MEMCPY2D between host (memory type 1) and device (2). */
typedef struct {
  size_t x, y;
  int type;
  const char* host;
  Address device;
  void* array;
  size_t pitch;
} End;
typedef struct {
  End from, to;
  size_t bytes, rows;
} Copy2D;
static char* row_of(const End* end, size_t row, size_t bytes) {
  const size_t at = (end->y + row) * end->pitch + end->x;
  if (end->type == 1)
    return (char*)end->host + at;
  return end->type == 2 && owner_of(end->device + at, bytes) == current ? (char*)end->device + at
                                                                        : NULL;
}
int cuMemcpy2DAsync_v2(const Copy2D* copy, void* stream) {
  for (size_t row = 0; row < copy->rows; ++row) {
    const char* from = row_of(&copy->from, row, copy->bytes);
    char* to = row_of(&copy->to, row, copy->bytes);
    if (from == NULL || to == NULL || stream != &contexts[current])
      return invalid_value;
    memcpy(to, from, copy->bytes);
  }
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return stream == &contexts[current] && event != NULL && flags == 0 ? 0 : invalid_value;
}
int cuMemsetD32Async(Address to, unsigned pattern, size_t count, void* stream) {
  if (owner_of(to, 4 * count) != current || stream != &contexts[current])
    return invalid_value;
  for (size_t i = 0; i < count; ++i)
    ((unsigned*)to)[i] = pattern;
  return 0;
}
