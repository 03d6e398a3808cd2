// The kernel dialect in CUDA C++ (and HIP, which is nearly the same).
#ifdef GROUPS_AT_ONCE // groups of GROUP items per multiprocessor: limits the registers of an item
#define KERNEL extern "C" __global__ void __launch_bounds__(GROUP, GROUPS_AT_ONCE)
#else
#define KERNEL extern "C" __global__ void
#endif
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_ARG // before a pointer to local memory, as a parameter of a DEVICE function
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
// For words shared between groups: relaxed, they order nothing else. A volatile access of an
// aligned word is a relaxed access of the whole word (PTX ISA, "Memory Consistency Model").
#define ATOMIC_LOAD(address) (*(const volatile u32*)(address))
#define ATOMIC_STORE(address, value) (*(volatile u32*)(address) = (value))
#define ATOMIC_LOAD_64(address) (*(const volatile u64*)(address))
#define ATOMIC_STORE_64(address, value) (*(volatile u64*)(address) = (value))
#if __CUDA_ARCH__ >= 700
#define PAUSE() __nanosleep(64) // between polls of another group's word
#else
#define PAUSE()
#endif
#define DOUBLE_BITS(value) ((u64)__double_as_longlong(value))
#define BITS_DOUBLE(bits) __longlong_as_double((i64)(bits))
#define POPCOUNT(bits) ((u32)__popc(bits))
// For the items of a warp, all of which call this together; OpenCL 1.2 has no equivalent.
#define WARP 32
#define WARP_BARRIER() __syncwarp()
#define BALLOT(is) __ballot_sync(0xffffffffu, is)
#define SHUFFLE(value, lane) __shfl_sync(0xffffffffu, value, lane)
#define SHUFFLE_UP(value, step) __shfl_up_sync(0xffffffffu, value, step)
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
#define FIRST_BIT(bits) ((u32)__ffs(bits) - 1) // `bits` must not be 0
#define FMA(a, b, c) fma(a, b, c)
#define MUL_HI(a, b) __umulhi(a, b)
#define TEXTURE unsigned long long // a parameter: an image with texels of four floats
#define TEXTURE_AT(texture, x, y) tex2D<float4>(texture, (float)(x), (float)(y))
typedef unsigned int uint;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
