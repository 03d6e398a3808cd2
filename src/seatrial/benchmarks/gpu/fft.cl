// Batches of 512-point transforms, each computed by a group of 64 items with 8 points per item:
// three passes of radix 8 in Stockham's order, which needs no bit reversal (N. K. Govindaraju et
// al., "High performance discrete Fourier transforms on graphics processors", SC 2008).
//
// X_k = sum over n of x_n exp(-sign 2 pi i n k / 512): sign 1 is forward, -1 inverse without
// normalisation.
#define POINTS 512
#define RADIX 8
#define ITEMS (POINTS / RADIX)

// Multiplies (re, im) of element a by (c, s).
#define ROTATE(a, c, s)                                                                              \
  {                                                                                                \
    real turned = re[a] * (c) - im[a] * (s);                                                       \
    im[a] = FMA(re[a], s, im[a] * (c));                                                            \
    re[a] = turned;                                                                                \
  }

// a <- a + b, b <- a - b.
#define BUTTERFLY(a, b)                                                                                \
  {                                                                                                \
    real left = re[a];                                                                             \
    real right = im[a];                                                                            \
    re[a] = left + re[b];                                                                          \
    im[a] = right + im[b];                                                                         \
    re[b] = left - re[b];                                                                          \
    im[b] = right - im[b];                                                                         \
  }

// Multiplies by -i sign.
#define TIMES_MINUS_I(a)                                                                                 \
  {                                                                                                \
    real left = re[a];                                                                             \
    re[a] = sign * im[a];                                                                          \
    im[a] = -sign * left;                                                                          \
  }

// Transforms 8 points in place; the results X_0 to X_7 are then at positions 0 4 2 6 1 5 3 7.
DEVICE void transform8(real* re, real* im, real sign) {
  const real diagonal = (real)0.70710678118654752440;
  BUTTERFLY(0, 4)
  BUTTERFLY(1, 5)
  BUTTERFLY(2, 6)
  BUTTERFLY(3, 7)
  ROTATE(5, diagonal, -sign * diagonal)
  TIMES_MINUS_I(6)
  ROTATE(7, -diagonal, -sign * diagonal)
  BUTTERFLY(0, 2)
  BUTTERFLY(1, 3)
  BUTTERFLY(4, 6)
  BUTTERFLY(5, 7)
  TIMES_MINUS_I(3)
  TIMES_MINUS_I(7)
  BUTTERFLY(0, 1)
  BUTTERFLY(2, 3)
  BUTTERFLY(4, 5)
  BUTTERFLY(6, 7)
}

// The position of X_k after transform8.
#define PLACE(k) (((k) & 1) * 4 + ((k) & 2) + ((k) >> 2))

// Between passes: exchanges points with stride `below` and applies the twiddle factors of their
// positions.
DEVICE void exchange_points(real* re, real* im, LOCAL_ARG real* shared_re, LOCAL_ARG real* shared_im,
                    GLOBAL const real* cosines, GLOBAL const real* sines, real sign, u32 below) {
  u32 item = LOCAL_ID;
  u32 target = item / below * below * RADIX + item % below;
  BARRIER();
  for (u32 k = 0; k < RADIX; ++k) {
    shared_re[target + k * below] = re[PLACE(k)];
    shared_im[target + k * below] = im[PLACE(k)];
  }
  BARRIER();
  u32 step = item % (below * RADIX) * (ITEMS / (below * RADIX));
  for (u32 k = 0; k < RADIX; ++k) {
    re[k] = shared_re[item + k * ITEMS];
    im[k] = shared_im[item + k * ITEMS];
    if (k > 0)
      ROTATE(k, cosines[step * k], -sign * sines[step * k])
  }
}

KERNEL fft512(GLOBAL const real* RESTRICT in_re, GLOBAL const real* RESTRICT in_im,
              GLOBAL real* RESTRICT out_re, GLOBAL real* RESTRICT out_im,
              GLOBAL const real* RESTRICT cosines, GLOBAL const real* RESTRICT sines, real sign) {
  LOCAL real shared_re[POINTS];
  LOCAL real shared_im[POINTS];
  real re[RADIX];
  real im[RADIX];
  u64 base = (u64)GROUP_ID * POINTS + LOCAL_ID;
  for (u32 k = 0; k < RADIX; ++k) {
    re[k] = in_re[base + k * ITEMS];
    im[k] = in_im[base + k * ITEMS];
  }
  transform8(re, im, sign);
  exchange_points(re, im, shared_re, shared_im, cosines, sines, sign, 1);
  transform8(re, im, sign);
  exchange_points(re, im, shared_re, shared_im, cosines, sines, sign, RADIX);
  transform8(re, im, sign);
  for (u32 k = 0; k < RADIX; ++k) {
    out_re[base + k * ITEMS] = re[PLACE(k)];
    out_im[base + k * ITEMS] = im[PLACE(k)];
  }
}
