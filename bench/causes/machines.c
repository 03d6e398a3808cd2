// A loop whose time depends on the optimisation, for the comparison of two builds.
#ifndef ROUNDS
#define ROUNDS 200
#endif

int main(void) {
  static double values[1 << 16];
  double sum = 0.0;
  for (int round = 0; round < ROUNDS; ++round)
    for (int k = 0; k < 1 << 16; ++k) {
      values[k] = values[k] * 0.5 + (double)(k ^ round);
      sum += values[k];
    }
  return sum < 0.0;
}
