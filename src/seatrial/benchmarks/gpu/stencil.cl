// One step of a 9-point stencil: each point becomes the weighted sum of itself, its four direct and
// its four diagonal neighbours. Each item processes a column of ROWS points and keeps the values of
// the last two rows that the next row needs. The halo cells around the grid stay constant.
KERNEL stencil_step(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT out, real centre,
                    real near, real diagonal, u32 rows, u32 columns, u32 pitch) {
  const u32 column = GROUP_ID * LOCAL_SIZE + LOCAL_ID;
  const u32 first = GROUP_ID_Y * ROWS;
  if (column < columns) {
    const u32 last = first + ROWS < rows ? first + ROWS : rows;
    u64 at = (u64)first * pitch + MARGIN + column;
    real above = in[at];
    real above_sides = in[at - 1] + in[at + 1];
    at += pitch;
    real own = in[at];
    real own_sides = in[at - 1] + in[at + 1];
    for (u32 row = first; row < last; ++row) {
      const real below = in[at + pitch];
      const real below_sides = in[at + pitch - 1] + in[at + pitch + 1];
      out[at] = centre * own + near * (above + below + own_sides) +
                diagonal * (above_sides + below_sides);
      above = own;
      above_sides = own_sides;
      own = below;
      own_sides = below_sides;
      at += pitch;
    }
  }
}
