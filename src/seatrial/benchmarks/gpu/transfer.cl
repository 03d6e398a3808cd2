// Copies between memory of the device and memory of the host that it reaches into.
KERNEL carry(GLOBAL const u64* RESTRICT from, GLOBAL u64* RESTRICT to, u64 n) {
  FOR_EACH_INDEX(i, n) to[i] = from[i];
}
