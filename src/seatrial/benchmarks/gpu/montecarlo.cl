// Prices of European calls by simulation: each group prices one option, and its items simulate the
// paths.
//
// Random numbers are a function of (seed, option, draw): Philox 4x32-10 (J. K. Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), transformed to a normal distribution
// with the method of G. E. P. Box and M. E. Muller ("A note on the generation of random normal
// deviates", 1958).
#define ROUNDS 10

DEVICE void philox(u32* c, u32 key0, u32 key1) {
  for (u32 round = 0; round < ROUNDS; ++round) {
    u32 high0 = MUL_HI(0xD2511F53u, c[0]);
    u32 low0 = 0xD2511F53u * c[0];
    u32 high1 = MUL_HI(0xCD9E8D57u, c[2]);
    u32 low1 = 0xCD9E8D57u * c[2];
    c[0] = high1 ^ c[1] ^ key0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ key1;
    c[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// In (0, 1].
#ifdef REAL_IS_DOUBLE
#define UNIFORM(a, b) ((real)((((u64)(a) << 32 | (b)) >> 11) + 1) * (real)0x1p-53)
#define PAIRS 1
#else
#define UNIFORM(a, b) ((real)(((a) >> 8) + 1) * 0x1p-24f)
#define PAIRS 2
#endif
#define TWO_PI ((real)6.28318530717958647692)

// `paths` is a multiple of 2 x PAIRS; `mean` and `spread` are the mean and standard deviation of
// the logarithm of the final price over the current price. `sums` and `squares` are those of the
// payoffs, without discounting.
KERNEL price(GLOBAL const real* RESTRICT spot, GLOBAL const real* RESTRICT strike,
             GLOBAL const real* RESTRICT mean, GLOBAL const real* RESTRICT spread,
             GLOBAL real* RESTRICT sums, GLOBAL real* RESTRICT squares, u32 paths, u32 first,
             u32 seed) {
  LOCAL real part_sums[GROUP];
  LOCAL real part_squares[GROUP];
  real sum = 0;
  real square = 0;
  for (u32 draw = LOCAL_ID; draw < paths / (2 * PAIRS); draw += GROUP) {
    u32 c[4];
    c[0] = draw;
    c[1] = 0;
    c[2] = first + GROUP_ID;
    c[3] = 0;
    philox(c, seed, 0);
    for (u32 pair = 0; pair < PAIRS; ++pair) {
#ifdef REAL_IS_DOUBLE
      real radius = sqrt(-2 * log(UNIFORM(c[0], c[1])));
      real angle = TWO_PI * UNIFORM(c[2], c[3]);
#else
      real radius = sqrt(-2 * log(UNIFORM(c[2 * pair], 0)));
      real angle = TWO_PI * UNIFORM(c[2 * pair + 1], 0);
#endif
      real up = spot[GROUP_ID] * exp(FMA(spread[GROUP_ID], radius * cos(angle), mean[GROUP_ID])) -
                strike[GROUP_ID];
      real down = spot[GROUP_ID] * exp(FMA(spread[GROUP_ID], radius * sin(angle), mean[GROUP_ID])) -
                  strike[GROUP_ID];
      up = up > 0 ? up : 0;
      down = down > 0 ? down : 0;
      sum += up + down;
      square += FMA(up, up, down * down);
    }
  }
  part_sums[LOCAL_ID] = sum;
  part_squares[LOCAL_ID] = square;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width) {
      part_sums[LOCAL_ID] += part_sums[LOCAL_ID + width];
      part_squares[LOCAL_ID] += part_squares[LOCAL_ID + width];
    }
  }
  if (LOCAL_ID == 0) {
    sums[GROUP_ID] = part_sums[0];
    squares[GROUP_ID] = part_squares[0];
  }
}
