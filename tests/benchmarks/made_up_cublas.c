/* A cuBLAS that multiplies column-major matrices on the host, as documented. It rejects what the
 * real one rejects: mismatched types and compute types, and an invalid stream. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* Column-major matrices. The compute type determines the type of alpha and beta:
 * CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F. */
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
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum +=
            element(a, type_a, trans_a == 0 ? (size_t)l * pitch_a + i : (size_t)i * pitch_a + l) *
            element(b, type_b, trans_b == 0 ? (size_t)j * pitch_b + l : (size_t)l * pitch_b + j);
      const size_t at = (size_t)j * pitch_c + i;
      if (rest != 0) /* otherwise C is not read */
        sum += rest / factor * element(c, type_c, at);
      if (is_double)
        ((double*)c)[at] = factor * sum;
      else
        ((float*)c)[at] = (float)(factor * sum);
    }
  return 0;
}
