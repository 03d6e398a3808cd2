// The sum of n numbers: each item adds its own, each group its items', and a second run of one
// group the groups' sums.
KERNEL reduce(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT sums, u64 n) {
  LOCAL real part[GROUP];
  real sum = 0;
  FOR_EACH_INDEX(i, n) sum += in[i];
  part[LOCAL_ID] = sum;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    sums[GROUP_ID] = part[0];
}
