// D = alpha A B + beta C for row-major matrices, each with its own distance between rows; C has that of
// D, may be the same memory, and is not read if beta is 0. In the second kernel the rows of b are the
// columns of B. The sides of D and the depth are multiples of the tiles below.
#ifdef DEVICE_IS_CPU

// A group is one item and computes ROWS x STRIP elements of D: STRIP columns of B, DEPTH rows at a
// time, are packed so that they stay in the core's L1 cache, and are multiplied with HEIGHT rows of
// A, whose sums stay in registers (K. Goto and R. A. van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008).
#define STRIP (2 * LANES)
#define HEIGHT 8
#define DEPTH 128

// panel[k] = STRIP elements of row k0 + k of B.
DEVICE void gather_rows(LOCAL_ARG vector* panel, GLOBAL const real* b, u32 first, u32 k0,
                        u32 lead) {
  for (u32 k = 0; k < DEPTH; ++k) {
    GLOBAL const vector* const row = (GLOBAL const vector*)(b + (u64)(k0 + k) * lead + first);
    panel[2 * k] = row[0];
    panel[2 * k + 1] = row[1];
  }
}

// The same if b holds the columns of B.
DEVICE void gather_columns(LOCAL_ARG vector* panel, GLOBAL const real* b, u32 first, u32 k0,
                           u32 lead) {
  LOCAL_ARG real* const elements = (LOCAL_ARG real*)panel;
  for (u32 j = 0; j < STRIP; ++j)
    for (u32 k = 0; k < DEPTH; ++k)
      elements[k * STRIP + j] = b[(u64)(first + j) * lead + k0 + k];
}

// Updates HEIGHT rows of D with A's columns from k0 on; the first update starts from beta C.
DEVICE void update_rows(LOCAL_ARG const vector* panel, GLOBAL const real* a, GLOBAL const real* c,
                     GLOBAL real* d, real alpha, real beta, u32 k0, u32 lead_a, u32 lead_d) {
  vector left[HEIGHT];
  vector right[HEIGHT];
#pragma unroll
  for (u32 i = 0; i < HEIGHT; ++i) {
    left[i] = 0;
    right[i] = 0;
  }
  for (u32 k = 0; k < DEPTH; ++k) {
    const vector of_left = panel[2 * k];
    const vector of_right = panel[2 * k + 1];
#pragma unroll
    for (u32 i = 0; i < HEIGHT; ++i) {
      const real element = a[(u64)i * lead_a + k0 + k];
      left[i] += element * of_left;
      right[i] += element * of_right;
    }
  }
#pragma unroll
  for (u32 i = 0; i < HEIGHT; ++i) {
    GLOBAL const vector* const before = (GLOBAL const vector*)((k0 == 0 ? c : d) + (u64)i * lead_d);
    GLOBAL vector* const to = (GLOBAL vector*)(d + (u64)i * lead_d);
    const real factor = k0 == 0 ? beta : 1;
    if (factor == 0) {
      to[0] = alpha * left[i];
      to[1] = alpha * right[i];
    } else {
      to[0] = alpha * left[i] + factor * before[0];
      to[1] = alpha * right[i] + factor * before[1];
    }
  }
}

DEVICE void multiply_strip(LOCAL_ARG const vector* panel, GLOBAL const real* a,
                           GLOBAL const real* c, GLOBAL real* d, real alpha, real beta, u32 k0,
                           u32 lead_a, u32 lead_d) {
  for (u32 i = GROUP_ID_Y * ROWS; i < (GROUP_ID_Y + 1) * ROWS; i += HEIGHT) {
    const u64 at = (u64)i * lead_d + GROUP_ID * STRIP;
    update_rows(panel, a + (u64)i * lead_a, c + at, d + at, alpha, beta, k0, lead_a, lead_d);
  }
}

KERNEL gemm(GLOBAL const real* RESTRICT a, GLOBAL const real* RESTRICT b,
            GLOBAL const real* c, GLOBAL real* d, real alpha, real beta, u32 depth, u32 lead_a,
            u32 lead_b, u32 lead_d) {
  LOCAL vector panel[2 * DEPTH];
  for (u32 k0 = 0; k0 < depth; k0 += DEPTH) {
    gather_rows(panel, b, GROUP_ID * STRIP, k0, lead_b);
    multiply_strip(panel, a, c, d, alpha, beta, k0, lead_a, lead_d);
  }
}

KERNEL gemm_transposed(GLOBAL const real* RESTRICT a, GLOBAL const real* RESTRICT b,
                       GLOBAL const real* c, GLOBAL real* d, real alpha, real beta, u32 depth,
                       u32 lead_a, u32 lead_b, u32 lead_d) {
  LOCAL vector panel[2 * DEPTH];
  for (u32 k0 = 0; k0 < depth; k0 += DEPTH) {
    gather_columns(panel, b, GROUP_ID * STRIP, k0, lead_b);
    multiply_strip(panel, a, c, d, alpha, beta, k0, lead_a, lead_d);
  }
}

#else

// Tiles of 16 x 16 items (device/tiles.h).
// tile[k][i] = from[first + i][k0 + k]
DEVICE void fetch_rows(LOCAL_POINTER real* tile, GLOBAL const real* from, u32 first, u32 k0,
                       u32 lead) {
  for (u32 i = LOCAL_ID_Y; i < TILE; i += 16)
    tile[LOCAL_ID * PITCH + i] = from[(u64)(first + i) * lead + k0 + LOCAL_ID];
}

// tile[k][i] = from[k0 + k][first + i]
DEVICE void fetch_columns(LOCAL_POINTER real* tile, GLOBAL const real* from, u32 first, u32 k0,
                          u32 lead) {
  for (u32 i = LOCAL_ID; i < TILE; i += 16)
    tile[LOCAL_ID_Y * PITCH + i] = from[(u64)(k0 + LOCAL_ID_Y) * lead + first + i];
}

DEVICE void store(const real* sums, GLOBAL const real* c, GLOBAL real* d, real alpha, real beta,
                  u32 lead) {
  for (u32 i = 0; i < PER; ++i)
    for (u32 j = 0; j < PER; ++j) {
      const u64 at = (u64)(GROUP_ID_Y * TILE + PLACE(i, LOCAL_ID_Y)) * lead + GROUP_ID * TILE +
                     PLACE(j, LOCAL_ID);
      d[at] = beta == 0 ? alpha * sums[i * PER + j] : alpha * sums[i * PER + j] + beta * c[at];
    }
}

KERNEL gemm(GLOBAL const real* RESTRICT a, GLOBAL const real* RESTRICT b,
            GLOBAL const real* c, GLOBAL real* d, real alpha, real beta, u32 depth, u32 lead_a,
            u32 lead_b, u32 lead_d) {
  LOCAL real4 tile_a[DEPTH * PITCH / 4];
  LOCAL real4 tile_b[DEPTH * PITCH / 4];
  real sums[PER * PER];
  for (u32 i = 0; i < PER * PER; ++i)
    sums[i] = 0;
  for (u32 k = 0; k < depth; k += DEPTH) {
    fetch_rows((LOCAL_POINTER real*)tile_a, a, GROUP_ID_Y * TILE, k, lead_a);
    fetch_columns((LOCAL_POINTER real*)tile_b, b, GROUP_ID * TILE, k, lead_b);
    BARRIER();
    multiply_tiles((LOCAL_POINTER const real*)tile_a, (LOCAL_POINTER const real*)tile_b, sums);
    BARRIER();
  }
  store(sums, c, d, alpha, beta, lead_d);
}

KERNEL gemm_transposed(GLOBAL const real* RESTRICT a, GLOBAL const real* RESTRICT b,
                       GLOBAL const real* c, GLOBAL real* d, real alpha, real beta, u32 depth,
                       u32 lead_a, u32 lead_b, u32 lead_d) {
  LOCAL real4 tile_a[DEPTH * PITCH / 4];
  LOCAL real4 tile_b[DEPTH * PITCH / 4];
  real sums[PER * PER];
  for (u32 i = 0; i < PER * PER; ++i)
    sums[i] = 0;
  for (u32 k = 0; k < depth; k += DEPTH) {
    fetch_rows((LOCAL_POINTER real*)tile_a, a, GROUP_ID_Y * TILE, k, lead_a);
    fetch_rows((LOCAL_POINTER real*)tile_b, b, GROUP_ID * TILE, k, lead_b);
    BARRIER();
    multiply_tiles((LOCAL_POINTER const real*)tile_a, (LOCAL_POINTER const real*)tile_b, sums);
    BARRIER();
  }
  store(sums, c, d, alpha, beta, lead_d);
}

#endif
