// Counts of the pixels in two masks. A work item counts LANES pixels of a row.

#define LANES 16

// Adds the numbers of pixels in both masks and in either to `counts`, within a rectangle of the image. With COUNTED, values of both masks
// are restricted to the bits of `counted`.
kernel void overlap(global const uchar *mask, global const uchar *reference, global const uchar *counted, global uint *counts,
                    uint stride, uint left, uint top, uint width, uint height) {
  local uint in_group[2];
  uint item = get_local_id(0);
  if (item < 2) in_group[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint x = LANES * get_global_id(0), y = get_global_id(1);
  uint both = 0, either = 0;
  if (x < width && y < height) {
    uint at = (top + y) * stride + left + x;
    uint end = at + min(width - x, (uint)LANES);
    for (; at < end; at++) {
      uchar a = mask[at], b = reference[at];
#ifdef COUNTED
      a &= counted[at];
      b &= counted[at];
#endif
      both += a != 0 && b != 0;
      either += a != 0 || b != 0;
    }
  }
  if (both > 0) atomic_add(&in_group[0], both);
  if (either > 0) atomic_add(&in_group[1], either);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < 2 && in_group[item] > 0) atomic_add(&counts[item], in_group[item]);
}
