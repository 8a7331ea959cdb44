// Morphological reconstruction by dilation, in blocks of BLOCK x BLOCK pixels that settle in local memory.
//
// Values only rise and are bounded by the mask, so blocks may read neighbors that other groups write at the same time: an old value
// is too low at most, and the writer wakes this block for the next round. The fixed point is unique, whatever the order.
// T is the type of a pixel, BOTTOM its lowest value.

#define SIDE (BLOCK + 2)

// One group for each block, BLOCK work items each. `awake` has one flag for each block, `next` those of the next round, `woken`
// becomes nonzero if the next round has a block.
kernel void settle(global T *marker, global const T *mask, uint width, uint height, uint eight, global uint *awake,
                   global uint *next, global uint *woken, uint round) {
  local T values[SIDE * SIDE];
  local T limits[SIDE * SIDE];
  local uint changed;
  local uint is_awake;
  local uint is_empty;

  uint item = get_local_id(0);
  int across = get_num_groups(0), down = get_num_groups(1);
  int bx = get_group_id(0), by = get_group_id(1);
  int block = by * across + bx;
  if (item == 0) {
    is_awake = awake[block];
    is_empty = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_awake) return;
  if (item == 0) awake[block] = 0;

  int left = bx * BLOCK - 1, top = by * BLOCK - 1;
  uint above_bottom = 0;
  for (uint column = item; column < SIDE; column += BLOCK) {
    int x = left + (int)column;
    for (uint row = 0; row < SIDE; row++) {
      int y = top + (int)row;
      bool inside = x >= 0 && y >= 0 && x < (int)width && y < (int)height;
      T value = inside ? marker[(uint)y * width + (uint)x] : BOTTOM;
      above_bottom |= value != BOTTOM;
      values[row * SIDE + column] = value;
      limits[row * SIDE + column] = inside ? mask[(uint)y * width + (uint)x] : BOTTOM;
    }
  }
  // Most blocks of a binary marker have no seed.
  if (above_bottom) is_empty = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (is_empty) return;

  // Sweeps run row by row with a barrier: pixels of a row do not depend on each other, so a processor computes them as a vector.
  uint rounds = 0;
  do {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) changed = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint rises = 0;
    for (uint step = 0; step < 2 * BLOCK; step++) {
      // Down from the margin above, then up from the margin below. The margin is read, never written.
      uint row = step < BLOCK ? step + 1 : 2 * BLOCK - step;
      uint at = row * SIDE + item + 1, from = step < BLOCK ? at - SIDE : at + SIDE;
      T old = values[at];
      T best = max(old, values[from]);
      if (eight) best = max(best, max(values[from - 1], values[from + 1]));
      best = min(limits[at], best);
      values[at] = best;
      rises |= best != old;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    // A work item spreads along its row, to the right and back.
    uint at = (item + 1) * SIDE;
    T carry = values[at];
    for (uint x = 1; x <= BLOCK; x++) {
      T old = values[at + x];
      carry = min(limits[at + x], max(old, carry));
      rises |= carry != old;
      values[at + x] = carry;
    }
    carry = values[at + BLOCK + 1];
    for (uint x = BLOCK; x >= 1; x--) {
      T old = values[at + x];
      carry = min(limits[at + x], max(old, carry));
      rises |= carry != old;
      values[at + x] = carry;
    }
    if (rises) changed = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    rounds += changed;
  } while (changed);
  // Rounds are equal in all work items: `changed` is read between barriers.
  if (rounds == 0) return;

  // Writes what rose, and wakes the neighbors beside raised pixels of the rim: bit 3 * (dy + 1) + dx + 1 for each.
  uint wakes = 0;
  int x = left + 1 + (int)item;
  for (uint row = 0; row < BLOCK && x < (int)width && top + 1 + row < height; row++) {
    T value = values[(row + 1) * SIDE + item + 1];
    uint pixel = (top + 1 + row) * width + (uint)x;
    if (value == marker[pixel]) continue;
    marker[pixel] = value;
    int dx = item == 0 ? -1 : item == BLOCK - 1 ? 1 : 0;
    int dy = row == 0 ? -1 : row == BLOCK - 1 ? 1 : 0;
    if (dx != 0) wakes |= 1u << (3 + dx + 1);
    if (dy != 0) wakes |= 1u << (3 * (dy + 1) + 1);
    if (dx != 0 && dy != 0 && eight) wakes |= 1u << (3 * (dy + 1) + dx + 1);
  }
  for (int bit = 0; bit < 9; bit++) {
    int nx = bx + bit % 3 - 1, ny = by + bit / 3 - 1;
    if ((wakes & 1u << bit) && nx >= 0 && ny >= 0 && nx < across && ny < down) {
      atomic_xchg(&next[ny * across + nx], 1u);
      atomic_xchg(&woken[round], 1u);
    }
  }
}
