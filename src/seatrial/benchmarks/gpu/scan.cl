// The exclusive prefix sum of n numbers in three kernels: each group sums a part, one group scans
// these sums, and each group scans its part starting from its offset. A part is a run of tiles. A
// single-pass version follows below.

#define TILE (GROUP * PER_ITEM)
// One number of padding per 128 B: items that access separate runs use different banks.
#define PADDED(i) ((i) + (i) / (u32)(128 / sizeof(real)))

DEVICE u64 part_begin(u64 n, u32 part, u32 parts) {
  return n / parts * part + n % parts * part / parts;
}

// Inclusive scan of the items' numbers in `part`, in log2(GROUP) steps (W. D. Hillis and G. L.
// Steele, "Data parallel algorithms", 1986).
DEVICE void scan_group(LOCAL_ARG real* part) {
  for (u32 step = 1; step < GROUP; step *= 2) {
    BARRIER();
    real left = LOCAL_ID < step ? 0 : part[LOCAL_ID - step];
    BARRIER();
    part[LOCAL_ID] += left;
  }
  BARRIER();
}

KERNEL add_parts(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT sums, u64 n) {
  LOCAL real part[GROUP];
  u64 begin = part_begin(n, GROUP_ID, GROUPS);
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  real sum = 0;
  for (u64 tile = begin; tile < end; tile += TILE) {
    real of_tile = 0;
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u64 i = tile + k * GROUP + LOCAL_ID;
      of_tile += i < end ? in[i] : 0;
    }
    sum += of_tile;
  }
  part[LOCAL_ID] = sum;
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      part[LOCAL_ID] += part[LOCAL_ID + width];
  }
  if (LOCAL_ID == 0)
    sums[GROUP_ID] = part[0];
}

// One group: exclusive scan of `parts` sums, with the total appended.
KERNEL scan_sums(GLOBAL real* RESTRICT sums, u32 parts) {
  LOCAL real part[GROUP];
  u64 begin = part_begin(parts, LOCAL_ID, GROUP);
  u64 end = part_begin(parts, LOCAL_ID + 1, GROUP);
  real sum = 0;
  for (u64 i = begin; i < end; ++i)
    sum += sums[i];
  part[LOCAL_ID] = sum;
  scan_group(part);
  real before = LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1];
  for (u64 i = begin; i < end; ++i) {
    real own = sums[i];
    sums[i] = before;
    before += own;
  }
  if (LOCAL_ID == 0)
    sums[parts] = part[GROUP - 1];
}

// Adds the total of the preceding devices to the offset of each part.
KERNEL add_offset(GLOBAL real* RESTRICT sums, u32 parts, real offset) {
  FOR_EACH_INDEX(i, parts + 1) sums[i] += offset;
}

KERNEL scan_parts(GLOBAL const real* RESTRICT in, GLOBAL const real* RESTRICT sums,
                  GLOBAL real* RESTRICT out, u64 n) {
  LOCAL real numbers[PADDED(TILE)];
  LOCAL real part[GROUP];
  u64 begin = part_begin(n, GROUP_ID, GROUPS);
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  real carry = sums[GROUP_ID];
  for (u64 tile = begin; tile < end; tile += TILE) {
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      numbers[PADDED(i)] = tile + i < end ? in[tile + i] : 0;
    }
    BARRIER();
    real sum = 0;
    for (u32 k = 0; k < PER_ITEM; ++k)
      sum += numbers[PADDED(LOCAL_ID * PER_ITEM + k)];
    part[LOCAL_ID] = sum;
    scan_group(part);
    real before = carry + (LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1]);
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = LOCAL_ID * PER_ITEM + k;
      real own = numbers[PADDED(i)];
      numbers[PADDED(i)] = before;
      before += own;
    }
    carry += part[GROUP - 1];
    BARRIER();
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      if (tile + i < end)
        out[tile + i] = numbers[PADDED(i)];
    }
    BARRIER(); // the next tile must not overwrite this one
  }
}

#ifdef SINGLE_PASS
// A group scans one tile and obtains the sum before it by decoupled look-back (D. Merrill and M.
// Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016): it publishes the sum
// of its tile, reads the preceding tiles until one has published its inclusive prefix, and
// publishes its own.
//
// Groups take tiles by ticket: a waiting group can rely on the preceding ones having started, and
// they do not depend on it. `states` begins with the ticket counter, followed by two words per
// tile. Each word holds half of a sum and, in its upper bits, the status that says which sum it is:
// each status is written once, so halves with the same status belong together, in any order of
// arrival. Groups exchange only these words, so relaxed accesses to whole words suffice.
#define EMPTY 0u
#define OF_TILE 1u
#define UP_TO_TILE 2u
#define STATE(states, tile) ((states) + 2 * ((u64)(tile) + 1))

// In double precision also for fp32: a sum may have been accumulated over thousands of tiles.
DEVICE void publish(GLOBAL u64* state, u32 status, double sum) {
  const u64 bits = DOUBLE_BITS(sum);
  ATOMIC_STORE_64(state, (u64)status << 32 | bits >> 32);
  ATOMIC_STORE_64(state + 1, (u64)status << 32 | (bits & 0xffffffffu));
}

DEVICE u32 read_state(GLOBAL u64* state, double* sum) {
  const u64 high = ATOMIC_LOAD_64(state);
  const u64 low = ATOMIC_LOAD_64(state + 1);
  *sum = BITS_DOUBLE(high << 32 | (low & 0xffffffffu));
  return high >> 32 == low >> 32 ? (u32)(high >> 32) : EMPTY;
}

// Waits until a state is published and reads it.
DEVICE u32 wait_for(GLOBAL u64* state, double* sum) {
  u32 status = read_state(state, sum);
  while (status == EMPTY) {
    PAUSE();
    status = read_state(state, sum);
  }
  return status;
}

#ifdef WARP
#define LANE (LOCAL_ID % WARP)

// Inclusive scan over the items of a warp.
DEVICE real scan_warp(real own) {
  for (u32 step = 1; step < WARP; step *= 2) {
    const real left = SHUFFLE_UP(own, step);
    own += LANE < step ? 0 : left;
  }
  return own;
}

// One warp reads as many tiles as it has lanes: the first lane reads the nearest.
DEVICE double look_back(GLOBAL u64* states, u32 tile) {
  double before = 0;
  u32 found = 0;
  for (u32 end = tile; found == 0; end -= WARP) {
    double sum = 0;
    u32 status = UP_TO_TILE; // before the first tile
    if (LANE < end)
      status = wait_for(STATE(states, end - 1 - LANE), &sum);
    found = BALLOT(status == UP_TO_TILE);
    if (found != 0 && LANE > FIRST_BIT(found))
      sum = 0;
    for (u32 mask = WARP / 2; mask > 0; mask /= 2)
      sum += SHUFFLE_XOR(sum, mask);
    before += sum;
  }
  return before;
}

// The sum before an item's numbers, which add up to `sum`.
DEVICE double before_item(LOCAL_ARG real* part, LOCAL_ARG double* group_prefix, GLOBAL u64* states, u32 tile,
                          real sum, real offset) {
  const u32 warp = LOCAL_ID / WARP;
  const real up_to = scan_warp(sum);
  const real left = SHUFFLE_UP(up_to, 1);
  if (LANE == WARP - 1)
    part[warp] = up_to;
  BARRIER();
  if (warp == 0) {
    const real up_to_warp = scan_warp(LANE < GROUP / WARP ? part[LANE] : 0);
    const real before_warp = SHUFFLE_UP(up_to_warp, 1);
    const real whole = SHUFFLE(up_to_warp, GROUP / WARP - 1);
    double before = offset;
    if (tile > 0) {
      if (LANE == 0)
        publish(STATE(states, tile), OF_TILE, whole);
      before = look_back(states, tile);
    }
    if (LANE == 0) {
      publish(STATE(states, tile), UP_TO_TILE, before + whole);
      group_prefix[0] = before;
    }
    part[LANE] = LANE == 0 ? 0 : before_warp;
  }
  BARRIER();
  return group_prefix[0] + (part[warp] + (LANE == 0 ? 0 : left));
}
#else
DEVICE double look_back(GLOBAL u64* states, u32 tile) {
  double before = 0;
  u32 status = EMPTY;
  for (u32 end = tile; status != UP_TO_TILE; --end) {
    double sum = 0;
    status = wait_for(STATE(states, end - 1), &sum);
    before += sum;
  }
  return before;
}

// The sum before an item's numbers, which add up to `sum`.
DEVICE double before_item(LOCAL_ARG real* part, LOCAL_ARG double* group_prefix, GLOBAL u64* states, u32 tile,
                          real sum, real offset) {
  part[LOCAL_ID] = sum;
  scan_group(part);
  if (LOCAL_ID == 0) {
    const real whole = part[GROUP - 1];
    group_prefix[0] = offset;
    if (tile > 0) {
      publish(STATE(states, tile), OF_TILE, whole);
      group_prefix[0] = look_back(states, tile);
    }
    publish(STATE(states, tile), UP_TO_TILE, group_prefix[0] + whole);
  }
  BARRIER();
  return group_prefix[0] + (LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1]);
}
#endif

// Tiles are loaded and stored 16 B at a time; only the last one may be incomplete.
DEVICE void load_tile(LOCAL_ARG real* numbers, GLOBAL const real* in, u32 held) {
  if (held == TILE)
    for (u32 k = 0; k < PER_ITEM / WIDTH; ++k) {
      const u32 i = (k * GROUP + LOCAL_ID) * WIDTH;
      const VECTOR some = *(GLOBAL const VECTOR*)(in + i);
      numbers[PADDED(i)] = some.x;
      numbers[PADDED(i + 1)] = some.y;
#if WIDTH == 4
      numbers[PADDED(i + 2)] = some.z;
      numbers[PADDED(i + 3)] = some.w;
#endif
    }
  else
    for (u32 i = LOCAL_ID; i < TILE; i += GROUP)
      numbers[PADDED(i)] = i < held ? in[i] : 0;
  BARRIER();
}

DEVICE void store_tile(LOCAL_ARG const real* numbers, GLOBAL real* out, u32 held) {
  BARRIER();
  if (held == TILE)
    for (u32 k = 0; k < PER_ITEM / WIDTH; ++k) {
      const u32 i = (k * GROUP + LOCAL_ID) * WIDTH;
      VECTOR some;
      some.x = numbers[PADDED(i)];
      some.y = numbers[PADDED(i + 1)];
#if WIDTH == 4
      some.z = numbers[PADDED(i + 2)];
      some.w = numbers[PADDED(i + 3)];
#endif
      *(GLOBAL VECTOR*)(out + i) = some;
    }
  else
    for (u32 i = LOCAL_ID; i < held; i += GROUP)
      out[i] = numbers[PADDED(i)];
}

// `offset` is the sum before the first number.
KERNEL scan_tiles(GLOBAL const real* RESTRICT in, GLOBAL real* RESTRICT out, GLOBAL u64* states,
                  real offset, u64 n) {
  LOCAL real numbers[PADDED(TILE)];
  LOCAL real part[GROUP];
  LOCAL double group_prefix[1];
  LOCAL u32 ticket[1];
  if (LOCAL_ID == 0)
    ticket[0] = ATOMIC_ADD((GLOBAL u32*)states, 1u);
  BARRIER();
  const u64 begin = (u64)ticket[0] * TILE;
  const u32 held = n - begin < TILE ? (u32)(n - begin) : TILE;
  load_tile(numbers, in + begin, held);
  real sum = 0;
  for (u32 k = 0; k < PER_ITEM; ++k)
    sum += numbers[PADDED(LOCAL_ID * PER_ITEM + k)];
  real before = (real)before_item(part, group_prefix, states, ticket[0], sum, offset);
  for (u32 k = 0; k < PER_ITEM; ++k) {
    const u32 i = LOCAL_ID * PER_ITEM + k;
    const real own = numbers[PADDED(i)];
    numbers[PADDED(i)] = before;
    before += own;
  }
  store_tile(numbers, out + begin, held);
}
#endif
