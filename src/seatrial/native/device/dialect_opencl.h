// The kernel dialect in OpenCL C 1.2.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define OPENCL 1
#define KERNEL __kernel void
// PoCL 3.1 shares a kernel's local memory between all its threads if the optimiser moves it into a
// function that the kernel calls, so all functions are inlined first.
#define DEVICE static inline __attribute__((always_inline))
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARG __local
#define CONSTANT __constant
#define RESTRICT restrict
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define LOCAL_ID ((uint)get_local_id(0))
#define LOCAL_SIZE ((uint)get_local_size(0))
#define GROUP_ID ((uint)get_group_id(0))
#define GROUPS ((uint)get_num_groups(0))
#define LOCAL_ID_Y ((uint)get_local_id(1))
#define LOCAL_SIZE_Y ((uint)get_local_size(1))
#define GROUP_ID_Y ((uint)get_group_id(1))
#define GROUPS_Y ((uint)get_num_groups(1))
#define ATOMIC_ADD(address, value) atomic_add(address, value)
#define ATOMIC_MIN(address, value) atomic_min(address, value)
// For words shared between groups: relaxed, they order nothing else.
#define ATOMIC_LOAD(address) atomic_or((volatile __global uint*)(address), 0u)
#define ATOMIC_STORE(address, value) ((void)atomic_xchg((volatile __global uint*)(address), value))
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define ATOMIC_LOAD_64(address) atom_add((volatile __global ulong*)(address), (ulong)0)
#define ATOMIC_STORE_64(address, value) ((void)atom_xchg((volatile __global ulong*)(address), value))
#endif
#define PAUSE() // OpenCL 1.2 has no pause
#define DOUBLE_BITS(value) as_ulong(value)
#define BITS_DOUBLE(bits) as_double(bits)
#define POPCOUNT(bits) popcount((uint)(bits))
#define FMA(a, b, c) fma(a, b, c)
#define MUL_HI(a, b) mul_hi((uint)(a), (uint)(b))
#ifdef __IMAGE_SUPPORT__
__constant sampler_t seatrial_nearest =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
#define TEXTURE __read_only image2d_t
#define TEXTURE_AT(texture, x, y) read_imagef(texture, seatrial_nearest, (int2)((int)(x), (int)(y)))
#endif
typedef uint u32;
typedef ulong u64;
typedef long i64;
