// Areas of the components of a mask: labels by union-find, the label of a component is its first pixel.
//
// Labels only fall and always name a pixel of the same component, so an old label that is read beside another group's write is an
// ancestor too. The number that the atomic minimum returns decides.
// Groups have SEGMENT x 1 items: a segment of a row each.

#define SEGMENT 64
#define NONE 0xffffffffu

// Returns the object pixels of the group's segment as bits. All items of the group call it.
static ulong object_bits(local uint *halves, bool object) {
  uint item = get_local_id(0);
  if (item < 2) halves[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (object) atomic_or(&halves[item / 32], 1u << item % 32);
  barrier(CLK_LOCAL_MEM_FENCE);
  return (ulong)halves[1] << 32 | halves[0];
}

// Returns the first item of the run that `item` belongs to.
static uint run_start(ulong bits, uint item) {
  ulong gaps = ~bits & (((ulong)1 << item) - 1);
  return gaps == 0 ? 0 : 64 - (uint)clz(gaps);
}

// Returns the number of items from `item` to the end of its run.
static uint run_length(ulong bits, uint item) {
  ulong gaps = ~bits >> item;
  // The lowest bit that is set. Items before `item` left zeros at the top.
  return gaps == 0 ? SEGMENT - item : 63 - (uint)clz(gaps & (~gaps + 1));
}

static uint find(global volatile uint *labels, uint pixel) {
  uint label = labels[pixel];
  while (label != pixel) {
    pixel = label;
    label = labels[pixel];
  }
  return pixel;
}

static void unite(global volatile uint *labels, uint a, uint b) {
  for (;;) {
    a = find(labels, a);
    b = find(labels, b);
    if (a == b) return;
    uint high = max(a, b), low = min(a, b);
    uint old = atomic_min(&labels[high], low);
    if (old == high) return;
    // Another item gave `high` the label `old` meanwhile: that tree is to be united as well.
    a = old;
    b = low;
  }
}

// Labels each pixel of an object with the first pixel of its run within the segment.
kernel void label_runs(global const uchar *mask, global uint *labels, uint width, uint height) {
  local uint halves[2];
  uint x = get_global_id(0), y = get_global_id(1), item = get_local_id(0);
  uint at = y * width + x;
  bool object = x < width && mask[at] != 0;
  ulong bits = object_bits(halves, object);
  if (x < width) labels[at] = object ? at - item + run_start(bits, item) : NONE;
}

// Unites runs of neighboring segments and rows. Each pair of runs has one pixel that does it.
kernel void unite_runs(global volatile uint *labels, uint width, uint height, uint eight) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  uint at = y * width + x;
  if (labels[at] == NONE) return;
  bool left = x > 0 && labels[at - 1] != NONE;
  if (left && x % SEGMENT == 0) unite(labels, at, at - 1);
  if (y == 0) return;
  bool up = labels[at - width] != NONE;
  bool up_left = x > 0 && labels[at - width - 1] != NONE;
  if (up) {
    // The pixel to the left unites these runs already if both reach there.
    if (!(left && up_left)) unite(labels, at, at - width);
  } else if (eight) {
    if (up_left && !left) unite(labels, at, at - width - 1);
    bool right = x < width - 1 && labels[at + 1] != NONE;
    if (!right && x < width - 1 && labels[at - width + 1] != NONE) unite(labels, at, at - width + 1);
  }
}

// Replaces labels by those of the components, and adds the runs to the areas at these pixels.
kernel void sum_areas(global volatile uint *labels, global uint *areas, uint width, uint height) {
  local uint halves[2];
  uint x = get_global_id(0), y = get_global_id(1), item = get_local_id(0);
  uint at = y * width + x;
  bool object = x < width && labels[at] != NONE;
  ulong bits = object_bits(halves, object);
  if (!object) return;
  uint root = find(labels, at);
  labels[at] = root;
  if (run_start(bits, item) == item) atomic_add(&areas[root], run_length(bits, item));
}

// Writes the mask of the components with at least `least` pixels and fewer than `end`.
kernel void keep_areas(global const uint *labels, global const uint *areas, global uchar *kept, uint pixels, uint least, uint end) {
  uint pixel = get_global_id(0);
  if (pixel >= pixels) return;
  uint label = labels[pixel];
  uint area = label == NONE ? 0 : areas[label];
  kept[pixel] = label != NONE && area >= least && area < end ? 255 : 0;
}
