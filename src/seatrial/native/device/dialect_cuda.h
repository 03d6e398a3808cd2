// The dialect of the kernels, in CUDA C++ (and HIP's, which is alike).
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_ARG // before a pointer to such memory, as a parameter of a DEVICE function
#define CONSTANT static __device__ const
#define RESTRICT __restrict__
#define BARRIER() __syncthreads()
#define LOCAL_ID (threadIdx.x)
#define LOCAL_SIZE (blockDim.x)
#define GROUP_ID (blockIdx.x)
#define GROUPS (gridDim.x)
#define LOCAL_ID_Y (threadIdx.y)
#define LOCAL_SIZE_Y (blockDim.y)
#define GROUP_ID_Y (blockIdx.y)
#define GROUPS_Y (gridDim.y)
#define ATOMIC_ADD(address, value) atomicAdd(address, value)
#define ATOMIC_MIN(address, value) atomicMin(address, value)
#define FMA(a, b, c) fma(a, b, c)
#define MUL_HI(a, b) __umulhi(a, b)
typedef unsigned int uint;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
