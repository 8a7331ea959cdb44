/* Keeps the 8-connected components of a mask with an area below a maximum.
 *
 *     cc -O2 -o area area.c
 *     ./area IN.npy OUT.npy MAXIMUM
 *
 * Masks are arrays of numpy: version 1.0, unsigned bytes, rows first. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *message) {
  fprintf(stderr, "area: %s\n", message);
  exit(2);
}

int main(int count, char **words) {
  if (count != 4) stop("IN.npy OUT.npy MAXIMUM");
  FILE *in = fopen(words[1], "rb");
  unsigned char start[10];
  if (!in || fread(start, 1, sizeof start, in) != sizeof start) stop("IN.npy: cannot be read");
  size_t length = start[8] | (size_t)start[9] << 8;
  char *header = calloc(length + 1, 1);
  if (!header || fread(header, 1, length, in) != length) stop("IN.npy: no header");
  char *shape = strstr(header, "'shape': (");
  size_t rows, columns;
  if (!shape || sscanf(shape, "'shape': (%zu, %zu)", &rows, &columns) != 2) stop("IN.npy: not of two dimensions");
  size_t pixels = rows * columns, maximum = strtoull(words[3], NULL, 10);
  uint8_t *mask = malloc(pixels), *seen = calloc(pixels, 1);
  size_t *found = malloc(pixels * sizeof *found);
  if (!mask || !seen || !found || fread(mask, 1, pixels, in) != pixels) stop("IN.npy: too short");

  for (size_t first = 0; first < pixels; first++) {
    if (!mask[first] || seen[first]) continue;
    /* The list of the component's pixels is the queue of the search as well. */
    size_t area = 0;
    found[area++] = first;
    seen[first] = 1;
    for (size_t next = 0; next < area; next++) {
      size_t row = found[next] / columns, column = found[next] % columns;
      for (size_t y = row ? row - 1 : 0; y <= row + 1 && y < rows; y++)
        for (size_t x = column ? column - 1 : 0; x <= column + 1 && x < columns; x++) {
          size_t place = y * columns + x;
          if (mask[place] && !seen[place]) {
            seen[place] = 1;
            found[area++] = place;
          }
        }
    }
    if (area >= maximum)
      while (area) mask[found[--area]] = 0;
  }

  FILE *out = fopen(words[2], "wb");
  if (!out || fwrite(start, 1, sizeof start, out) != sizeof start || fwrite(header, 1, length, out) != length ||
      fwrite(mask, 1, pixels, out) != pixels || fclose(out))
    stop("OUT.npy: cannot be written");
  return 0;
}
