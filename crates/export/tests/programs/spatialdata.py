"""Compares a SpatialData store with the label image `expected`. Labels may be numbered differently."""

import sys

import numpy
import shapely
import spatialdata
from spatialdata.transformations import get_transformation

width, height, count = map(int, sys.argv[1:])
expected = numpy.fromfile("expected", "<u4").reshape(height, width)

store = spatialdata.read_zarr("slide.spatialdata.zarr")
assert set(store.labels) == {"nuclei"} and set(store.shapes) == {"nuclei_outlines"}, store
assert set(store.coordinate_systems) == {"global", "micrometers"}, store.coordinate_systems

levels = store.labels["nuclei"]
assert len(levels) == 3, levels
labels = levels["scale0"].image.to_numpy()
half = levels["scale1"].image.to_numpy()
assert (half == labels[::2, ::2]).all()
# The same objects: each label of one image is one label of the other.
pairs = numpy.unique(numpy.stack([expected.ravel(), labels.ravel()]), axis=1)
assert pairs.shape[1] == count + 1 and len(set(pairs[0])) == len(set(pairs[1])) == count + 1, pairs.shape

shapes = store.shapes["nuclei_outlines"]
assert list(shapes.index) == list(range(1, count + 1)) and shapes.index.name == "label", shapes
assert set(shapes["class"]) == {"Nucleus"}
areas = numpy.bincount(labels.ravel())
assert shapely.is_valid(shapes.geometry).all()
assert (shapes.geometry.area == 4 * areas[1:]).all() and (shapes["area_px"] == 4 * areas[1:]).all()

# Both elements are in the same place in each coordinate system.
rows, columns = numpy.nonzero(labels)
for system, slide_px in [("global", 1.0), ("micrometers", 0.25)]:
    of_labels = get_transformation(levels, to_coordinate_system=system).to_affine_matrix(("x", "y"), ("x", "y"))
    of_shapes = get_transformation(shapes, to_coordinate_system=system).to_affine_matrix(("x", "y"), ("x", "y"))
    assert (of_labels == numpy.diag([2 * slide_px, 2 * slide_px, 1])).all(), of_labels
    assert (of_shapes == numpy.diag([slide_px, slide_px, 1])).all(), of_shapes
middles = shapely.points(2 * columns + 1, 2 * rows + 1)
assert shapely.contains(shapes.geometry.to_numpy()[labels[rows, columns] - 1], middles).all()
print("equal")
