// The sum of n numbers: each item sums its own, each group its items' sums, and a second launch
// with one group the groups' sums. An item of a GPU has IN_FLIGHT loads of 16 B (WIDE, of WIDTH
// numbers) in flight, in rows of LANES items: a loop over single numbers would wait for each.
#if WIDTH == 4
#define TOTAL(wide) ((wide.x + wide.y) + (wide.z + wide.w))
#else
#define TOTAL(wide) (wide.x + wide.y)
#endif

KERNEL reduce(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT sums, u64 n) {
  LOCAL real part[GROUP];
  real sum = 0;
#ifdef DEVICE_IS_CPU
  FOR_EACH_INDEX(i, n) sum += in[i];
#else
  GLOBAL const WIDE* RESTRICT wide = (GLOBAL const WIDE*)in;
  const u64 rows = n / (WIDTH * LANES * IN_FLIGHT); // each with IN_FLIGHT wide loads per item
  real sum_of[IN_FLIGHT];
  _Pragma("unroll") for (u32 k = 0; k < IN_FLIGHT; ++k) sum_of[k] = 0;
  FOR_EACH_INDEX(i, rows * LANES) {
    const u64 first = i / LANES * (LANES * IN_FLIGHT) + i % LANES;
    WIDE held[IN_FLIGHT];
    _Pragma("unroll") for (u32 k = 0; k < IN_FLIGHT; ++k) held[k] = wide[first + k * LANES];
    _Pragma("unroll") for (u32 k = 0; k < IN_FLIGHT; ++k) sum_of[k] += TOTAL(held[k]);
  }
  const u64 done = rows * (WIDTH * LANES * IN_FLIGHT);
  FOR_EACH_INDEX(i, n - done) sum += in[done + i];
  _Pragma("unroll") for (u32 k = 0; k < IN_FLIGHT; ++k) sum += sum_of[k];
#endif
  part[LOCAL_ID] = sum;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    sums[GROUP_ID] = part[0];
}
