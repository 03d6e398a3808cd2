// The kernels of a dense solve on one device of a grid. The device holds its blocks of the matrix
// by rows, `pitch` numbers apart; `at` is the offset of the first element of a submatrix.

// Rows go over the groups' second dimension; the numbers of a row over the items, adjacent ones to
// adjacent items. A CPU's group is a single item, which takes whole rows.
#define FOR_ROWS(i, n) for (u32 i = GROUP_ID_Y; i < (n); i += GROUPS_Y)
#ifdef DEVICE_IS_CPU
#define FOR_COLUMNS(j, n) for (u32 j = 0; j < (n); ++j)
#else
#define FOR_COLUMNS(j, n) \
  for (u32 j = GROUP_ID * LOCAL_SIZE + LOCAL_ID; j < (n); j += GROUPS * LOCAL_SIZE)
#endif

// The matrix: uniform on [-1/2, 1/2) by a counter (native/matrix_product.hpp), so that any element
// can be made anywhere. The exact sum and product round to nothing.
DEVICE double element_of(u64 index) {
  u64 z = (index + 1) * 0x9e3779b97f4a7c15UL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
  z = z ^ (z >> 31);
  return (double)(z >> 11) * 1.1102230246251565e-16 - 0.5;
}

// The global index of a local one: blocks of `block` are dealt to `of` owners in turn, and this is
// the one with number `owner`.
DEVICE u32 global_of(u32 local_index, u32 block, u32 owner, u32 of) {
  return (local_index / block * of + owner) * block + local_index % block;
}

// Makes the device's part. `row_length` numbers of a row are counted; with `is_dominant` the
// elements on the diagonal come from `diagonal`.
KERNEL make_matrix(GLOBAL real* RESTRICT a, GLOBAL const double* RESTRICT diagonal, u32 is_dominant,
                   u32 pitch, u32 rows, u32 columns, u32 block, u32 p, u32 of_p, u32 q, u32 of_q,
                   u64 row_length) {
  FOR_ROWS(i, rows) {
    const u32 row = global_of(i, block, p, of_p);
    FOR_COLUMNS(j, columns) {
      const u32 column = global_of(j, block, q, of_q);
      const double random = element_of(row * row_length + column);
      a[(u64)i * pitch + j] = (real)(is_dominant != 0 && row == column ? diagonal[row] : random);
    }
  }
}

// A submatrix, packed: its rows are `width` numbers apart, with zeros after `columns`.
KERNEL pack(GLOBAL const real* RESTRICT a, u64 at, u32 pitch, GLOBAL real* RESTRICT out, u32 rows,
            u32 columns, u32 width) {
  FOR_ROWS(i, rows)
    FOR_COLUMNS(j, width)
      out[(u64)i * width + j] = j < columns ? a[at + (u64)i * pitch + j] : 0;
}

// Back into the matrix.
KERNEL unpack(GLOBAL real* RESTRICT a, u64 at, u32 pitch, GLOBAL const real* RESTRICT from,
              u32 rows, u32 columns, u32 width) {
  FOR_ROWS(i, rows)
    FOR_COLUMNS(j, columns)
      a[at + (u64)i * pitch + j] = from[(u64)i * width + j];
}

// out[i] = the row of number list[first + i], from column `at` on; both are `columns` long.
KERNEL take_rows(GLOBAL const real* RESTRICT a, u64 at, u32 pitch, GLOBAL const u32* RESTRICT list,
                 u32 first, u32 rows, GLOBAL real* RESTRICT out, u64 out_at, u32 columns) {
  FOR_ROWS(i, rows) {
    const u64 from = at + (u64)list[first + i] * pitch;
    FOR_COLUMNS(j, columns)
      out[out_at + (u64)i * columns + j] = a[from + j];
  }
}

// The row of number list[to + i] = row list[from + i] of `rows_in`, from column `at` on.
KERNEL put_rows(GLOBAL real* RESTRICT a, u64 at, u32 pitch, GLOBAL const u32* RESTRICT list, u32 to,
                u32 from, u32 rows, GLOBAL const real* RESTRICT rows_in, u32 columns) {
  FOR_ROWS(i, rows) {
    const u64 target = at + (u64)list[to + i] * pitch;
    const u64 source = (u64)list[from + i] * columns;
    FOR_COLUMNS(j, columns)
      a[target + j] = rows_in[source + j];
  }
}

// C = C - A B, or C = A B without `is_update`: C is m x n, A is m x k.
#ifdef DEVICE_IS_CPU

// A group is one item and computes ROWS x STRIP elements: STRIP columns of B, DEPTH rows at a time,
// are packed so that they stay in the core's L1 cache, and are multiplied with HEIGHT rows of A,
// whose sums stay in registers (as in gemm.cl).
#define STRIP (2 * LANES)
#define HEIGHT 8
#define DEPTH 128
#define JOINED(a, b) a##b
#define NAMED(a, b) JOINED(a, b)
#define LOAD(pointer) NAMED(vload, LANES)(0, pointer)
#define STORE(value, pointer) NAMED(vstore, LANES)(value, 0, pointer)

DEVICE void gather_strip(LOCAL_ARG vector* panel, GLOBAL const real* b, u32 pitch, u32 depth,
                         u32 columns) {
  if (columns == STRIP) {
    for (u32 k = 0; k < depth; ++k) {
      panel[2 * k] = LOAD(b + (u64)k * pitch);
      panel[2 * k + 1] = LOAD(b + (u64)k * pitch + LANES);
    }
    return;
  }
  LOCAL_ARG real* const elements = (LOCAL_ARG real*)panel;
  for (u32 k = 0; k < depth; ++k)
    for (u32 j = 0; j < STRIP; ++j)
      elements[k * STRIP + j] = j < columns ? b[(u64)k * pitch + j] : 0;
}

DEVICE void finish_row(GLOBAL real* c, vector left, vector right, u32 columns, bool is_added) {
  if (columns == STRIP) {
    STORE(is_added ? LOAD(c) + left : left, c);
    STORE(is_added ? LOAD(c + LANES) + right : right, c + LANES);
    return;
  }
  real sums[STRIP];
  STORE(left, sums);
  STORE(right, sums + LANES);
  for (u32 j = 0; j < columns; ++j)
    c[j] = is_added ? c[j] + sums[j] : sums[j];
}

// HEIGHT rows of A from a + row[i] on; `rows` of them are stored.
DEVICE void multiply_rows(LOCAL_ARG const vector* panel, GLOBAL const real* a, const u64* row,
                          GLOBAL real* c, u32 pitch, u32 depth, u32 rows, u32 columns, real sign,
                          bool is_added) {
  vector left[HEIGHT];
  vector right[HEIGHT];
#pragma unroll
  for (u32 i = 0; i < HEIGHT; ++i) {
    left[i] = 0;
    right[i] = 0;
  }
  for (u32 k = 0; k < depth; ++k) {
    const vector of_left = panel[2 * k];
    const vector of_right = panel[2 * k + 1];
#pragma unroll
    for (u32 i = 0; i < HEIGHT; ++i) {
      const real element = a[row[i] + k];
      left[i] += element * of_left;
      right[i] += element * of_right;
    }
  }
#pragma unroll
  for (u32 i = 0; i < HEIGHT; ++i)
    if (i < rows)
      finish_row(c + (u64)i * pitch, sign * left[i], sign * right[i], columns, is_added);
}

KERNEL multiply(GLOBAL const real* RESTRICT a, u64 a_at, u32 a_pitch, GLOBAL const real* RESTRICT b,
                u64 b_at, u32 b_pitch, GLOBAL real* RESTRICT c, u64 c_at, u32 c_pitch, u32 m, u32 n,
                u32 k, u32 is_update) {
  LOCAL vector panel[2 * DEPTH];
  const u32 column = GROUP_ID * STRIP;
  const u32 columns = n - column < STRIP ? n - column : STRIP;
  const u32 end = m - GROUP_ID_Y * ROWS < ROWS ? m : (GROUP_ID_Y + 1) * ROWS;
  for (u32 k0 = 0; k0 < k; k0 += DEPTH) {
    const u32 depth = k - k0 < DEPTH ? k - k0 : DEPTH;
    gather_strip(panel, b + b_at + (u64)k0 * b_pitch + column, b_pitch, depth, columns);
    for (u32 i = GROUP_ID_Y * ROWS; i < end; i += HEIGHT) {
      const u32 rows = end - i < HEIGHT ? end - i : HEIGHT;
      u64 row[HEIGHT];
      for (u32 r = 0; r < HEIGHT; ++r) // beyond the end the last row again, which is not stored
        row[r] = a_at + (u64)(i + (r < rows ? r : rows - 1)) * a_pitch + k0;
      multiply_rows(panel, a, row, c + c_at + (u64)i * c_pitch + column, c_pitch, depth, rows,
                    columns, is_update != 0 ? -1 : 1, is_update != 0 || k0 > 0);
    }
  }
}

#else

// Tiles of 16 x 16 items (device/tiles.h); beyond the edges are zeros.
DEVICE void fetch_a(LOCAL_POINTER real* tile, GLOBAL const real* a, u32 pitch, u32 rows, u32 depth) {
  for (u32 i = LOCAL_ID_Y; i < TILE; i += 16)
    tile[LOCAL_ID * PITCH + i] = i < rows && LOCAL_ID < depth ? a[(u64)i * pitch + LOCAL_ID] : 0;
}

DEVICE void fetch_b(LOCAL_POINTER real* tile, GLOBAL const real* b, u32 pitch, u32 columns,
                    u32 depth) {
  for (u32 j = LOCAL_ID; j < TILE; j += 16)
    tile[LOCAL_ID_Y * PITCH + j] =
        j < columns && LOCAL_ID_Y < depth ? b[(u64)LOCAL_ID_Y * pitch + j] : 0;
}

KERNEL multiply(GLOBAL const real* RESTRICT a, u64 a_at, u32 a_pitch, GLOBAL const real* RESTRICT b,
                u64 b_at, u32 b_pitch, GLOBAL real* RESTRICT c, u64 c_at, u32 c_pitch, u32 m, u32 n,
                u32 k, u32 is_update) {
  LOCAL real4 tile_a[DEPTH * PITCH / 4];
  LOCAL real4 tile_b[DEPTH * PITCH / 4];
  const u32 row = GROUP_ID_Y * TILE;
  const u32 column = GROUP_ID * TILE;
  real sums[PER * PER];
  for (u32 i = 0; i < PER * PER; ++i)
    sums[i] = 0;
  for (u32 k0 = 0; k0 < k; k0 += DEPTH) {
    fetch_a((LOCAL_POINTER real*)tile_a, a + a_at + (u64)row * a_pitch + k0, a_pitch, m - row, k - k0);
    fetch_b((LOCAL_POINTER real*)tile_b, b + b_at + (u64)k0 * b_pitch + column, b_pitch, n - column,
            k - k0);
    BARRIER();
    multiply_tiles((LOCAL_POINTER const real*)tile_a, (LOCAL_POINTER const real*)tile_b, sums);
    BARRIER();
  }
  for (u32 i = 0; i < PER; ++i)
    for (u32 j = 0; j < PER; ++j) {
      const u32 down = PLACE(i, LOCAL_ID_Y);
      const u32 across = PLACE(j, LOCAL_ID);
      if (down < m - row && across < n - column) {
        const u64 at = c_at + (u64)(row + down) * c_pitch + column + across;
        c[at] = is_update != 0 ? c[at] - sums[i * PER + j] : sums[i * PER + j];
      }
    }
}

#endif

// The sum of what the items of a group hold; the first item gets it.
#ifndef DEVICE_IS_CPU
#define SUM_OF_GROUP(sum, shared)                                  \
  shared[LOCAL_ID] = sum;                                          \
  BARRIER();                                                       \
  for (u32 step = LOCAL_SIZE / 2; step > 0; step /= 2) {           \
    if (LOCAL_ID < step)                                           \
      shared[LOCAL_ID] += shared[LOCAL_ID + step];                 \
    BARRIER();                                                     \
  }                                                                \
  sum = shared[0];                                                 \
  BARRIER();
#endif

// sums[first + i] += A x for `rows` rows of a strip of the matrix.
KERNEL add_products(GLOBAL const real* RESTRICT a, u64 at, u32 pitch, GLOBAL const real* RESTRICT x,
                    GLOBAL real* RESTRICT sums, u32 first, u32 rows, u32 columns) {
#ifdef DEVICE_IS_CPU
  FOR_ROWS(i, rows) {
    real sum = 0;
    for (u32 j = 0; j < columns; ++j)
      sum += a[at + (u64)i * pitch + j] * x[j];
    sums[first + i] += sum;
  }
#else
  LOCAL real shared[SUMMED];
  FOR_ROWS(i, rows) {
    real sum = 0;
    for (u32 j = LOCAL_ID; j < columns; j += LOCAL_SIZE)
      sum += a[at + (u64)i * pitch + j] * x[j];
    SUM_OF_GROUP(sum, shared)
    if (LOCAL_ID == 0)
      sums[first + i] += sum;
  }
#endif
}

// products = A x in double precision with the device's part of the matrix as it was made.
KERNEL multiply_made(GLOBAL const double* RESTRICT diagonal, GLOBAL const double* RESTRICT x,
                     GLOBAL double* RESTRICT products, u32 rows, u32 columns, u32 block, u32 p,
                     u32 of_p, u32 q, u32 of_q, u64 row_length) {
#ifndef DEVICE_IS_CPU
  LOCAL double shared[SUMMED];
#endif
  FOR_ROWS(i, rows) {
    const u32 row = global_of(i, block, p, of_p);
    double sum = 0;
#ifdef DEVICE_IS_CPU
    for (u32 j = 0; j < columns; ++j) {
#else
    for (u32 j = LOCAL_ID; j < columns; j += LOCAL_SIZE) {
#endif
      const u32 column = global_of(j, block, q, of_q);
      sum += (row == column ? diagonal[row] : element_of(row * row_length + column)) * x[column];
    }
#ifdef DEVICE_IS_CPU
    products[i] = sum;
#else
    SUM_OF_GROUP(sum, shared)
    if (LOCAL_ID == 0)
      products[i] = sum;
#endif
  }
}
