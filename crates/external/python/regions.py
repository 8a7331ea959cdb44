"""Converts regions from memory files to Python values and back.

pleach runs this file and `worker.py` as one program. Inputs are mapped read-only. Outputs are checked by the rules of their
element type, so that a mistake names the port instead of ending the process.
"""

import fcntl
import mmap
import os

F_ADD_SEALS, SEAL_ALL = 1033, 0x1 | 0x2 | 0x4 | 0x8

# Pipes of 256 KiB: two pieces of them fit in the innermost shared cache of the processor.
F_SETPIPE_SZ, PIPE_BYTES = 1031, 256 * 1024

# Least bytes of a region that goes through a pipe.
STREAM_BYTES = 512 * 1024

# numpy, which `main` of worker.py imports: an interpreter without it must be able to answer.
np = None


class Mistake(Exception):
    """An output or a function that the contract does not allow."""


def numbers(data, kind):
    return np.frombuffer(data, dtype=np.dtype(kind).newbyteorder("<"))


KINDS = {"u8": "u1", "u16": "u2", "i32": "i4", "f32": "f4", "f64": "f8"}


def content(descriptor):
    """Maps a memory file. The map outlives the descriptor."""
    length = os.fstat(descriptor).st_size
    if length == 0:
        return b""
    return mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)


class Reader:
    """Reads the parts of a region in order."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count, kind):
        kind = np.dtype(kind).newbyteorder("<")
        values = np.frombuffer(self.data, dtype=kind, count=count, offset=self.at) if count else np.empty(0, kind)
        if not values.flags.aligned:
            # Compiled functions may refuse numbers behind an odd count of smaller ones.
            values = values.copy()
        values.flags.writeable = False
        self.at += count * kind.itemsize
        return values

    def name(self):
        length = int(self.take(1, "u4")[0])
        text = bytes(self.data[self.at : self.at + length]).decode()
        self.at += length
        return text


def opened(port, shape, data):
    """Returns the Python value of an input."""
    element = port["element"]
    if element == "bgr8":
        image = numbers(data, "u1").reshape(shape)
        return image[..., ::-1] if port.get("channels") == "rgb" else image
    if element in ("gray8", "mask"):
        return numbers(data, "u1").reshape(shape[:2])
    if element == "labels":
        return numbers(data, "u4").reshape(shape)
    if element == "scalar":
        return float(numbers(data, "f8")[0])
    family, _, kind = element.partition("-")
    reader = Reader(data)
    if family == "array":
        values = numbers(data, KINDS[kind]).reshape(shape)
        return values[..., 0] if shape[-1] == 1 else values
    if family == "ragged":
        ends = reader.take(shape[0], "u8")
        return ends, reader.take(shape[1], KINDS[kind])
    if element == "table":
        table = {}
        for _ in range(shape[0]):
            name = reader.name()
            table[name] = float(reader.take(1, "f8")[0])
        return table
    if element == "points":
        return reader.take(shape[0] * shape[1], "f8").reshape(shape)
    if element == "polygons":
        return outlines(reader, shape[0], shape[1], shape[2])
    if element == "objects":
        objects, rings, positions, classes, columns = shape
        class_of = reader.take(objects, "u4")
        ends, ring_ends, positions = outlines(reader, objects, rings, positions)
        values = reader.take(objects * columns, "f8").reshape((objects, columns))
        names = [reader.name() for _ in range(classes + columns)]
        return {
            "classes": names[:classes],
            "class_of": class_of,
            "ends": ends,
            "ring_ends": ring_ends,
            "positions": positions,
            "columns": names[classes:],
            "numbers": values,
        }
    raise Mistake(f"element type {element} is unknown")


def outlines(reader, polygons, rings, positions):
    return reader.take(polygons, "u4"), reader.take(rings, "u4"), reader.take(2 * positions, "f8").reshape((-1, 2))


def typed(port, value, kind, dimensions):
    """Returns an array of exactly this type. Only the byte order may differ."""
    if not isinstance(value, np.ndarray):
        raise Mistake(f"output {port['name']}: {type(value).__name__}; a numpy array is allowed")
    wanted = np.dtype(kind)
    if value.dtype.newbyteorder("=") != wanted:
        allowed = "uint8, or bool," if port["element"] == "mask" else wanted
        raise Mistake(f"output {port['name']}: dtype {value.dtype}; {allowed} is allowed for {port['element']}")
    if value.ndim not in dimensions:
        allowed = " or ".join(map(str, dimensions))
        raise Mistake(f"output {port['name']}: shape {value.shape}; {allowed} dimensions are allowed")
    return np.ascontiguousarray(value, dtype=wanted.newbyteorder("<"))


def integers(port, value, kind, dimensions):
    """Returns an array of unsigned integers, converted from any integers in range."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub" and value.dtype != np.dtype(kind):
        most = np.iinfo(kind).max
        if value.size and (int(value.min()) < 0 or int(value.max()) > most):
            raise Mistake(f"output {port['name']}: values {value.min()} to {value.max()}; 0 to {most} is allowed")
        value = value.astype(kind)
    return typed(port, value, kind, dimensions)


def filled(port, value):
    """Rejects an array without values, which images and arrays cannot be."""
    if value.size == 0:
        raise Mistake(f"output {port['name']}: shape {value.shape}; sides of at least 1 are allowed")
    return value


def number(port, name, value):
    plain = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    try:
        if isinstance(plain, (int, float, np.integer, np.floating)) and not isinstance(plain, bool):
            return float(plain)
    except OverflowError:
        pass
    raise Mistake(f"output {port['name']}: {name} is {value!r:.80}; a number is allowed")


def text(port, value):
    if not isinstance(value, str):
        raise Mistake(f"output {port['name']}: the name {value!r:.80}; texts are allowed")
    data = value.encode("utf-8", "replace")
    return [np.array([len(data)], "<u4"), data]


def finite(port, positions):
    if not np.isfinite(positions).all():
        raise Mistake(f"output {port['name']}: a coordinate is not finite")
    return positions


def ends_of(port, name, value, kind, count):
    """Returns the ends of lists within `count` items: they do not decrease, and the last one is the count."""
    ends = integers(port, value, kind, (1,))
    if (ends[1:] < ends[:-1]).any():
        raise Mistake(f"output {port['name']}: {name} decrease")
    last = int(ends[-1]) if len(ends) else 0
    if last != count:
        raise Mistake(f"output {port['name']}: the last of {name} is {last}; {count} is allowed")
    return ends


def items(port, value, names):
    """Returns the items of a tuple."""
    if not isinstance(value, (tuple, list)) or len(value) != len(names):
        raise Mistake(f"output {port['name']}: {type(value).__name__}; a tuple ({', '.join(names)}) is allowed")
    return value


def form(port, value):
    """Returns the port of an output in the order of its channels in memory, and whether pleach has to reverse them.

    pleach reverses them in the copy that it makes of any output. Here it would take a copy more."""
    if port.get("channels") != "rgb" or not isinstance(value, np.ndarray) or value.ndim != 3:
        return port, False
    if value[..., ::-1].flags.c_contiguous:
        return port, False
    return dict(port, channels="bgr"), True


def region(port, value):
    """Returns the shape and the parts of an output."""
    element = port["element"]
    family, _, kind = element.partition("-")
    if element == "bgr8":
        if port.get("channels") == "rgb" and isinstance(value, np.ndarray) and value.ndim == 3:
            value = value[..., ::-1]
        image = filled(port, typed(port, value, "u1", (3,)))
        if image.shape[2] != 3:
            raise Mistake(f"output {port['name']}: shape {image.shape}; 3 channels are allowed")
        return image.shape, [image]
    if element in ("gray8", "mask"):
        if element == "mask" and isinstance(value, np.ndarray) and value.dtype == bool:
            value = value.astype("u1") * np.uint8(255)
        image = filled(port, typed(port, value, "u1", (2,)))
        if element == "mask" and not ((image == 0) | (image == 255)).all():
            raise Mistake(f"output {port['name']}: a mask of other values; 0 and 255, or bool, are allowed")
        return image.shape + (1,), [image]
    if element == "labels":
        labels = filled(port, integers(port, value, "u4", (2,)))
        return labels.shape, [labels]
    if element == "scalar":
        return (), [np.array([number(port, "the output", value)], "<f8")]
    if element == "table":
        if not hasattr(value, "items"):
            raise Mistake(f"output {port['name']}: {type(value).__name__}; a dict of name to number is allowed")
        parts = []
        for name, column in value.items():
            parts += text(port, name) + [np.array([number(port, name, column)], "<f8")]
        return (len(value),), parts
    if family == "array":
        values = filled(port, typed(port, value, KINDS[kind], (1, 2, 3, 4)))
        has_channels = values.ndim == 4 or (values.ndim == 3 and port.get("axes") != "zyx")
        return values.shape if has_channels else values.shape + (1,), [values]
    if family == "ragged":
        ends, values = items(port, value, ("ends", "values"))
        values = typed(port, values, KINDS[kind], (1,))
        return (len(ends), len(values)), [ends_of(port, "ends", ends, "u8", len(values)), values]
    if element == "points":
        points = finite(port, typed(port, value, "f8", (2,)))
        if not 1 <= points.shape[1] <= 3:
            raise Mistake(f"output {port['name']}: shape {points.shape}; 1 to 3 coordinates are allowed")
        return points.shape, [points]
    if element == "polygons":
        parts = outlined(port, *items(port, value, ("ends", "ring_ends", "positions")))
        return (len(parts[0]), len(parts[1]), len(parts[2])), parts
    if element == "objects":
        return annotated(port, value)
    raise Mistake(f"element type {element} is unknown")


def outlined(port, ends, ring_ends, positions):
    positions = finite(port, typed(port, positions, "f8", (2,)))
    if positions.shape[1] != 2:
        raise Mistake(f"output {port['name']}: positions of shape {positions.shape}; 2 coordinates are allowed")
    ring_ends = ends_of(port, "ring_ends", ring_ends, "u4", len(positions))
    return [ends_of(port, "ends", ends, "u4", len(ring_ends)), ring_ends, positions]


OBJECT_PARTS = ("classes", "class_of", "ends", "ring_ends", "positions", "columns", "numbers")


def annotated(port, value):
    """Returns the shape and the parts of annotated objects."""
    if not isinstance(value, dict):
        raise Mistake(f"output {port['name']}: {type(value).__name__}; a dict with {', '.join(OBJECT_PARTS)} is allowed")
    for name in OBJECT_PARTS:
        if name not in value:
            raise Mistake(f"output {port['name']}: {name} is missing")
    classes, columns = list(value["classes"]), list(value["columns"])
    if len(set(classes)) != len(classes) or len(set(columns)) != len(columns):
        raise Mistake(f"output {port['name']}: a name occurs twice; names must be unique")
    class_of = integers(port, value["class_of"], "u4", (1,))
    if len(class_of) and class_of.max() >= len(classes):
        raise Mistake(f"output {port['name']}: class {class_of.max()}; classes below {len(classes)} are allowed")
    parts = outlined(port, value["ends"], value["ring_ends"], value["positions"])
    if len(parts[0]) != len(class_of):
        raise Mistake(f"output {port['name']}: {len(parts[0])} outlines; {len(class_of)}, one for each class_of, are allowed")
    numbers = typed(port, value["numbers"], "f8", (2,))
    if numbers.shape != (len(class_of), len(columns)):
        allowed = (len(class_of), len(columns))
        raise Mistake(f"output {port['name']}: numbers of shape {numbers.shape}; {allowed} is allowed")
    names = [part for name in classes + columns for part in text(port, name)]
    counts = (len(class_of), len(parts[1]), len(parts[2]), len(classes), len(columns))
    return counts, [class_of] + parts + [numbers] + names


def views(parts):
    """Yields the bytes of each part of a region."""
    for part in parts:
        # A view without items, such as the numbers of objects without columns, cannot be cast.
        view = memoryview(part)
        yield view.cast("B") if view.nbytes else b""


def length(parts):
    return sum(len(view) for view in views(parts))


def write(descriptor, parts):
    for view in views(parts):
        while len(view):
            view = view[os.write(descriptor, view) :]


def stored(parts):
    """Writes the parts of a region to a sealed memory file. Returns its descriptor."""
    descriptor = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    write(descriptor, parts)
    fcntl.fcntl(descriptor, F_ADD_SEALS, SEAL_ALL)
    return descriptor


def passed(parts):
    """Returns the descriptor from which pleach reads a region, and that of a pipe to which it is written after the answer.

    New memory costs more time than a copy: large regions go through a pipe into memory that pleach uses again."""
    if length(parts) < STREAM_BYTES:
        return stored(parts), None
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(writer, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        # Beyond the user's limit: a smaller pipe is slower.
        pass
    return reader, writer


def send_through(writer, parts):
    """Writes the parts of a region to a pipe while pleach reads it, and closes the pipe."""
    try:
        write(writer, parts)
    except BrokenPipeError:
        # pleach has refused an output, and ends this process.
        pass
    finally:
        os.close(writer)
