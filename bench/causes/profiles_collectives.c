/* Planted causes in collective calls: what they move, and what they compute. */
#include "planted.h"

enum { ELEMENTS = 2000 };
static int rounds;

/* A reduction of the program's own: a sum after so many rounds of arithmetic. */
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const double* from = in;
  double* to = inout;
  for (int i = 0; i < *count; i++) {
    double x = from[i];
    for (int k = 0; k < rounds; k++)
      x = x * 0.999 + 1e-9;
    to[i] += x;
  }
}

static void reduce_own(int arithmetic) {
  static MPI_Op op = MPI_OP_NULL;
  static double values[ELEMENTS];
  rounds = arithmetic;
  if (op == MPI_OP_NULL)
    MPI_Op_create(add, 1, &op);
  compute(2e-3);
  MPI_Allreduce(MPI_IN_PLACE, values, ELEMENTS, MPI_DOUBLE, op, MPI_COMM_WORLD);
}

static void slow_operation(long step) {
  (void)step;
  reduce_own(500);
}

static void cheap_operation(long step) {
  (void)step;
  reduce_own(0);
}

/* The whole table is broadcast in each step. */
static void table(long step) {
  (void)step;
  compute(1e-3);
  MPI_Bcast(buffer, BUFFER_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* A few parameters are broadcast in each step. */
static void parameters(long step) {
  (void)step;
  compute(2e-3);
  MPI_Bcast(buffer, 1024, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static const struct cause causes[] = {
    {"slow-operation", slow_operation, NULL},
    {"cheap-operation", cheap_operation, NULL},
    {"table", table, NULL},
    {"parameters", parameters, NULL},
};

int main(int count, char** words) {
  return run(count, words, causes, sizeof causes / sizeof *causes);
}
