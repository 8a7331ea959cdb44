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

  uint item = get_local_id(0);
  int across = get_num_groups(0), down = get_num_groups(1);
  int bx = get_group_id(0), by = get_group_id(1);
  int block = by * across + bx;
  if (item == 0) is_awake = awake[block];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_awake) return;
  if (item == 0) awake[block] = 0;

  int left = bx * BLOCK - 1, top = by * BLOCK - 1;
  for (uint at = item; at < SIDE * SIDE; at += BLOCK) {
    int x = left + (int)(at % SIDE), y = top + (int)(at / SIDE);
    bool inside = x >= 0 && y >= 0 && x < (int)width && y < (int)height;
    values[at] = inside ? marker[(uint)y * width + (uint)x] : BOTTOM;
    limits[at] = inside ? mask[(uint)y * width + (uint)x] : BOTTOM;
  }

  uint rounds = 0;
  do {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) changed = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint rises = 0;
    {
      // A work item spreads along its row, to the right and back. The margin is read, never written.
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
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
      // Along its column, down and up.
      uint at = item + 1;
      T carry = values[at];
      for (uint y = 1; y <= BLOCK; y++) {
        T old = values[at + y * SIDE];
        carry = min(limits[at + y * SIDE], max(old, carry));
        rises |= carry != old;
        values[at + y * SIDE] = carry;
      }
      carry = values[at + (BLOCK + 1) * SIDE];
      for (uint y = BLOCK; y >= 1; y--) {
        T old = values[at + y * SIDE];
        carry = min(limits[at + y * SIDE], max(old, carry));
        rises |= carry != old;
        values[at + y * SIDE] = carry;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Across corners: odd rows read even ones, then the other way around, so no row is read while it is written.
    for (uint parity = 0; parity < 2; parity++) {
      if (eight && item % 2 == parity) {
        uint at = (item + 1) * SIDE;
        for (uint x = 1; x <= BLOCK; x++) {
          T old = values[at + x];
          T above = max(values[at + x - SIDE - 1], values[at + x - SIDE + 1]);
          T below = max(values[at + x + SIDE - 1], values[at + x + SIDE + 1]);
          T value = min(limits[at + x], max(old, max(above, below)));
          rises |= value != old;
          values[at + x] = value;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (rises) changed = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    rounds += changed;
  } while (changed);
  // Rounds are equal in all work items: `changed` is read between barriers.
  if (rounds == 0) return;

  // Writes what rose, and wakes the neighbors beside raised pixels of the rim: bit 3 * (dy + 1) + dx + 1 for each.
  uint wakes = 0;
  for (uint at = item; at < BLOCK * BLOCK; at += BLOCK) {
    int bx_px = at % BLOCK, by_px = at / BLOCK;
    int x = left + 1 + bx_px, y = top + 1 + by_px;
    if (x >= (int)width || y >= (int)height) continue;
    T value = values[(by_px + 1) * SIDE + bx_px + 1];
    uint pixel = (uint)y * width + (uint)x;
    if (value == marker[pixel]) continue;
    marker[pixel] = value;
    int dx = bx_px == 0 ? -1 : bx_px == BLOCK - 1 ? 1 : 0;
    int dy = by_px == 0 ? -1 : by_px == BLOCK - 1 ? 1 : 0;
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
