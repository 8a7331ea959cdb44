// Planes of a binary reconstruction: 255 for the pixels that values may spread to, and for those that they spread from. Object pixels
// of a mask are nonzero.

// Returns whether a pixel is on the edge of the image.
static bool is_rim(uint x, uint y, uint width, uint height) {
  return x == 0 || y == 0 || x == width - 1 || y == height - 1;
}

// Writes the background of a mask, and its pixels on the edge of the image.
kernel void background_and_rim(global const uchar *mask, global uchar *marker, global uchar *background, uint width, uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar value = mask[at] == 0 ? 255 : 0;
  background[at] = value;
  marker[at] = is_rim(x, y, width, height) ? value : 0;
}

// Writes how far `upper` exceeds `lower`, the pixels where it does so by at most `level`, and those of them on the edge of the image.
kernel void difference_and_rim(global const uchar *upper, global const uchar *lower, global uchar *difference, global uchar *marker,
                               global uchar *background, uint width, uint height, uint level) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar exceeds = sub_sat(upper[at], lower[at]);
  uchar value = exceeds > level ? 0 : 255;
  difference[at] = exceeds;
  background[at] = value;
  marker[at] = is_rim(x, y, width, height) ? value : 0;
}

// Writes the pixels above `level`, and those of them that are seeds.
kernel void above_and_seeds(global const uchar *plane, global const uchar *seeds, global uchar *marker, global uchar *mask, uint pixels,
                            uint level) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  uchar value = plane[pixel] > level ? 255 : 0;
  mask[pixel] = value;
  marker[pixel] = seeds[pixel] != 0 ? value : 0;
}

// Replaces a mask, which is the marker after its reconstruction, by the background of its pixels that are not in `removed`.
kernel void remaining_background_and_rim(global uchar *marker, global const uchar *removed, global uchar *background, uint width,
                                         uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar value = marker[at] != 0 && removed[at] == 0 ? 0 : 255;
  background[at] = value;
  marker[at] = is_rim(x, y, width, height) ? value : 0;
}

kernel void invert(global uchar *plane, uint pixels) {
  uint pixel = get_global_id(0);
  if (pixel < pixels) plane[pixel] = 255 - plane[pixel];
}

// Inverts a binary plane and erodes it with the pixel and its four neighbors. Pixels outside the image count as 0 of the inverted plane.
kernel void erode_inverse(global const uchar *from, global uchar *to, uint width, uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar most = 255;
  if (!is_rim(x, y, width, height)) {
    most = max(from[at], max(max(from[at - 1], from[at + 1]), max(from[at - width], from[at + width])));
  }
  to[at] = 255 - most;
}

// Dilates with the pixel and its four neighbors.
kernel void dilate(global const uchar *from, global uchar *to, uint width, uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  uchar most = from[at];
  if (x > 0) most = max(most, from[at - 1]);
  if (x < width - 1) most = max(most, from[at + 1]);
  if (y > 0) most = max(most, from[at - width]);
  if (y < height - 1) most = max(most, from[at + width]);
  to[at] = most;
}
