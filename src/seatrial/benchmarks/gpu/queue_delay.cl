// The smallest kernel with a visible effect: each item counts its launches.
KERNEL tick(GLOBAL u32* RESTRICT counters) {
  counters[GROUP_ID * LOCAL_SIZE + LOCAL_ID] += 1;
}
