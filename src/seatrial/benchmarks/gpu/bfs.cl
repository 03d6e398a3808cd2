// Breadth-first search, level by level, with a list of the vertices of each level (L. Luo, M. Wong
// and W. Hwu, "An effective GPU implementation of breadth-first search", 2010). The list lengths
// are in a ring of three: for this level, the next, and the one after, which is cleared.
#define NOT_REACHED 0x7fffffffu

KERNEL start(GLOBAL u32* RESTRICT levels, GLOBAL u32* RESTRICT list, GLOBAL u32* RESTRICT lengths,
             u32 source, u32 n) {
  FOR_EACH_INDEX(v, n) {
    levels[v] = v == source ? 0 : NOT_REACHED;
    if (v == source) {
      list[0] = source;
      lengths[0] = 1;
      lengths[1] = 0;
      lengths[2] = 0;
    }
  }
}

// Adds each unvisited neighbour of the list's vertices to the next list: if several items find the
// same one, the first to lower its level adds it. Wrong lengths or vertices (a device fault) cannot
// cause out-of-bounds accesses.
KERNEL expand(GLOBAL const u32* RESTRICT begins, GLOBAL const u32* RESTRICT neighbours,
              GLOBAL u32* levels, GLOBAL const u32* RESTRICT list, GLOBAL u32* RESTRICT next_list,
              GLOBAL u32* lengths, u32 level, u32 n) {
  u32 length = lengths[level % 3];
  if (GROUP_ID == 0 && LOCAL_ID == 0)
    lengths[(level + 2) % 3] = 0;
  FOR_EACH_INDEX(i, length < n ? length : n) {
    u32 v = list[i];
    if (v < n)
      for (u32 e = begins[v]; e < begins[v + 1]; ++e) {
        u32 w = neighbours[e];
        if (levels[w] > level + 1 && ATOMIC_MIN(&levels[w], level + 1) > level + 1) {
          u32 place = ATOMIC_ADD(&lengths[(level + 1) % 3], 1u);
          if (place < n)
            next_list[place] = w;
        }
      }
  }
}
