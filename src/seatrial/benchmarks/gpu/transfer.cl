// Copies between device memory and mapped host memory.
KERNEL carry(GLOBAL const u64* RESTRICT from, GLOBAL u64* RESTRICT to, u64 n) {
  FOR_EACH_INDEX(i, n) to[i] = from[i];
}
