// Colors of a B, G, R image: their counts, and a new color for each. A color is R << 16 | G << 8 | B.

// Counts the pixels of each color in a table of 2^24 numbers, and lists the colors that occur, in any order.
kernel void count_colors(global const uchar *bgr, global uint *counts, global uint *list, global uint *listed, uint pixels) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  uint color = (uint)bgr[3 * (ulong)pixel + 2] << 16 | (uint)bgr[3 * (ulong)pixel + 1] << 8 | bgr[3 * (ulong)pixel];
  if (atomic_inc(&counts[color]) == 0) list[atomic_inc(listed)] = color;
}

// Reads the count of each listed color.
kernel void gather(global const uint *table, global const uint *list, global uint *values, uint length) {
  uint at = get_global_id(0);
  if (at < length) values[at] = table[list[at]];
}

// Writes a number for each listed color.
kernel void scatter(global uint *table, global const uint *list, global const uint *values, uint length) {
  uint at = get_global_id(0);
  if (at < length) table[list[at]] = values[at];
}

// Replaces each pixel by the color in the table.
kernel void look_up(global const uchar *bgr, global const uint *table, global uchar *to, uint pixels) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  ulong at = 3 * (ulong)pixel;
  uint color = table[(uint)bgr[at + 2] << 16 | (uint)bgr[at + 1] << 8 | bgr[at]];
  to[at] = color & 255;
  to[at + 1] = color >> 8 & 255;
  to[at + 2] = color >> 16 & 255;
}
