// Planes of the opening and of the reconstruction. GUARD is that of opening.cl.

#define GUARD 16

// Writes the inverted red channel of a B, G, R image, and the same with a margin of 255 into a guarded plane.
kernel void inverted_red(global const uchar *bgr, global uchar *red, global uchar *guarded, uint width, uint height,
                         uint margin, uint stride) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar value = 255 - bgr[3 * at + 2];
  red[at] = value;
  guarded[(y + margin + GUARD) * stride + GUARD + margin + x] = value;
}

// Writes the marker, which is the guarded plane without `cut` columns and rows on each side, and the mask: `inner` with a ring of
// the marker. Values of the marker above the mask become the mask's.
kernel void marker_and_mask(global const uchar *guarded, global const uchar *inner, global uchar *marker, global uchar *mask,
                            uint width, uint height, uint cut, uint stride) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uchar value = guarded[(y + cut + GUARD) * stride + GUARD + cut + x];
  uchar limit = value;
  if (x > 0 && y > 0 && x < width - 1 && y < height - 1) limit = inner[(y - 1) * (width - 2) + x - 1];
  marker[y * width + x] = min(value, limit);
  mask[y * width + x] = limit;
}

// Copies a plane of `width` x `height` pixels out of one with a margin of 1 px.
kernel void without_margin(global const uchar *padded, global uchar *plane, uint width, uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  plane[y * width + x] = padded[(y + 1) * (width + 2) + x + 1];
}
