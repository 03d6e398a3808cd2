// y = A x for a sparse matrix in three formats (N. Bell and M. Garland, "Implementing sparse
// matrix-vector multiplication on throughput-oriented processors", 2009; F. Vazquez et al.,
// "Improving the performance of the sparse matrix vector product with GPUs", 2010).

// CSR, one item per row: accesses of adjacent items are far apart.
KERNEL csr_scalar(GLOBAL const real* RESTRICT values, GLOBAL const u32* RESTRICT columns,
                  GLOBAL const u32* RESTRICT starts, GLOBAL const real* RESTRICT x,
                  GLOBAL real* RESTRICT y, u32 rows) {
  FOR_EACH_INDEX(row, rows) {
    real sum = 0;
    for (u32 k = starts[row]; k < starts[row + 1]; ++k)
      sum += values[k] * x[columns[k]];
    y[row] = sum;
  }
}

// CSR, LANES items per row. All items of a group iterate equally often, since they synchronise.
KERNEL csr_vector(GLOBAL const real* RESTRICT values, GLOBAL const u32* RESTRICT columns,
                  GLOBAL const u32* RESTRICT starts, GLOBAL const real* RESTRICT x,
                  GLOBAL real* RESTRICT y, u32 rows) {
#ifndef WARP
  LOCAL real part[GROUP];
#endif
  for (u32 first = GROUP_ID * (GROUP / LANES); first < rows; first += GROUPS * (GROUP / LANES)) {
    const u32 lane = LOCAL_ID % LANES;
    const u32 row = first + LOCAL_ID / LANES;
    real sum = 0;
    if (row < rows)
      for (u32 k = starts[row] + lane; k < starts[row + 1]; k += LANES)
        sum += values[k] * x[columns[k]];
#ifdef WARP
    for (u32 mask = LANES / 2; mask > 0; mask /= 2)
      sum += SHUFFLE_XOR(sum, mask);
#else
    part[LOCAL_ID] = sum;
    BARRIER();
    if (lane == 0)
      for (u32 other = 1; other < LANES; ++other)
        sum += part[LOCAL_ID + other];
    BARRIER(); // before the next rows
#endif
    if (lane == 0 && row < rows)
      y[row] = sum;
  }
}

// ELLPACK-R: rows padded to one length, stored by column, and the actual length of each row.
KERNEL ellpack_r(GLOBAL const real* RESTRICT values, GLOBAL const u32* RESTRICT columns,
                 GLOBAL const u32* RESTRICT lengths, GLOBAL const real* RESTRICT x,
                 GLOBAL real* RESTRICT y, u32 rows) {
  FOR_EACH_INDEX(row, rows) {
    real sum = 0;
    for (u32 k = 0; k < lengths[row]; ++k) {
      const u64 at = (u64)k * rows + row;
      sum += values[at] * x[columns[at]];
    }
    y[row] = sum;
  }
}
