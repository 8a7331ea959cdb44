"""Compares the files of an export with the label image `expected`. Labels may be numbered differently."""

import gzip
import json
import sys

import numpy
import polars
import shapely
import tifffile
import zarr

width, height, count = map(int, sys.argv[1:])
expected = numpy.fromfile("expected", "<u4").reshape(height, width)

with tifffile.TiffFile("slide.ome.tif") as tiff:
    assert tiff.is_ome and tiff.is_bigtiff
    series = tiff.series[0]
    assert [level.shape for level in series.levels] == [(height, width), (650, 1250), (325, 625)][: len(series.levels)]
    assert len(series.levels) == 3, series.levels
    labels = series.asarray()
    half = series.levels[1].asarray()
    assert 'PhysicalSizeX="0.5"' in tiff.ome_metadata
    resolution = tiff.pages[0].tags["XResolution"].value
    assert resolution[0] / resolution[1] == 20_000, resolution

# The same objects: each label of one image is one label of the other.
pairs = numpy.unique(numpy.stack([expected.ravel(), labels.ravel()]), axis=1)
assert pairs.shape[1] == count + 1 and len(set(pairs[0])) == len(set(pairs[1])) == count + 1, pairs.shape
assert (half == labels[::2, ::2]).all()
assert (tifffile.imread("slide_labels.tif") == labels).all()
assert (tifffile.imread("slide_mask.tif") == numpy.where(labels > 0, 255, 0)).all()

store = zarr.open_group("slide.ome.zarr", mode="r")
assert store.attrs["ome"]["version"] == "0.5" and store["labels"].attrs["ome"]["labels"] == ["nuclei"]
image = store["labels/nuclei"]
levels = image.attrs["ome"]["multiscales"][0]["datasets"]
assert [level["path"] for level in levels] == ["0", "1", "2"]
assert levels[1]["coordinateTransformations"] == [{"type": "scale", "scale": [1.0, 1.0]}]
assert (image["0"][:] == labels).all() and (image["1"][:] == half).all()

with gzip.open("slide.geojson.gz", "rt") as file:
    features = json.load(file)["features"]
assert len(features) == count
areas = numpy.bincount(labels.ravel())
rows, columns = numpy.nonzero(labels)
geometries = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
assert shapely.is_valid(geometries).all(), shapely.is_valid_reason(geometries)
kinds = set()
for number, (feature, geometry) in enumerate(zip(features, geometries), 1):
    properties = feature["properties"]
    assert properties["objectType"] == "detection"
    assert properties["classification"] == {"name": "Nucleus", "color": [200, 0, 0]}
    assert properties["measurements"]["Label"] == number
    # Slide pixels: two for each pixel of the segmentation.
    assert geometry.area == 4 * areas[number] == properties["measurements"]["Area px^2"]
    kinds.add(geometry.geom_type)
    if geometry.geom_type == "Polygon" and len(geometry.interiors) > 0:
        kinds.add("hole")
assert kinds == {"Polygon", "MultiPolygon", "hole"}, kinds
# Rasterized, the outlines are the label image: the middle of each pixel is in the outline of its label.
middles = shapely.points(2 * columns + 1, 2 * rows + 1)
assert shapely.contains(geometries[labels[rows, columns] - 1], middles).all()

table = polars.read_parquet("slide.parquet")
text = polars.read_csv("slide.csv")
assert table.columns == text.columns and table.equals(text.cast(table.schema))
assert table["label"].to_list() == list(range(1, count + 1)) and set(table["class"]) == {"Nucleus"}
sums = numpy.bincount(labels.ravel(), numpy.tile(numpy.arange(width) + 0.5, height))[1:]
assert numpy.allclose(table["x_px"], 2 * sums / areas[1:])
assert numpy.allclose(table["x_um"], 0.5 * sums / areas[1:])
assert numpy.allclose(table["area_um2"], areas[1:] * 0.25)
bounds = shapely.bounds(geometries)
assert (table.select("left_px", "top_px", "right_px", "bottom_px").to_numpy() == bounds).all()
print("equal")
