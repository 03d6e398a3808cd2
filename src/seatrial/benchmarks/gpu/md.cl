// Lennard-Jones forces on each atom from its neighbours, one item per atom: positions are loaded as
// four numbers, of which three are coordinates; the lists are stored by neighbour index.
KERNEL forces(GLOBAL const real* RESTRICT places, GLOBAL const u32* RESTRICT neighbours,
              GLOBAL real* RESTRICT force, real lj1, real lj2, real cutoff2, u32 count, u32 atoms) {
  GLOBAL const real4* const at = (GLOBAL const real4*)places;
  FOR_EACH_INDEX(i, atoms) {
    const real4 own = at[i];
    real fx = 0;
    real fy = 0;
    real fz = 0;
    for (u32 k = 0; k < count; ++k) {
      const real4 other = at[neighbours[(u64)k * atoms + i]];
      const real dx = own.x - other.x;
      const real dy = own.y - other.y;
      const real dz = own.z - other.z;
      const real r2 = dx * dx + dy * dy + dz * dz;
      if (r2 < cutoff2) {
        const real inverse2 = 1 / r2;
        const real inverse6 = inverse2 * inverse2 * inverse2;
        const real size = inverse2 * inverse6 * (lj1 * inverse6 - lj2);
        fx += dx * size;
        fy += dy * size;
        fz += dz * size;
      }
    }
    force[i] = fx;
    force[(u64)atoms + i] = fy;
    force[2 * (u64)atoms + i] = fz;
  }
}
