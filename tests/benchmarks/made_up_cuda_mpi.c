/* Preloaded: the answer of an MPI that takes CUDA memory, which that of the made-up driver is. */
int MPIX_Query_cuda_support(void) {
  return 1;
}
