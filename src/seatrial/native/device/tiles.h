// Parts of tiled matrix products on GPUs: a group of 16 x 16 items computes one tile of TILE x TILE
// from strips of depth DEPTH, each item PER x PER elements in registers (V. Volkov and J. Demmel,
// "Benchmarking GPUs to tune dense linear algebra", 2008). An item's rows and columns are PER / 4
// runs of four, so that four are loaded at a time.
#ifndef DEVICE_IS_CPU

#define TILE (16 * PER)
#define DEPTH 16
#define PITCH (TILE + 4)
#define PLACE(i, id) ((i) / 4 * 64 + 4 * (id) + (i) % 4)
#ifdef OPENCL
#define LOCAL_POINTER LOCAL
#else
#define LOCAL_POINTER
#endif

// Loads an item's part of a row of a tile.
DEVICE void take(LOCAL_POINTER const real* row, u32 id, real* out) {
  for (u32 i = 0; i < PER; i += 4) {
    const real4 four = *(LOCAL_POINTER const real4*)(row + PLACE(i, id));
    out[i] = four.x;
    out[i + 1] = four.y;
    out[i + 2] = four.z;
    out[i + 3] = four.w;
  }
}

// Adds an item's products of two strips, a[k][row] and b[k][column], to its sums.
DEVICE void multiply_tiles(LOCAL_POINTER const real* a, LOCAL_POINTER const real* b, real* sums) {
  for (u32 k = 0; k < DEPTH; ++k) {
    real rows[PER];
    real columns[PER];
    take(a + k * PITCH, LOCAL_ID_Y, rows);
    take(b + k * PITCH, LOCAL_ID, columns);
    for (u32 i = 0; i < PER; ++i)
      for (u32 j = 0; j < PER; ++j)
        sums[i * PER + j] += rows[i] * columns[j];
  }
}

#endif
