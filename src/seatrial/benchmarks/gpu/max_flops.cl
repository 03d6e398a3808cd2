// Chains of dependent operations, CHAINS per item, so that the time is bound only by the throughput
// of the units. Operands are kernel arguments and every state depends on the number of operations:
// a compiler cannot remove any.
#define RUN(operation)                                                                             \
  real x[CHAINS];                                                                                  \
  for (int c = 0; c < CHAINS; ++c)                                                                 \
    x[c] = start[(LOCAL_ID + c) % STARTS];                                                         \
  for (u32 i = 0; i < blocks; ++i) {                                                               \
    _Pragma("unroll") for (int k = 0; k < UNROLLED; ++k) {                                         \
      _Pragma("unroll") for (int c = 0; c < CHAINS; ++c) operation;                                \
    }                                                                                              \
  }                                                                                                \
  real sum = 0;                                                                                    \
  for (int c = 0; c < CHAINS; ++c)                                                                 \
    sum += x[c];                                                                                   \
  out[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;

KERNEL chain_add(GLOBAL const real* RESTRICT start, GLOBAL real* RESTRICT out, real a, real b,
                 u32 blocks) {
  RUN(x[c] = x[c] + b)
}

KERNEL chain_multiply(GLOBAL const real* RESTRICT start, GLOBAL real* RESTRICT out, real a, real b,
                      u32 blocks) {
  RUN(x[c] = x[c] * a)
}

KERNEL chain_fma(GLOBAL const real* RESTRICT start, GLOBAL real* RESTRICT out, real a, real b,
                 u32 blocks) {
  RUN(x[c] = FMA(x[c], a, b))
}

// Alternates a multiplication and a multiply-add, as SHOC's MulMAdd.
KERNEL chain_mixed(GLOBAL const real* RESTRICT start, GLOBAL real* RESTRICT out, real a, real b,
                   u32 blocks) {
  RUN(x[c] = FMA(x[c] * a, a, b))
}
