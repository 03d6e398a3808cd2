// The exclusive prefix sum of n numbers in three kernels: each group adds up a part, one group scans
// the parts' sums, and each group scans its part from its offset on. A part is a run of tiles.

#define TILE (GROUP * PER_ITEM)
// A word between 32 of them: items that walk runs of their own find them in different banks.
#define PADDED(i) ((i) + (i) / 32)

DEVICE u64 part_begin(u64 n, u32 part, u32 parts) {
  return n / parts * part + n % parts * part / parts;
}

// Items' numbers in `part` become the sums up to and with each, in log2(GROUP) steps (W. D. Hillis
// and G. L. Steele, "Data parallel algorithms", 1986).
DEVICE void scan_group(LOCAL_ARG real* part) {
  for (u32 step = 1; step < GROUP; step *= 2) {
    BARRIER();
    real left = LOCAL_ID < step ? 0 : part[LOCAL_ID - step];
    BARRIER();
    part[LOCAL_ID] += left;
  }
  BARRIER();
}

KERNEL add_parts(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT sums, u64 n) {
  LOCAL real part[GROUP];
  u64 begin = part_begin(n, GROUP_ID, GROUPS);
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  real sum = 0;
  for (u64 tile = begin; tile < end; tile += TILE) {
    real of_tile = 0;
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u64 i = tile + k * GROUP + LOCAL_ID;
      of_tile += i < end ? in[i] : 0;
    }
    sum += of_tile;
  }
  part[LOCAL_ID] = sum;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    sums[GROUP_ID] = part[0];
}

// One group: `parts` sums become what stands before each, and one more their total.
KERNEL scan_sums(GLOBAL real* RESTRICT sums, u32 parts) {
  LOCAL real part[GROUP];
  u64 begin = part_begin(parts, LOCAL_ID, GROUP);
  u64 end = part_begin(parts, LOCAL_ID + 1, GROUP);
  real sum = 0;
  for (u64 i = begin; i < end; ++i)
    sum += sums[i];
  part[LOCAL_ID] = sum;
  scan_group(part);
  real before = LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1];
  for (u64 i = begin; i < end; ++i) {
    real own = sums[i];
    sums[i] = before;
    before += own;
  }
  if (LOCAL_ID == 0)
    sums[parts] = part[GROUP - 1];
}

// What other devices' numbers come to stands before each part of this one.
KERNEL add_offset(GLOBAL real* RESTRICT sums, u32 parts, real offset) {
  FOR_EACH_INDEX(i, parts + 1) sums[i] += offset;
}

KERNEL scan_parts(GLOBAL const real* RESTRICT in, GLOBAL const real* RESTRICT sums,
                  GLOBAL real* RESTRICT out, u64 n) {
  LOCAL real numbers[PADDED(TILE)];
  LOCAL real part[GROUP];
  u64 begin = part_begin(n, GROUP_ID, GROUPS);
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  real carry = sums[GROUP_ID];
  for (u64 tile = begin; tile < end; tile += TILE) {
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      numbers[PADDED(i)] = tile + i < end ? in[tile + i] : 0;
    }
    BARRIER();
    real sum = 0;
    for (u32 k = 0; k < PER_ITEM; ++k)
      sum += numbers[PADDED(LOCAL_ID * PER_ITEM + k)];
    part[LOCAL_ID] = sum;
    scan_group(part);
    real before = carry + (LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1]);
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = LOCAL_ID * PER_ITEM + k;
      real own = numbers[PADDED(i)];
      numbers[PADDED(i)] = before;
      before += own;
    }
    carry += part[GROUP - 1];
    BARRIER();
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      if (tile + i < end)
        out[tile + i] = numbers[PADDED(i)];
    }
    BARRIER(); // nobody loads the next tile over this one
  }
}
