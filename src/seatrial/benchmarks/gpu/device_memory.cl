// Reads and writes of device memory in words of 4 B: the words read are summed, and each position
// is written with a different value, so that a compiler cannot remove any access.

// Adjacent items take adjacent words, IN_FLIGHT rows of LANES at once: a loop over single words
// would wait for each.
KERNEL read_coalesced(GLOBAL const u32* RESTRICT in, GLOBAL u32* RESTRICT sums, u64 n) {
  u32 sum = 0;
  FOR_EACH_INDEX(i, n / IN_FLIGHT) {
    const u64 first = i / LANES * (LANES * IN_FLIGHT) + i % LANES;
    _Pragma("unroll") for (u32 k = 0; k < IN_FLIGHT; ++k) sum += in[first + k * LANES];
  }
  sums[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;
}

KERNEL write_coalesced(GLOBAL u32* RESTRICT out, u32 factor, u64 n) {
  FOR_EACH_INDEX(i, n) out[i] = (u32)i * factor;
}

// Each item takes CHUNK contiguous words, so adjacent items are that far apart.
KERNEL read_strided(GLOBAL const u32* RESTRICT in, GLOBAL u32* RESTRICT sums, u64 chunks) {
  u32 sum = 0;
  FOR_EACH_INDEX(c, chunks) {
    for (u32 k = 0; k < CHUNK; k += IN_FLIGHT) {
      _Pragma("unroll") for (u32 j = 0; j < IN_FLIGHT; ++j) sum += in[c * CHUNK + k + j];
    }
  }
  sums[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;
}

KERNEL write_strided(GLOBAL u32* RESTRICT out, u32 factor, u64 chunks) {
  FOR_EACH_INDEX(c, chunks) {
    for (u32 k = 0; k < CHUNK; ++k)
      out[c * CHUNK + k] = (u32)(c * CHUNK + k) * factor;
  }
}

// Copy and triad as in BabelStream (T. Deakin et al., "Evaluating attainable memory bandwidth of
// parallel programming models via BabelStream", 2018). A GPU moves words of 16 B, WIDE_IN_FLIGHT
// rows of LANES at once; on a CPU each item has its own chunk.
#define FIRST_WIDE(i) ((i) / LANES * (LANES * WIDE_IN_FLIGHT) + (i) % LANES)

KERNEL copy(GLOBAL const float* RESTRICT a, GLOBAL float* RESTRICT c, u64 n) {
#ifdef DEVICE_IS_CPU
  FOR_EACH_INDEX(i, n) c[i] = a[i];
#else
  GLOBAL const float4* RESTRICT from = (GLOBAL const float4*)a;
  GLOBAL float4* RESTRICT to = (GLOBAL float4*)c;
  FOR_EACH_INDEX(i, n / (4 * WIDE_IN_FLIGHT)) {
    const u64 first = FIRST_WIDE(i);
    float4 held[WIDE_IN_FLIGHT];
    _Pragma("unroll") for (u32 k = 0; k < WIDE_IN_FLIGHT; ++k) held[k] = from[first + k * LANES];
    _Pragma("unroll") for (u32 k = 0; k < WIDE_IN_FLIGHT; ++k) to[first + k * LANES] = held[k];
  }
#endif
}

KERNEL triad(GLOBAL float* RESTRICT a, GLOBAL const float* RESTRICT b,
             GLOBAL const float* RESTRICT c, float s, u64 n) {
#ifdef DEVICE_IS_CPU
  FOR_EACH_INDEX(i, n) a[i] = b[i] + s * c[i];
#else
  GLOBAL const float4* RESTRICT left = (GLOBAL const float4*)b;
  GLOBAL const float4* RESTRICT right = (GLOBAL const float4*)c;
  GLOBAL float4* RESTRICT to = (GLOBAL float4*)a;
  FOR_EACH_INDEX(i, n / (4 * WIDE_IN_FLIGHT)) {
    const u64 first = FIRST_WIDE(i);
    float4 sum[WIDE_IN_FLIGHT];
    float4 scaled[WIDE_IN_FLIGHT];
    _Pragma("unroll") for (u32 k = 0; k < WIDE_IN_FLIGHT; ++k) {
      sum[k] = left[first + k * LANES];
      scaled[k] = right[first + k * LANES];
    }
    _Pragma("unroll") for (u32 k = 0; k < WIDE_IN_FLIGHT; ++k) {
      sum[k].x += s * scaled[k].x;
      sum[k].y += s * scaled[k].y;
      sum[k].z += s * scaled[k].z;
      sum[k].w += s * scaled[k].w;
      to[first + k * LANES] = sum[k];
    }
  }
#endif
}

// STEPS words per round, a group's length apart, so that a warp uses every bank once. Only the host
// knows where a round begins: consecutive rounds read different words.
KERNEL read_local(GLOBAL const u32* RESTRICT in, GLOBAL u32* RESTRICT sums, u32 rounds, u32 step,
                  u32 mask) {
  LOCAL u32 tile[TILE];
  for (u32 i = LOCAL_ID; i < TILE; i += GROUP)
    tile[i] = in[i] + GROUP_ID;
  BARRIER();
  u32 sum = 0;
  u32 shift = 0;
  for (u32 round = 0; round < rounds; ++round) {
    _Pragma("unroll") for (u32 k = 0; k < STEPS; ++k) sum += tile[LOCAL_ID + shift + k * GROUP];
    shift = (shift + step) & mask;
  }
  sums[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;
}

// Each item writes to its own positions, a column of the tile, and finally outputs their content.
KERNEL write_local(GLOBAL u32* RESTRICT sums, u32 factor, u32 rounds, u32 step, u32 mask) {
  LOCAL u32 tile[TILE];
  u32 value = (GROUP_ID * GROUP + LOCAL_ID) * factor;
  u32 shift = 0;
  for (u32 round = 0; round < rounds; ++round) {
    _Pragma("unroll") for (u32 k = 0; k < STEPS; ++k) tile[LOCAL_ID + shift + k * GROUP] = value;
    value += factor;
    shift = (shift + step) & mask;
  }
  u32 sum = 0;
  for (u32 slot = 0; slot < SLOTS; ++slot)
    sum += tile[LOCAL_ID + slot * GROUP] * (2 * slot + 1);
  sums[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;
}

#ifdef TEXTURE
// Groups are squares of SIDE x SIDE texels, `apart` squares from each other; an item begins at its
// own position in the square. The image's sides are powers of two.
#define READS(x_of_read, y_of_read, next)                                                          \
  u32 x = LOCAL_ID % SIDE;                                                                         \
  u32 y = LOCAL_ID / SIDE;                                                                         \
  const u32 across = width / SIDE;                                                                 \
  const u32 square = GROUP_ID * apart & (across * (height / SIDE) - 1);                            \
  const u32 left = square % across * SIDE;                                                         \
  const u32 top = square / across * SIDE;                                                          \
  float sum = 0;                                                                                   \
  for (u32 i = 0; i < reads; i += STEPS) {                                                         \
    _Pragma("unroll") for (u32 k = 0; k < STEPS; ++k) {                                            \
      const float4 texel = TEXTURE_AT(texels, (x_of_read), (y_of_read));                           \
      sum += texel.x + texel.y + texel.z + texel.w;                                                \
      next;                                                                                        \
    }                                                                                              \
  }                                                                                                \
  sums[GROUP_ID * LOCAL_SIZE + LOCAL_ID] = sum;

// Reads along the row.
KERNEL texture_linear(TEXTURE texels, GLOBAL float* RESTRICT sums, u32 width, u32 height,
                      u32 apart, u32 reads) {
  READS((left + x) & (width - 1), top + y, x += 1)
}

// Reads repeatedly within the group's square.
KERNEL texture_cached(TEXTURE texels, GLOBAL float* RESTRICT sums, u32 width, u32 height,
                      u32 apart, u32 reads) {
  READS(left + x, top + y, x = (x + 1) & (SIDE - 1); y = (y + (x == 0)) & (SIDE - 1))
}

// Reads all over the image, by SHOC's recurrence.
KERNEL texture_random(TEXTURE texels, GLOBAL float* RESTRICT sums, u32 width, u32 height,
                      u32 apart, u32 reads) {
  READS((left + x) & (width - 1), (top + y) & (height - 1), x = 3 * x + 29; y = 5 * y + 11)
}
#endif
