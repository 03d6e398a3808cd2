// The part common to both dialects; REAL is the requested precision.
#ifdef REAL
typedef REAL real;
#endif

// Distributes the indices [0, n) over the items. On a GPU adjacent items take adjacent indices, so
// that a warp's accesses coalesce; on a CPU each item takes a contiguous range, which suits its
// core's caches.
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
