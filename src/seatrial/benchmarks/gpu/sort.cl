// A stable radix sort of keys with values, least significant digit first, 4 bits at a time: each
// group counts the digits of its part, one group scans the counts, and each group moves its part,
// tile by tile, to where the counts say (N. Satish, M. Harris and M. Garland, "Designing efficient
// sorting algorithms for manycore GPUs", 2009).
#define DIGITS 16
#define TILE (GROUP * PER_ITEM)
// A word between 32 of them: items that walk runs of their own find them in different banks.
#define PADDED(i) ((i) + (i) / 32)

// A tile's digits are counted 4 to a word of 64 bits: digit d stands in word d / 4 at bit 16 (d % 4).
#define WORDS 4
#define COUNT_IN(word, digit) ((u32)((word) >> (16 * ((digit) % 4))) & 0xffffu)
#define DIGIT(key) (((key) >> shift) % DIGITS)

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

// One group: each count becomes the sum of those before it.
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

// What each item counted becomes what the items up to it counted, all digits at once.
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

// Counts a tile's digits: `seen` by the items up to each, an item's own pairs being a run, and
// where the sorted tile's pairs of each digit begin.
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

// Sorts a tile by one digit: a pair's place is where its digit begins, and after those of its digit
// that stand before it.
DEVICE void sort_tile(LOCAL_ARG u32* keys, LOCAL_ARG u32* values, LOCAL_ARG const u64* seen,
                      LOCAL_ARG const u32* first, u32 held, u32 shift) {
  u32 own_keys[PER_ITEM];
  u32 own_values[PER_ITEM];
  u64 taken[WORDS];
  for (u32 k = 0; k < PER_ITEM; ++k) {
    own_keys[k] = keys[PADDED(LOCAL_ID * PER_ITEM + k)];
    own_values[k] = values[PADDED(LOCAL_ID * PER_ITEM + k)];
  }
  for (u32 word = 0; word < WORDS; ++word)
    taken[word] = LOCAL_ID == 0 ? 0 : seen[word * GROUP + LOCAL_ID - 1];
  BARRIER();
  for (u32 k = 0; k < PER_ITEM; ++k) {
    u32 digit = DIGIT(own_keys[k]);
    u32 rank = 0;
    for (u32 word = 0; word < WORDS; ++word) // an index that is known keeps `taken` in registers
      if (word == digit / 4) {
        rank = first[digit] + COUNT_IN(taken[word], digit);
        taken[word] += (u64)1 << (16 * (digit % 4));
      }
    if (LOCAL_ID * PER_ITEM + k < held) {
      keys[PADDED(rank)] = own_keys[k];
      values[PADDED(rank)] = own_values[k];
    }
  }
  BARRIER();
}

// A tile is sorted by its digit and goes to memory in runs. Counts that are wrong (a device's fault)
// move no pair out of the arrays.
KERNEL move_pairs(GLOBAL const u32* RESTRICT keys, GLOBAL const u32* RESTRICT values,
                  GLOBAL const u32* RESTRICT counts, GLOBAL u32* RESTRICT to_keys,
                  GLOBAL u32* RESTRICT to_values, u32 shift, u64 n) {
  LOCAL u32 tile_keys[PADDED(TILE)];
  LOCAL u32 tile_values[PADDED(TILE)];
  LOCAL u64 seen[WORDS * GROUP];
  LOCAL u32 next[DIGITS];  // where the group's next pair of each digit goes
  LOCAL u32 first[DIGITS]; // where each digit begins in the sorted tile
  u64 end = part_begin(n, GROUP_ID + 1, GROUPS);
  if (LOCAL_ID < DIGITS)
    next[LOCAL_ID] = counts[LOCAL_ID * GROUPS + GROUP_ID];
  for (u64 tile = part_begin(n, GROUP_ID, GROUPS); tile < end; tile += TILE) {
    u32 held = (u32)(end - tile < TILE ? end - tile : TILE);
    for (u32 k = 0; k < PER_ITEM; ++k) {
      u32 i = k * GROUP + LOCAL_ID;
      if (i < held) {
        tile_keys[PADDED(i)] = keys[tile + i];
        tile_values[PADDED(i)] = values[tile + i];
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
        to_values[place] = tile_values[PADDED(i)];
      }
    }
    BARRIER();
    if (LOCAL_ID < DIGITS)
      next[LOCAL_ID] += COUNT_IN(seen[LOCAL_ID / 4 * GROUP + GROUP - 1], LOCAL_ID);
    BARRIER();
  }
}
