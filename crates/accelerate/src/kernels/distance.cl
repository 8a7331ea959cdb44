// Squares of the exact Euclidean distance to the background of a mask. Both sides are so short that squares have 32 bits.

#define NONE 0xffffffffu

// Writes the distance of each pixel to the nearest background pixel of its column, or NONE. One work item for each column.
kernel void vertical(global const uchar *mask, global uint *distances, uint width, uint height) {
  uint x = get_global_id(0);
  if (x >= width) return;
  uint distance = NONE;
  for (uint y = 0; y < height; y++) {
    uint at = y * width + x;
    distance = mask[at] == 0 ? 0 : add_sat(distance, 1u);
    distances[at] = distance;
  }
  distance = NONE;
  for (uint y = height; y-- > 0;) {
    uint at = y * width + x;
    distance = min(distances[at], add_sat(distance, 1u));
    distances[at] = distance;
  }
}

// Returns the square of the distance to the background of another column, `apart` columns away.
static uint square(uint vertical, uint apart) {
  return vertical == NONE ? NONE : vertical * vertical + apart * apart;
}

// Writes the squares of the distances, or NONE without background. Columns farther than the best one cannot be better.
kernel void squares(global const uint *vertical, global uint *to, uint width, uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  global const uint *row = vertical + y * width;
  uint best = square(row[x], 0);
  uint reach = max(x, width - 1 - x);
  for (uint apart = 1; apart <= reach && apart * apart < best; apart++) {
    if (x >= apart) best = min(best, square(row[x - apart], apart));
    if (x + apart < width) best = min(best, square(row[x + apart], apart));
  }
  to[y * width + x] = best;
}

// Replaces each square by the float nearest to its root. A square beyond 2^24 is rounded to a float first, as on a core. The root of a
// double, rounded to a float, is the correctly rounded root of the float.
kernel void roots(global uint *squares, uint pixels) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  float rounded = convert_float_rte(squares[pixel]);
  squares[pixel] = as_uint(convert_float_rte(sqrt(convert_double(rounded))));
}
