// What both dialects have in common; REAL is the precision that the program asks for.
#ifdef REAL
typedef REAL real;
#endif

// Items take the indices of [0, n) in turn. On a GPU neighbours take neighbours, so that a warp's
// accesses join; on a CPU each item takes a run of its own, as its core's caches want it.
#ifdef DEVICE_IS_CPU
#define FOR_EACH_INDEX(i, n)                                                                        \
  for (u64 i##_items = (u64)GROUPS * LOCAL_SIZE, i##_id = (u64)GROUP_ID * LOCAL_SIZE + LOCAL_ID,   \
           i##_each = (u64)(n) / i##_items, i##_rest = (u64)(n) - i##_each * i##_items,            \
           i = i##_id * i##_each + (i##_id < i##_rest ? i##_id : i##_rest),                        \
           i##_end = i + i##_each + (i##_id < i##_rest ? 1 : 0);                                   \
       i < i##_end; ++i)
#else
#define FOR_EACH_INDEX(i, n) \
  for (u64 i = (u64)GROUP_ID * LOCAL_SIZE + LOCAL_ID; i < (u64)(n); i += (u64)GROUPS * LOCAL_SIZE)
#endif
