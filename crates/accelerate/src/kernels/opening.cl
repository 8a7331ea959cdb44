// Opening of a plane with the octagon |dx| <= 9, |dy| <= 9, |dx| + |dy| <= 14: a square of radius 5, then a diamond of radius 4.
// A work item computes 16 pixels of a row. Planes have guards of a neutral value (255 for minima, 0 for maxima): GUARD columns and
// GUARD rows on each side, so that no work item tests the edge. `stride` is a multiple of 16.

#define GUARD 16
#define SQUARE 5
#define DIAMOND 4

#ifdef MINIMUM
#define BETTER min
#define NEUTRAL ((uchar16)(255))
#else
#define BETTER max
#define NEUTRAL ((uchar16)(0))
#endif

#define LANES ((uchar16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

// Stores 16 pixels. Those beyond the last column become the neutral value of the next step.
static void store(uchar16 values, uint x, uint width, uchar neutral, global uchar *to) {
  uint inside = min(width - x, 16u);
  uchar16 beyond = as_uchar16(LANES >= (uchar16)((uchar)inside));
  vstore16(select(values, (uchar16)(neutral), beyond), 0, to);
}

kernel void rows(global const uchar *from, global uchar *to, uint width, uint height, uint stride) {
  uint x = 16 * get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = (y + GUARD) * stride + GUARD + x;
  uchar16 best = vload16(0, from + at);
  for (uint d = 1; d <= SQUARE; d++) {
    best = BETTER(best, BETTER(vload16(0, from + at - d), vload16(0, from + at + d)));
  }
  store(best, x, width, NEUTRAL.s0, to + at);
}

kernel void columns(global const uchar *from, global uchar *to, uint width, uint height, uint stride) {
  uint x = 16 * get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = (y + GUARD) * stride + GUARD + x;
  uchar16 best = vload16(0, from + at);
  for (uint d = 1; d <= SQUARE; d++) {
    best = BETTER(best, BETTER(vload16(0, from + at - d * stride), vload16(0, from + at + d * stride)));
  }
  store(best, x, width, NEUTRAL.s0, to + at);
}

// `neutral` is that of the step that reads `to`.
kernel void diamond(global const uchar *from, global uchar *to, uint width, uint height, uint stride, uint neutral) {
  uint x = 16 * get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = (y + GUARD) * stride + GUARD + x;
  uchar16 best = NEUTRAL;
  for (int dy = -DIAMOND; dy <= DIAMOND; dy++) {
    int reach = DIAMOND - abs(dy);
    for (int dx = -reach; dx <= reach; dx++) {
      best = BETTER(best, vload16(0, from + (int)at + dy * (int)stride + dx));
    }
  }
  store(best, x, width, (uchar)neutral, to + at);
}
