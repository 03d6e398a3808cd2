// The softened gravitational accelerations of n bodies by all n: a_i = sum over j of m_j d / (d.d +
// e^2)^(3/2).
//
// A group loads a tile of bodies into local memory, shared by its items; each item computes BODIES
// bodies, so that one read of the tile serves all of them (L. Nyland, M. Harris, J. Prins, "Fast
// N-Body Simulation with CUDA", GPU Gems 3, 2007). n is a multiple of GROUP; items x BODIES bodies
// are computed, from `first` on.
KERNEL accelerate(GLOBAL const real* RESTRICT x, GLOBAL const real* RESTRICT y,
                  GLOBAL const real* RESTRICT z, GLOBAL const real* RESTRICT m,
                  GLOBAL real* RESTRICT ax, GLOBAL real* RESTRICT ay, GLOBAL real* RESTRICT az,
                  real softening2, u32 first, u32 n) {
  LOCAL real tile_x[GROUP];
  LOCAL real tile_y[GROUP];
  LOCAL real tile_z[GROUP];
  LOCAL real tile_m[GROUP];
  const u32 own = GROUP_ID * GROUP * BODIES + LOCAL_ID;
  real px[BODIES];
  real py[BODIES];
  real pz[BODIES];
  real sx[BODIES];
  real sy[BODIES];
  real sz[BODIES];
  for (int b = 0; b < BODIES; ++b) {
    px[b] = x[first + own + b * GROUP];
    py[b] = y[first + own + b * GROUP];
    pz[b] = z[first + own + b * GROUP];
    sx[b] = 0;
    sy[b] = 0;
    sz[b] = 0;
  }
  for (u32 start = 0; start < n; start += GROUP) {
    tile_x[LOCAL_ID] = x[start + LOCAL_ID];
    tile_y[LOCAL_ID] = y[start + LOCAL_ID];
    tile_z[LOCAL_ID] = z[start + LOCAL_ID];
    tile_m[LOCAL_ID] = m[start + LOCAL_ID];
    BARRIER();
#pragma unroll 8
    for (u32 j = 0; j < GROUP; ++j) {
#pragma unroll
      for (int b = 0; b < BODIES; ++b) {
        const real dx = tile_x[j] - px[b];
        const real dy = tile_y[j] - py[b];
        const real dz = tile_z[j] - pz[b];
        const real inverse = rsqrt(FMA(dz, dz, FMA(dy, dy, FMA(dx, dx, softening2))));
        const real strength = tile_m[j] * (inverse * inverse * inverse);
        sx[b] = FMA(strength, dx, sx[b]);
        sy[b] = FMA(strength, dy, sy[b]);
        sz[b] = FMA(strength, dz, sz[b]);
      }
    }
    BARRIER();
  }
  for (int b = 0; b < BODIES; ++b) {
    ax[own + b * GROUP] = sx[b];
    ay[own + b * GROUP] = sy[b];
    az[own + b * GROUP] = sz[b];
  }
}
