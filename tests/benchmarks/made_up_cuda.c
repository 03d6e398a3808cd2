/* A CUDA driver with one device, whose memory is the host's, and a cuBLAS on it: they do at once
 * what they are asked for, as documented, and know no kernels. Only to see what a program asks for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t Address;

int cuInit(unsigned flags) {
  return (int)flags;
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuDeviceGetCount(int* count) {
  return *count = 1, 0;
}
int cuDeviceGet(int* device, int index) {
  return *device = index, 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  return (void)device, strncpy(name, "made up", (size_t)size), 0;
}
int cuDeviceGetPCIBusId(char* name, int size, int device) {
  return (void)device, strncpy(name, "0000:01:00.0", (size_t)size), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return (void)device, *bytes = 1 << 30, 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  const char* capability = getenv("MADE_UP_CAPABILITY");
  const int number = capability == NULL ? 90 : atoi(capability);
  *value = attribute == 75 ? number / 10 : attribute == 76 ? number % 10 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return (void)device, *context = &cuInit, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return (void)device, 0;
}
int cuCtxSetCurrent(void* context) {
  return context != (void*)&cuInit;
}
int cuMemAlloc_v2(Address* address, size_t bytes) {
  return *address = (Address)malloc(bytes), 0;
}
int cuMemFree_v2(Address address) {
  return free((void*)address), 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  return (void)flags, *stream = &cuMemFree_v2, 0;
}
int cuStreamDestroy_v2(void* stream) {
  return stream != (void*)&cuMemFree_v2;
}
int cuStreamSynchronize(void* stream) {
  return stream != (void*)&cuMemFree_v2;
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
  return (void)stream, memcpy((void*)to, from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  return (void)stream, memcpy(to, (void*)from, bytes), 0;
}
int cuMemsetD32Async(Address to, unsigned pattern, size_t count, void* stream) {
  (void)stream;
  for (size_t i = 0; i < count; ++i)
    ((unsigned*)to)[i] = pattern;
  return 0;
}

static void* stream_of_cublas;
int cublasCreate_v2(void** handle) {
  return *handle = &stream_of_cublas, 0;
}
int cublasDestroy_v2(void* handle) {
  return handle != &stream_of_cublas;
}
int cublasGetVersion_v2(void* handle, int* version) {
  return (void)handle, *version = 130000, 0;
}
int cublasSetStream_v2(void* handle, void* stream) {
  return (void)handle, stream_of_cublas = stream, 0;
}
const char* cublasGetStatusString(int status) {
  return status == 7 ? "CUBLAS_STATUS_INVALID_VALUE" : "?";
}

/* CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF. */
static double element(const void* matrix, int type, size_t at) {
  if (type == 0)
    return ((const float*)matrix)[at];
  if (type == 1)
    return ((const double*)matrix)[at];
  if (type == 2)
    return (double)((const _Float16*)matrix)[at];
  const uint32_t bits = (uint32_t)((const uint16_t*)matrix)[at] << 16;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* Matrices in columns. The kind of computation says what alpha and beta are: CUBLAS_COMPUTE_32F,
 * CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F. */
int cublasGemmEx(void* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
                 const void* a, int type_a, int pitch_a, const void* b, int type_b, int pitch_b,
                 const void* beta, void* c, int type_c, int pitch_c, int compute, int algorithm) {
  const int is_double = compute == 70;
  const int is_known =
      type_a == type_b && (is_double       ? type_a == 1 && type_c == 1
                           : compute == 77 ? type_a == 0 && type_c == 0
                                           : compute == 68 && type_a != 1 && type_c == 0);
  if (!is_known || algorithm != -1 || handle != &stream_of_cublas || stream_of_cublas == NULL)
    return 7;
  const double factor = is_double ? *(const double*)alpha : *(const float*)alpha;
  const double rest = is_double ? *(const double*)beta : *(const float*)beta;
  if (rest != 0)
    return 7;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum +=
            element(a, type_a, trans_a == 0 ? (size_t)l * pitch_a + i : (size_t)i * pitch_a + l) *
            element(b, type_b, trans_b == 0 ? (size_t)j * pitch_b + l : (size_t)l * pitch_b + j);
      if (is_double)
        ((double*)c)[(size_t)j * pitch_c + i] = factor * sum;
      else
        ((float*)c)[(size_t)j * pitch_c + i] = (float)(factor * sum);
    }
  return 0;
}
