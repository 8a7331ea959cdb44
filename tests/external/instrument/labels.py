"""A label map as result: a study needs numbers of it."""

from skimage import filters, measure, morphology


def find(tile, *, sigma=1.0, offset=0.0, radius=1, clear=True):
    gray = tile.mean(axis=2)
    smooth = filters.gaussian(gray, sigma)
    mask = smooth < filters.threshold_otsu(smooth) + offset
    disk = morphology.disk(radius)
    mask = morphology.binary_opening(mask, disk)
    labels = measure.label(mask)
    if clear:
        labels[:, 0] = 0
    return labels


if __name__ == "__main__":
    import sys

    from skimage import io

    print(find(io.imread(sys.argv[1])).max())
