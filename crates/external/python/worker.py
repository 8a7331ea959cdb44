"""Runs operations of a Python package for pleach, one at a time.

pleach starts this file with the interpreter of the operations' environment. stdin is one end of a socket pair that keeps
packet boundaries. A packet is a JSON object, with file descriptors beside it. pleach sends `start` once, then `run` for each
task, and closes its end. The answers are `ready` or `refused`, then `done` or `failed` for each task.

Regions are in sealed memory files. Inputs are mapped read-only. Standard library and numpy only.
"""

import ctypes
import fcntl
import importlib
import inspect
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
import types

CONTRACT = 1
PACKET_BYTES = 64 * 1024
MAX_DESCRIPTORS = 64
F_ADD_SEALS, SEAL_ALL = 1033, 0x1 | 0x2 | 0x4 | 0x8
PR_SET_PDEATHSIG = 1
TRACEBACK_LINES = 20


class Mistake(Exception):
    """An output or a function that the contract does not allow."""


def isolate(parent):
    """Ends this process with its parent, and keeps its failures from the machine."""
    libc = ctypes.CDLL(None)

    def die_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    die_with_parent()
    os.register_at_fork(after_in_child=die_with_parent)
    # The parent may have ended before the signal was set.
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("1000")
    except OSError:
        pass


class Link:
    """The socket to pleach."""

    def __init__(self):
        # Functions that read stdin, and processes that they start, must not reach the socket.
        self.socket = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)

    def receive(self):
        data, descriptors, _, _ = socket.recv_fds(self.socket, PACKET_BYTES, MAX_DESCRIPTORS)
        if not data:
            os._exit(0)
        return json.loads(data), descriptors

    def send(self, packet, descriptors=()):
        data = json.dumps(packet).encode()
        socket.send_fds(self.socket, [data], list(descriptors))


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
        return values[..., 0] if shape[-1] == 1 and not port.get("keeps_channel") else values
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
        raise Mistake(f"output {port['name']}: dtype {value.dtype}; {wanted} is allowed for {port['element']}")
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
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number, np.bool_)):
        if not (isinstance(value, np.ndarray) and value.ndim == 0):
            raise Mistake(f"output {port['name']}: {name} is {value!r:.80}; a number is allowed")
    return float(value)


def text(value):
    data = str(value).encode()
    return [np.array([len(data)], "<u4"), data]


def region(port, value):
    """Returns the shape and the parts of an output."""
    element = port["element"]
    family, _, kind = element.partition("-")
    if element == "bgr8":
        image = filled(port, typed(port, value, "u1", (3,)))
        if image.shape[2] != 3:
            raise Mistake(f"output {port['name']}: shape {image.shape}; 3 channels are allowed")
        if port.get("channels") == "rgb":
            image = np.ascontiguousarray(image[..., ::-1])
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
            parts += text(name) + [np.array([number(port, name, column)], "<f8")]
        return (len(value),), parts
    if family == "array":
        values = filled(port, typed(port, value, KINDS[kind], (1, 2, 3, 4)))
        has_channels = values.ndim == 4 or (values.ndim == 3 and port.get("axes") != "zyx")
        return values.shape if has_channels else values.shape + (1,), [values]
    if family == "ragged":
        ends, values = value
        ends = integers(port, ends, "u8", (1,))
        values = typed(port, values, KINDS[kind], (1,))
        return (len(ends), len(values)), [ends, values]
    if element == "points":
        points = typed(port, value, "f8", (2,))
        return points.shape, [points]
    if element == "polygons":
        ends, ring_ends, positions = value
        parts = outlined(port, ends, ring_ends, positions)
        return (len(parts[0]), len(parts[1]), len(parts[2])), parts
    if element == "objects":
        class_of = integers(port, value["class_of"], "u4", (1,))
        parts = outlined(port, value["ends"], value["ring_ends"], value["positions"])
        columns = typed(port, value["numbers"], "f8", (2,))
        names = [part for name in list(value["classes"]) + list(value["columns"]) for part in text(name)]
        counts = (len(class_of), len(parts[1]), len(parts[2]), len(value["classes"]), len(value["columns"]))
        if columns.shape != (len(class_of), len(value["columns"])) or len(parts[0]) != len(class_of):
            raise Mistake(f"output {port['name']}: numbers, classes and outlines of different counts")
        return counts, [class_of] + parts + [columns] + names
    raise Mistake(f"element type {element} is unknown")


def outlined(port, ends, ring_ends, positions):
    positions = typed(port, positions, "f8", (2,))
    if positions.shape[1] != 2:
        raise Mistake(f"output {port['name']}: positions of shape {positions.shape}; 2 coordinates are allowed")
    return [integers(port, ends, "u4", (1,)), integers(port, ring_ends, "u4", (1,)), positions]


def stored(parts):
    """Writes the parts of a region to a sealed memory file. Returns its descriptor."""
    descriptor = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for part in parts:
        view = memoryview(part).cast("B") if len(part) else b""
        while len(view):
            view = view[os.write(descriptor, view) :]
    fcntl.fcntl(descriptor, F_ADD_SEALS, SEAL_ALL)
    return descriptor


def resident():
    """Returns the resident and the peak resident bytes of this process."""
    sizes = {}
    with open("/proc/self/status") as stream:
        for line in stream:
            name, _, rest = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                sizes[name] = int(rest.split()[0]) * 1024
    return sizes["VmRSS"], sizes["VmHWM"]


def reset_peak():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")


def installed_top(file):
    """Returns the top-level module that an installed file belongs to. None for the standard library."""
    # By the file, since compiled modules may have a name without their package.
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = file.rpartition(os.sep + folder + os.sep)
        if found:
            return rest.partition(os.sep)[0].partition(".")[0]
    return None


class Package:
    """The modules of a package, loaded and checked."""

    def __init__(self, start):
        self.folder = start["folder"]
        self.files = start["files"]
        self.allowed = set(start["allowed"])
        # Modules that the interpreter and the environment load by themselves are no part of the package.
        self.before = set(sys.modules)
        # Last, so that no file of the package shadows the standard library or an installed distribution.
        sys.path.append(self.folder)
        self.functions = [self.function(operation) for operation in start["operations"]]
        self.check_modules()
        self.operations = start["operations"]
        self.setup = None
        if start["setup"]:
            self.setup = self.attribute(start["setup"])()
            self.check_modules()

    def attribute(self, path):
        name, _, attribute = path.partition(":")
        if name == "__main__":
            raise Mistake("functions of __main__ are not allowed; put them into a module")
        module = importlib.import_module(name)
        found = module
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise Mistake(f"module {name} has no {attribute}")
            found = getattr(found, part)
        return found

    def function(self, operation):
        found = self.attribute(operation["function"])
        if not callable(found):
            raise Mistake(f"{operation['function']} is no function")
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_kind(found) for is_kind in kinds):
            raise Mistake(f"{operation['function']} is a generator or coroutine; a plain function is allowed")
        return found

    def check_modules(self):
        """Checks that every loaded module is part of the identity of the operations."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not file or name in self.before:
                continue
            file = os.path.realpath(file)
            if name in self.files:
                wanted = os.path.realpath(os.path.join(self.folder, self.files[name]))
                if file != wanted:
                    raise Mistake(f"module {name} is loaded from {file} instead of {wanted}; rename one of the two")
            elif file.startswith(os.path.realpath(self.folder) + os.sep) and not file.startswith(
                os.path.realpath(sys.prefix) + os.sep
            ):
                raise Mistake(f"module {name} of the package is imported in a way that its identity misses; use import statements")
            elif (top := installed_top(file)) and top not in self.allowed:
                raise Mistake(f"module {name} is of no distribution that `requires` of the manifest names")
        # Only now: a process that has failed the check fails it again.
        self.loaded = len(sys.modules)

    def run(self, packet, inputs):
        operation, function = self.operations[packet["operation"]], self.functions[packet["operation"]]
        arguments = dict(operation["constants"])
        for argument, value in zip(operation["arguments"], packet["arguments"]):
            choices = argument.get("choices")
            arguments[argument["name"]] = choices[str(value)] if choices else value
        if operation["seeded"]:
            arguments["seed"] = packet["seed"]
        first = [] if self.setup is None else [self.setup]
        result = function(*first, *inputs, **arguments)
        if isinstance(result, types.GeneratorType) or inspect.isawaitable(result):
            raise Mistake("the function returned a generator or coroutine; regions are allowed")
        outputs = operation["outputs"]
        if len(outputs) == 1:
            return [result]
        if not isinstance(result, (tuple, list)) or len(result) != len(outputs):
            found = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise Mistake(f"the function returned {found}; a tuple of {len(outputs)} outputs is allowed")
        return list(result)


def failure(error):
    if isinstance(error, Mistake):
        return {"kind": "failed", "type": "", "text": str(error)[:4000]}
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__)).splitlines()
    return {
        "kind": "failed",
        "type": type(error).__name__,
        "text": str(error)[:4000],
        "traceback": "\n".join(lines[-TRACEBACK_LINES:])[:16000],
    }


def run(link, package, packet, descriptors):
    """Runs one task and answers. The regions of the task are dropped before the next packet is read."""
    operation = package.operations[packet["operation"]]
    threads = threading.active_count()
    own = os.getpid()
    given = []
    try:
        inputs = zip(operation["inputs"], packet["shapes"], descriptors)
        given = [opened(port, shape, content(descriptor)) for port, shape, descriptor in inputs]
        reset_peak()
        before, _ = resident()
        start = time.perf_counter()
        results = package.run(packet, given)
        if os.getpid() != own:
            # The function has forked, and this is the copy.
            os._exit(1)
        seconds = time.perf_counter() - start
        if len(sys.modules) != package.loaded:
            package.check_modules()
        regions = [region(port, value) for port, value in zip(operation["outputs"], results)]
        written = [stored(parts) for _, parts in regions]
    except BaseException as error:
        if os.getpid() != own:
            os._exit(1)
        link.send(failure(error))
        return
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
    _, peak = resident()
    answer = {
        "kind": "done",
        "shapes": [[int(count) for count in shape] for shape, _ in regions],
        "seconds": seconds,
        "peak_bytes": max(0, peak - before),
        # A thread of an earlier task could disturb a later one.
        "reusable": threading.active_count() <= threads,
    }
    link.send(answer, written)
    for descriptor in written:
        os.close(descriptor)


def main():
    global np
    isolate(int(sys.argv[1]))
    link = Link()
    packet, descriptors = link.receive()
    try:
        start = json.loads(bytes(content(descriptors[0])))
        os.close(descriptors[0])
        if start["contract"] != CONTRACT:
            raise Mistake(f"contract {start['contract']}; {CONTRACT} is allowed")
        import numpy as np

        package = Package(start)
    except BaseException as error:
        link.send(dict(failure(error), kind="refused"))
        os._exit(1)
    link.send({"kind": "ready", "contract": CONTRACT})
    while True:
        packet, descriptors = link.receive()
        run(link, package, packet, descriptors)


main()
