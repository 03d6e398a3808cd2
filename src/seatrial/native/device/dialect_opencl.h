// The dialect of the kernels, in OpenCL C 1.2.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define OPENCL 1
#define KERNEL __kernel void
#define DEVICE static inline
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
#define FMA(a, b, c) fma(a, b, c)
#define MUL_HI(a, b) mul_hi((uint)(a), (uint)(b))
typedef uint u32;
typedef ulong u64;
typedef long i64;
