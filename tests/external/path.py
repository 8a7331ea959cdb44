"""Opens an export as its users do: the outlines with geopandas, the label image with ome-zarr and zarr.

    python path.py FOLDER IMAGE

The calibration is 0.25 µm, and a pixel of the label image is a pixel of the slide. Prints the number of objects.
"""

import json
import sys
from pathlib import Path

import geopandas
import numpy
import shapely
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader

folder, image = Path(sys.argv[1]), sys.argv[2]
store = folder / f"{image}.ome.zarr"
labels = zarr.open_array(str(store / "labels/nuclei/0"), mode="r")[:]

# ome-zarr reads the same pixels, and the size of a pixel.
nodes = list(Reader(parse_url(str(store / "labels/nuclei")))())
assert len(nodes) == 1, nodes
levels = [numpy.asarray(level) for level in nodes[0].data]
assert (levels[0] == labels).all() and all((level == labels[:: 2**n, :: 2**n]).all() for n, level in enumerate(levels))
metadata = zarr.open_group(str(store / "labels/nuclei"), mode="r").attrs["ome"]["multiscales"][0]
assert [axis["unit"] for axis in metadata["axes"]] == ["micrometer"] * 2, metadata
assert metadata["datasets"][0]["coordinateTransformations"] == [{"type": "scale", "scale": [0.25, 0.25]}], metadata
assert zarr.open_group(str(store), mode="r")["labels"].attrs["ome"]["labels"] == ["nuclei"]

nuclei = geopandas.read_file(folder / f"{image}.geojson")
count = len(nuclei)
# Arrays of shapely know no coordinates of the earth, which GeoJSON implies.
geometries = nuclei.geometry.to_numpy()
assert set(nuclei["objectType"]) == {"detection"} and shapely.is_valid(geometries).all()


def fields(column: str) -> list:
    """Nested properties, which some readers leave as text."""
    return [json.loads(value) if isinstance(value, str) else value for value in nuclei[column]]


assert all(value["name"] == "Nucleus" for value in fields("classification"))
measurements = fields("measurements")
assert [value["Label"] for value in measurements] == list(range(1, count + 1))
assert numpy.array_equal(numpy.unique(labels), numpy.arange(count + 1)), "each object has pixels, and each label an outline"

# Outlines follow the edges of pixels: areas are numbers of pixels, and the middle of each pixel is in the outline of its label.
pixels = numpy.bincount(labels.ravel())[1:]
assert (shapely.area(geometries) == pixels).all(), shapely.area(geometries) - pixels
assert [value["Area px^2"] for value in measurements] == pixels.tolist()
rows, columns = numpy.nonzero(labels)
assert shapely.contains_xy(geometries[labels[rows, columns] - 1], columns + 0.5, rows + 0.5).all()
print(count)
