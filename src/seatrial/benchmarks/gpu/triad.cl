// A block of STREAM's triad: 2 operations per element.
KERNEL triad(GLOBAL real* RESTRICT a, GLOBAL const real* RESTRICT b, GLOBAL const real* RESTRICT c,
             real s, u64 n) {
  FOR_EACH_INDEX(i, n) a[i] = b[i] + s * c[i];
}
