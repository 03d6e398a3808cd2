// Stable least-significant-digit radix sorts of keys, with values if PAIRS is 1.
#define TILE (GROUP * PER_ITEM)
#define DIGIT(key) (((key) >> shift) % DIGITS)

#ifndef ONESWEEP
// 4 bits at a time: each group counts the digits of its part, one group scans the counts, and each
// group moves its part, tile by tile, to the positions given by the counts (N. Satish, M. Harris
// and M. Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009).
#define DIGITS 16
// One word of padding per 32: items that access separate runs use different banks.
#define PADDED(i) ((i) + (i) / 32)

// Digit counts of a tile are packed 4 to a 64-bit word: digit d is in word d / 4 at bit 16 (d % 4).
#define WORDS 4
#define COUNT_IN(word, digit) ((u32)((word) >> (16 * ((digit) % 4))) & 0xffffu)

DEVICE u64 part_begin(u64 n, u32 part, u32 parts) {
  return n / parts * part + n % parts * part / parts;
}

// counts[digit x groups + group]
KERNEL count_digits(GLOBAL const u32* RESTRICT keys, GLOBAL u32* RESTRICT counts, u32 shift, u64 n) {
  LOCAL u32 seen[DIGITS * GROUP];
  u64 begin = part_begin(n, GROUP_ID, GROUPS);
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  for (u32 digit = 0; digit < DIGITS; ++digit)
    seen[digit * GROUP + LOCAL_ID] = 0;
  for (u64 tile = begin; tile < end; tile += TILE)
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u64 i = tile + k * GROUP + LOCAL_ID;
      if (i < end)
        ++seen[DIGIT(keys[i]) * GROUP + LOCAL_ID];
    }
  for (u32 width = GROUP / 2; width > 0; width /= 2) {
    BARRIER();
    if (LOCAL_ID < width)
      for (u32 digit = 0; digit < DIGITS; ++digit)
        seen[digit * GROUP + LOCAL_ID] += seen[digit * GROUP + LOCAL_ID + width];
  }
  BARRIER();
  if (LOCAL_ID < DIGITS)
    counts[LOCAL_ID * GROUPS + GROUP_ID] = seen[LOCAL_ID * GROUP];
}

// One group: exclusive scan of the counts.
KERNEL scan_counts(GLOBAL u32* RESTRICT counts, u32 n) {
  LOCAL u32 part[GROUP];
  u64 begin = part_begin(n, LOCAL_ID, GROUP);
  u64 end = part_begin(n, LOCAL_ID + 1, GROUP);
  u32 sum = 0;
  for (u64 i = begin; i < end; ++i)
    sum += counts[i];
  part[LOCAL_ID] = sum;
  for (u32 step = 1; step < GROUP; step *= 2) {
    BARRIER();
    u32 left = LOCAL_ID < step ? 0 : part[LOCAL_ID - step];
    BARRIER();
    part[LOCAL_ID] += left;
  }
  BARRIER();
  u32 before = LOCAL_ID == 0 ? 0 : part[LOCAL_ID - 1];
  for (u64 i = begin; i < end; ++i) {
    u32 own = counts[i];
    counts[i] = before;
    before += own;
  }
}

// Inclusive scan over the items' counts, all digits at once.
DEVICE void scan_words(LOCAL_ARG u64* seen) {
  for (u32 step = 1; step < GROUP; step *= 2) {
    u64 left[WORDS];
    BARRIER();
    for (u32 word = 0; word < WORDS; ++word)
      left[word] = LOCAL_ID < step ? 0 : seen[word * GROUP + LOCAL_ID - step];
    BARRIER();
    for (u32 word = 0; word < WORDS; ++word)
      seen[word * GROUP + LOCAL_ID] += left[word];
  }
  BARRIER();
}

// Counts a tile's digits: `seen` gets the counts up to each item, which holds a contiguous run, and
// `first` the start of each digit in the sorted tile.
DEVICE void count_tile(LOCAL_ARG const u32* keys, LOCAL_ARG u64* seen, LOCAL_ARG u32* first, u32 held,
                       u32 shift) {
  for (u32 word = 0; word < WORDS; ++word)
    seen[word * GROUP + LOCAL_ID] = 0;
  for (u32 k = 0; k < PER_ITEM; ++k) {
    u32 i = LOCAL_ID * PER_ITEM + k;
    u32 digit = DIGIT(keys[PADDED(i)]);
    if (i < held)
      seen[digit / 4 * GROUP + LOCAL_ID] += (u64)1 << (16 * (digit % 4));
  }
  scan_words(seen);
  if (LOCAL_ID < DIGITS) {
    u32 before = 0;
    for (u32 digit = 0; digit < LOCAL_ID; ++digit)
      before += COUNT_IN(seen[digit / 4 * GROUP + GROUP - 1], digit);
    first[LOCAL_ID] = before;
  }
  BARRIER();
}

// Sorts a tile by one digit: a pair goes to the start of its digit plus the number of preceding
// pairs with the same digit.
DEVICE void sort_tile(LOCAL_ARG u32* keys, LOCAL_ARG u32* values, LOCAL_ARG const u64* seen,
                      LOCAL_ARG const u32* first, u32 held, u32 shift) {
  u32 own_keys[PER_ITEM];
#if PAIRS
  u32 own_values[PER_ITEM];
#endif
  u64 taken[WORDS];
  for (u32 k = 0; k < PER_ITEM; ++k) {
    own_keys[k] = keys[PADDED(LOCAL_ID * PER_ITEM + k)];
#if PAIRS
    own_values[k] = values[PADDED(LOCAL_ID * PER_ITEM + k)];
#endif
  }
  for (u32 word = 0; word < WORDS; ++word)
    taken[word] = LOCAL_ID == 0 ? 0 : seen[word * GROUP + LOCAL_ID - 1];
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k) {
    u32 digit = DIGIT(own_keys[k]);
    u32 rank = 0;
    for (u32 word = 0; word < WORDS; ++word) // a constant index keeps `taken` in registers
      if (word == digit / 4) {
        rank = first[digit] + COUNT_IN(taken[word], digit);
        taken[word] += (u64)1 << (16 * (digit % 4));
      }
    if (LOCAL_ID * PER_ITEM + k < held) {
      keys[PADDED(rank)] = own_keys[k];
#if PAIRS
      values[PADDED(rank)] = own_values[k];
#endif
    }
  }
  BARRIER();
}

// Each tile is sorted by its digit and written in runs. Wrong counts (a device fault) cannot cause
// out-of-bounds writes.
KERNEL move_pairs(GLOBAL const u32* RESTRICT keys, GLOBAL const u32* RESTRICT values,
                  GLOBAL const u32* RESTRICT counts, GLOBAL u32* RESTRICT to_keys,
                  GLOBAL u32* RESTRICT to_values, u32 shift, u64 n) {
  LOCAL u32 tile_keys[PADDED(TILE)];
  LOCAL u32 tile_values[PAIRS ? PADDED(TILE) : 1];
  LOCAL u64 seen[WORDS * GROUP];
  LOCAL u32 next[DIGITS];  // target of the group's next pair of each digit
  LOCAL u32 first[DIGITS]; // start of each digit in the sorted tile
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  if (LOCAL_ID < DIGITS)
    next[LOCAL_ID] = counts[LOCAL_ID * GROUPS + GROUP_ID];
  for (u64 tile = part_begin(n, GROUP_ID, GROUPS); tile < end; tile += TILE) {
    u32 held = (u32)(end - tile < TILE ? end - tile : TILE);
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      if (i < held) {
        tile_keys[PADDED(i)] = keys[tile + i];
#if PAIRS
        tile_values[PADDED(i)] = values[tile + i];
#endif
      }
    }
    BARRIER();
    count_tile(tile_keys, seen, first, held, shift);
    sort_tile(tile_keys, tile_values, seen, first, held, shift);
    for (u32 i = LOCAL_ID; i < held; i += GROUP) {
      u32 key = tile_keys[PADDED(i)];
      u32 place = next[DIGIT(key)] + i - first[DIGIT(key)];
      if (place < n) {
        to_keys[place] = key;
#if PAIRS
        to_values[place] = tile_values[PADDED(i)];
#endif
      }
    }
    BARRIER();
    if (LOCAL_ID < DIGITS)
      next[LOCAL_ID] += COUNT_IN(seen[LOCAL_ID / 4 * GROUP + GROUP - 1], LOCAL_ID);
    BARRIER();
  }
}

#else
// Onesweep (A. Adinets and D. Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for
// GPUs", 2022), 8 bits at a time: one kernel counts the digits of all passes, and then each pass
// moves every key once. A group sorts one tile by the digit and obtains the number of keys with
// each digit in the preceding tiles by decoupled look-back.
#define DIGITS 256
#define PASSES 4
#define TILES_AT_ONCE 4 // tiles read at once in the look-back
#ifndef WARP
// Items that rank their keys together; without warps they synchronise as a group.
#define WARP 32
#define WARP_BARRIER() BARRIER()
#define WITHOUT_BALLOT
#endif
#define WARPS (GROUP / WARP)
#define LANE (LOCAL_ID % WARP)

DEVICE void count_key(LOCAL_ARG u32* seen, u32 key) {
  for (u32 pass = 0; pass < PASSES; ++pass)
    ATOMIC_ADD(&seen[pass * DIGITS + (key >> 8 * pass) % DIGITS], 1u);
}

// counts[pass x DIGITS + digit] must start at 0.
KERNEL count_all(GLOBAL const u32* RESTRICT keys, GLOBAL u32* counts, u64 n) {
  LOCAL u32 seen[PASSES * DIGITS];
  for (u32 i = LOCAL_ID; i < PASSES * DIGITS; i += GROUP)
    seen[i] = 0;
  BARRIER();
  FOR_EACH_INDEX(i, n / 4) {
    const uint4 four = ((GLOBAL const uint4*)keys)[i];
    count_key(seen, four.x);
    count_key(seen, four.y);
    count_key(seen, four.z);
    count_key(seen, four.w);
  }
  if (GROUP_ID == 0 && LOCAL_ID < n % 4)
    count_key(seen, keys[n / 4 * 4 + LOCAL_ID]);
  BARRIER();
  for (u32 i = LOCAL_ID; i < PASSES * DIGITS; i += GROUP)
    ATOMIC_ADD(&counts[i], seen[i]);
}

// Exclusive sum over the preceding items; `part` has GROUP words.
DEVICE u32 sum_before(LOCAL_ARG u32* part, u32 own) {
#ifdef WITHOUT_BALLOT
  part[LOCAL_ID] = own;
  for (u32 step = 1; step < GROUP; step *= 2) {
    BARRIER();
    const u32 left = LOCAL_ID < step ? 0 : part[LOCAL_ID - step];
    BARRIER();
    part[LOCAL_ID] += left;
  }
  BARRIER();
  return part[LOCAL_ID] - own;
#else
  u32 sum = own;
  for (u32 step = 1; step < WARP; step *= 2) {
    const u32 left = SHUFFLE_UP(sum, step);
    sum += LANE < step ? 0 : left;
  }
  if (LANE == WARP - 1)
    part[LOCAL_ID / WARP] = sum;
  BARRIER();
  u32 before = sum - own;
  for (u32 warp = 0; warp < WARPS; ++warp)
    before += warp < LOCAL_ID / WARP ? part[warp] : 0;
  return before;
#endif
}

// One group per pass: turns counts into the start of each digit.
KERNEL scan_digits(GLOBAL u32* counts) {
  LOCAL u32 part[GROUP];
  const u32 own = LOCAL_ID < DIGITS ? counts[GROUP_ID * DIGITS + LOCAL_ID] : 0;
  const u32 before = sum_before(part, own);
  if (LOCAL_ID < DIGITS)
    counts[GROUP_ID * DIGITS + LOCAL_ID] = before;
}

// Groups take tiles by ticket, so that the preceding ones have started and do not depend on the
// waiting group. `states` begins with the ticket counter, followed by DIGITS words per tile: the
// count in the lower bits, its status in the upper two. Groups exchange only these words, so
// relaxed accesses suffice.
#define EMPTY 0u
#define OF_TILE 1u
#define UP_TO_TILE 2u
#define STATE(states, tile, digit) ((states) + (u64)DIGITS * ((u64)(tile) + 1) + (digit))
#define WORD(status, count) ((status) << 30 | (count))
#define STATUS(word) ((word) >> 30)
#define COUNT(word) ((word) & 0x3fffffffu)

// The number of keys with a digit in the preceding tiles; reads several tiles at once.
DEVICE u32 look_back(GLOBAL u32* states, u32 tile, u32 digit) {
  u32 before = 0;
  u32 status = tile > 0 ? EMPTY : UP_TO_TILE;
  u32 end = tile;
  while (status != UP_TO_TILE) {
    u32 seen[TILES_AT_ONCE];
    u32 taken = 0;
    for (u32 i = 0; i < TILES_AT_ONCE; ++i)
      seen[i] = ATOMIC_LOAD(STATE(states, end > i ? end - 1 - i : 0, digit));
    for (u32 i = 0; i < TILES_AT_ONCE; ++i)
      if (taken == i && status != UP_TO_TILE && STATUS(seen[i]) != EMPTY) {
        before += COUNT(seen[i]);
        status = STATUS(seen[i]);
        ++taken;
      }
    end -= taken;
    if (taken == 0)
      PAUSE();
  }
  return before;
}

// The lanes of this warp with the same digit, as a bit mask; `lanes` has GROUP words.
DEVICE u32 same_digit(LOCAL_ARG u32* lanes, u32 digit) {
#ifdef WITHOUT_BALLOT
  u32 same = 0;
  lanes[LOCAL_ID] = digit;
  BARRIER();
  for (u32 lane = 0; lane < WARP; ++lane)
    same |= (u32)(lanes[LOCAL_ID / WARP * WARP + lane] == digit) << lane;
#else
  u32 same = 0xffffffffu;
  for (u32 bit = 0; bit < 8; ++bit) {
    const u32 set = BALLOT(digit >> bit & 1);
    same &= (digit >> bit & 1) != 0 ? set : ~set;
  }
#endif
  return same;
}

// Ranks each key among those with its digit in the warp, in memory order; `seen` gets the warp's
// count of each digit.
DEVICE void rank_keys(const u32* own, u32* rank, LOCAL_ARG u32* seen, LOCAL_ARG u32* lanes,
                      u32 shift) {
  for (u32 k = 0; k < PER_ITEM; ++k) {
    const u32 digit = DIGIT(own[k]);
    const u32 same = same_digit(lanes, digit);
    const u32 before = same & ((1u << LANE) - 1);
    const u32 others = seen[digit];
    rank[k] = others + POPCOUNT(before);
    WARP_BARRIER();
    if (before == 0)
      seen[digit] = others + POPCOUNT(same);
    WARP_BARRIER();
  }
}

// The tile's count of the item's digit; each warp's count is replaced by that of the preceding
// warps.
DEVICE u32 count_tile(LOCAL_ARG u32* seen) {
  u32 sum = 0;
  for (u32 warp = 0; warp < WARPS; ++warp) {
    const u32 of_warp = seen[warp * DIGITS + LOCAL_ID];
    seen[warp * DIGITS + LOCAL_ID] = sum;
    sum += of_warp;
  }
  return sum;
}

// Keys past the end count as the highest value: they sort to the end of the tile and are not
// written. Wrong counts (a device fault) cannot cause out-of-bounds writes.
KERNEL sort_tiles(GLOBAL const u32* RESTRICT keys, GLOBAL const u32* RESTRICT values,
                  GLOBAL const u32* RESTRICT starts, GLOBAL u32* states,
                  GLOBAL u32* RESTRICT to_keys, GLOBAL u32* RESTRICT to_values, u32 shift, u64 n) {
  LOCAL u32 held_by[TILE]; // first the warps' counts, then the sorted tile
  LOCAL u32 part[GROUP];
  LOCAL u32 first[DIGITS]; // start of each digit in the sorted tile
  LOCAL u32 base[DIGITS];  // offset from there to its target
  LOCAL u32 ticket[1];
  if (LOCAL_ID == 0)
    ticket[0] = ATOMIC_ADD(states, 1u);
  for (u32 i = LOCAL_ID; i < WARPS * DIGITS; i += GROUP)
    held_by[i] = 0;
  BARRIER();
  const u64 begin = (u64)ticket[0] * TILE;
  const u32 held = n - begin < TILE ? (u32)(n - begin) : TILE;
  const u32 own_begin = LOCAL_ID / WARP * WARP * PER_ITEM + LANE; // a warp's keys are contiguous
  u32 own[PER_ITEM];
  u32 rank[PER_ITEM];
  for (u32 k = 0; k < PER_ITEM; ++k)
    own[k] = own_begin + k * WARP < held ? keys[begin + own_begin + k * WARP] : 0xffffffffu;
  rank_keys(own, rank, held_by + LOCAL_ID / WARP * DIGITS, part, shift);
  BARRIER();
  u32 count = 0;
  if (LOCAL_ID < DIGITS) {
    count = count_tile(held_by);
    ATOMIC_STORE(STATE(states, ticket[0], LOCAL_ID),
                 WORD(ticket[0] == 0 ? UP_TO_TILE : OF_TILE, count));
  }
  const u32 own_first = sum_before(part, count);
  if (LOCAL_ID < DIGITS)
    first[LOCAL_ID] = own_first;
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k)
    rank[k] += first[DIGIT(own[k])] + held_by[LOCAL_ID / WARP * DIGITS + DIGIT(own[k])];
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k)
    held_by[rank[k]] = own[k];
#if PAIRS
  for (u32 k = 0; k < PER_ITEM; ++k)
    own[k] = own_begin + k * WARP < held ? values[begin + own_begin + k * WARP] : 0;
#endif
  if (LOCAL_ID < DIGITS) {
    const u32 before = look_back(states, ticket[0], LOCAL_ID);
    ATOMIC_STORE(STATE(states, ticket[0], LOCAL_ID), WORD(UP_TO_TILE, before + count));
    base[LOCAL_ID] = starts[shift / 8 * DIGITS + LOCAL_ID] + before - own_first;
  }
  BARRIER();
  u32 digits[PER_ITEM / 4]; // 4 per word: the values follow their keys
  for (u32 k = 0; k < PER_ITEM; ++k) {
    const u32 i = k * GROUP + LOCAL_ID;
    const u32 digit = DIGIT(held_by[i]);
    const u32 place = base[digit] + i;
    if (i < held && place < n)
      to_keys[place] = held_by[i];
    digits[k / 4] = (k % 4 == 0 ? 0 : digits[k / 4]) | digit << 8 * (k % 4);
  }
#if PAIRS
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k)
    held_by[rank[k]] = own[k];
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k) {
    const u32 i = k * GROUP + LOCAL_ID;
    const u32 place = base[(digits[k / 4] >> 8 * (k % 4)) % DIGITS] + i;
    if (i < held && place < n)
      to_values[place] = held_by[i];
  }
#endif
}
#endif
