// Red blood cells and background of a B, G, R image.

// Writes the mask of the pixels that reach `weak` (the least R for each G), and the marker of those that reach `strong` too. Counts
// pixels with all channels above those of `bright` (B | G << 8 | R << 16). A work item processes PIXELS pixels, a group neighboring
// ones at a time.
kernel void thresholds(global const uchar *bgr, global const ushort *strong, global const ushort *weak, global uchar *marker,
                       global uchar *mask, global uint *background, uint bright, uint pixels) {
  uint counted = 0;
  uint first = get_group_id(0) * PIXELS * get_local_size(0) + get_local_id(0);
  for (uint step = 0; step < PIXELS; step++) {
    uint pixel = first + step * get_local_size(0);
    if (pixel >= pixels) break;
    ulong at = 3 * (ulong)pixel;
    uint b = bgr[at], g = bgr[at + 1], r = bgr[at + 2];
    bool is_weak = r >= weak[g];
    mask[pixel] = is_weak ? 255 : 0;
    marker[pixel] = is_weak && r >= strong[g] ? 255 : 0;
    counted += b > (bright & 255) && g > (bright >> 8 & 255) && r > (bright >> 16);
  }
  if (counted) atomic_add(background, counted);
}

// Clears the pixels of a mask whose R is not above B.
kernel void clear_not_red(global const uchar *bgr, global uchar *mask, uint pixels) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  ulong at = 3 * (ulong)pixel;
  if (bgr[at + 2] <= bgr[at]) mask[pixel] = 0;
}
