// Conjugate gradients with multigrid on one part of a grid. A matrix is stored in slices of WIDTH
// rows: `bounds` has three numbers for each slice, where its nonzeros of stages before, of other
// parts and of later stages begin, in units of WIDTH.

DEVICE double row_times(GLOBAL const double* values, GLOBAL const u32* columns,
                        GLOBAL const double* x, u32 row, u32 first, u32 end) {
  double sum = 0;
  for (u32 k = first; k < end; ++k) {
    const u64 at = (u64)k * WIDTH + row % WIDTH;
    sum += values[at] * x[columns[at]];
  }
  return sum;
}

// y = A x
KERNEL matrix_times(GLOBAL const u32* RESTRICT bounds, GLOBAL const double* RESTRICT values,
                GLOBAL const u32* RESTRICT columns, GLOBAL const double* RESTRICT diagonal,
                GLOBAL const double* RESTRICT x, GLOBAL double* RESTRICT y, u32 rows) {
  FOR_EACH_INDEX(i, rows) {
    const u32 row = (u32)i;
    const u32 slice = 3 * (row / WIDTH);
    y[row] = diagonal[row] * x[row] +
             row_times(values, columns, x, row, bounds[slice], bounds[slice + 3]);
  }
}

// A stage of the forward sweep; `from_zero`: x was 0 before it. t is what the backward sweep needs.
KERNEL sweep_forward(GLOBAL const u32* RESTRICT bounds, GLOBAL const double* RESTRICT values,
                     GLOBAL const u32* RESTRICT columns, GLOBAL const double* RESTRICT diagonal,
                     GLOBAL const double* RESTRICT r, GLOBAL double* x, GLOBAL double* RESTRICT t,
                     u32 first, u32 rows, u32 from_zero) {
  FOR_EACH_INDEX(i, rows) {
    const u32 row = first + (u32)i;
    const u32 slice = 3 * (row / WIDTH);
    const u32 middle = bounds[slice + (from_zero ? 1 : 2)];
    const double known = r[row] - row_times(values, columns, x, row, bounds[slice], middle);
    const double later =
        from_zero ? 0 : row_times(values, columns, x, row, middle, bounds[slice + 3]);
    t[row] = known;
    x[row] = (known - later) / diagonal[row];
  }
}

KERNEL sweep_backward(GLOBAL const u32* RESTRICT bounds, GLOBAL const double* RESTRICT values,
                      GLOBAL const u32* RESTRICT columns, GLOBAL const double* RESTRICT diagonal,
                      GLOBAL const double* RESTRICT t, GLOBAL double* x, u32 first, u32 rows) {
  FOR_EACH_INDEX(i, rows) {
    const u32 row = first + (u32)i;
    const u32 slice = 3 * (row / WIDTH);
    x[row] = (t[row] - row_times(values, columns, x, row, bounds[slice + 2], bounds[slice + 3])) /
             diagonal[row];
  }
}

// The residual after a symmetric sweep at the rows `fine` of the coarse grid; NONE: padding there.
KERNEL restrict_residual(GLOBAL const u32* RESTRICT bounds, GLOBAL const double* RESTRICT values,
                         GLOBAL const u32* RESTRICT columns, GLOBAL const double* RESTRICT r,
                         GLOBAL const double* RESTRICT t, GLOBAL const double* RESTRICT x,
                         GLOBAL const u32* RESTRICT fine, GLOBAL double* RESTRICT coarse, u32 rows) {
  FOR_EACH_INDEX(i, rows) {
    const u32 row = fine[i];
    if (row != NONE) {
      const u32 slice = 3 * (row / WIDTH);
      coarse[i] = r[row] - t[row] -
                  row_times(values, columns, x, row, bounds[slice], bounds[slice + 2]);
    }
  }
}

KERNEL add_correction(GLOBAL const u32* RESTRICT fine, GLOBAL const double* RESTRICT coarse,
                      GLOBAL double* RESTRICT x, u32 rows) {
  FOR_EACH_INDEX(i, rows) {
    if (fine[i] != NONE)
      x[fine[i]] += coarse[i];
  }
}

// out = a x + b y; out may be x or y.
KERNEL combine_vectors(GLOBAL const double* x, GLOBAL const double* y, GLOBAL double* out, double a,
               double b, u32 rows) {
  FOR_EACH_INDEX(i, rows) out[i] = a * x[i] + b * y[i];
}

KERNEL scalar_product(GLOBAL const double* x, GLOBAL const double* y, GLOBAL double* RESTRICT sums, u32 rows) {
  LOCAL double part[GROUP];
  double sum = 0;
  FOR_EACH_INDEX(i, rows) sum += x[i] * y[i];
  part[LOCAL_ID] = sum;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    sums[GROUP_ID] = part[0];
}

// The elements that other parts need, side by side.
KERNEL pack_rows(GLOBAL const double* RESTRICT x, GLOBAL const u32* RESTRICT rows,
            GLOBAL double* RESTRICT sent, u32 count) {
  FOR_EACH_INDEX(i, count) sent[i] = x[rows[i]];
}
