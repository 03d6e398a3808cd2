// A program of typical application size: a stencil over tiles in local memory, rounds of mixing,
// and a sum over groups. Integers modulo 2^32, so that all compilers must agree. SALT differs in
// each build.

DEVICE u32 rotated(u32 x, u32 by) {
  return (x << by) | (x >> (32 - by));
}

// Rounds of additions, rotations and exclusive ors, none of which can be optimised away.
DEVICE u32 mixed(u32 x, u32 y, u32 rounds) {
  for (u32 round = 0; round < rounds; ++round) {
    x += y + SALT;
    y = rotated(y, 13) ^ x;
    x = rotated(x, 7) + round;
  }
  return x ^ y;
}

// Combines each element with its neighbours, 0 beyond the ends; n is a multiple of GROUP.
KERNEL stencil(GLOBAL const u32* RESTRICT in, GLOBAL u32* RESTRICT out, u32 n) {
  LOCAL u32 tile[GROUP + 2];
  const u32 i = GROUP_ID * GROUP + LOCAL_ID;
  tile[LOCAL_ID + 1] = in[i];
  if (LOCAL_ID == 0)
    tile[0] = i == 0 ? 0 : in[i - 1];
  if (LOCAL_ID == GROUP - 1)
    tile[GROUP + 1] = i + 1 == n ? 0 : in[i + 1];
  BARRIER();
  const u32 sum = tile[LOCAL_ID] + 2 * tile[LOCAL_ID + 1] + tile[LOCAL_ID + 2];
  out[i] = mixed(sum, i, 8);
}

KERNEL sums(GLOBAL const u32* RESTRICT in, GLOBAL u32* RESTRICT of_groups) {
  LOCAL u32 part[GROUP];
  part[LOCAL_ID] = in[GROUP_ID * GROUP + LOCAL_ID];
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    of_groups[GROUP_ID] = part[0];
}
