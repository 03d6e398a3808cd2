// Chains of dependent operations, CHAINS of them in each item, so that only the rate at which the
// units take them bounds the time. What an operation works on comes from outside and every state
// depends on the number of operations: a compiler can leave none out.
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

// A multiplication and a multiply-add in turn, as SHOC's MulMAdd.
KERNEL chain_mixed(GLOBAL const real* RESTRICT start, GLOBAL real* RESTRICT out, real a, real b,
                   u32 blocks) {
  RUN(x[c] = FMA(x[c] * a, a, b))
}
