"""Runs the function on a tile: measures the values of its names, and compares the tasks with it."""

import copy
import os
import struct
import sys
import time
import traceback
import tracemalloc
import types

# Integers up to here are exact as floats.
MAX_EXACT = 2**53

ARRAYS = {"uint8": "u8", "uint16": "u16", "int32": "i32", "float32": "f32", "float64": "f64"}


class Measured:
    """Values of one version in all evaluations: their common type, or None."""

    def __init__(self):
        self.kinds, self.nbytes, self.least, self.most = set(), 0, 0, 0

    def add(self, value):
        np = sys.modules["numpy"]
        if isinstance(value, (bool, np.bool_)):
            kind = ("flag", "" if isinstance(value, bool) else "bool_")
        elif isinstance(value, (int, float)) and type(value) in (int, float) or isinstance(value, (np.integer, np.floating)):
            kind = ("number", type(value).__name__)
            if isinstance(value, np.longdouble) or (isinstance(value, (int, np.integer)) and abs(int(value)) > MAX_EXACT):
                kind = ("other", type(value).__name__)
            self.nbytes = max(self.nbytes, 8)
        elif type(value) is dict and value and all(type(name) is str and type(number) is float for name, number in value.items()):
            kind = ("table", "dict")
            self.nbytes = max(self.nbytes, 16 * len(value))
        elif type(value) is np.ndarray and value.dtype.isnative:
            kind = self.array(np, value)
        else:
            kind = ("other", type(value).__name__)
        self.kinds.add(kind)

    def array(self, np, value):
        order = "F" if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        self.nbytes = max(self.nbytes, value.nbytes)
        name = value.dtype.name
        is_empty = value.size == 0 and value.ndim != 1
        if is_empty or value.ndim not in (1, 2, 3, 4) or (value.ndim > 2 and value.shape[-1] == 1):
            return ("other", f"{name} array of shape {value.shape}")
        if value.dtype.kind in "iu" and value.size:
            self.least, self.most = min(self.least, int(value.min())), max(self.most, int(value.max()))
        return ("array", name, value.ndim, order)

    def type(self):
        """Returns the element type, and how a task converts the value to it and back. None without an element type."""
        if len(self.kinds) != 1:
            return None
        kind, *of = next(iter(self.kinds))
        if kind == "flag":
            return "scalar", "float({})", "numpy.bool_({} != 0)" if of[0] else "{} != 0"
        if kind == "number":
            back = {"float": "{}", "int": "int({})"}.get(of[0], f"numpy.{of[0]}({{}})")
            return "scalar", "{}", back
        if kind == "table":
            return "table", "{}", "{}"
        return self.array_type(*of) if kind == "array" else None

    def array_type(self, name, dimensions, order):
        if dimensions == 1:
            return self.row_type(name)
        ordered = "numpy.asfortranarray({})" if order == "F" else "{}"
        if name == "bool":
            if dimensions == 2:
                return "mask", "{}", ordered.format("{} != 0")
            return "array-u8", '{}.astype("uint8")', ordered.format("{} != 0")
        if name == "uint8" and dimensions == 2:
            return "gray8", "{}", ordered
        is_labels = dimensions == 2 and self.least >= 0 and self.most < 2**32
        if name == "uint32" and dimensions == 2:
            return "labels", "{}", ordered
        if name in ("int32", "int64") and is_labels:
            return "labels", "{}", ordered.format(f'{{}}.astype("{name}")')
        if name in ARRAYS:
            return "array-" + ARRAYS[name], "{}", ordered
        return None

    def row_type(self, name):
        """Arrays of one dimension may be empty, as ragged arrays may be."""
        ends = "(numpy.array([{}.size]), {})"
        if name in ARRAYS:
            return "ragged-" + ARRAYS[name], ends, "{}[1]"
        if name == "bool":
            return "ragged-u8", '(numpy.array([{}.size]), {}.astype("uint8"))', "{}[1] != 0"
        if name.startswith(("int", "uint")) and max(-self.least, self.most) <= MAX_EXACT:
            return "ragged-f64", '(numpy.array([{}.size]), {}.astype("float64"))', f'{{}}[1].astype("{name}")'
        return None

    def name(self):
        """Returns the types as a reader knows them."""
        words = {
            " ".join(str(part) for part in kind[1:3]) + (" dimensions" if kind[0] == "array" else "") for kind in self.kinds
        }
        return " or ".join(sorted(words)) or "unknown"


class Trace:
    """Evaluations of the function on a tile."""

    def __init__(self, flow, tile, folder):
        self.flow, self.tile = flow, tile
        self.measured, self.seconds = {}, {}
        sys.path.append(folder)
        self.module = self.loaded(traced(flow))
        self.previous = 0.0

    def loaded(self, tree):
        module = types.ModuleType("traced")
        module.__file__ = os.path.abspath(self.flow.script.file)
        module.__trace__ = self.record
        try:
            exec(compile(tree, self.flow.script.file, "exec"), module.__dict__)
        except BaseException as error:
            raise Refusal(None, f"failed to run the file: {last_line(error)}")
        return module

    def record(self, index, names, *result):
        now = time.perf_counter()
        self.seconds.setdefault(index, []).append(now - self.previous)
        node = self.flow.nodes[index]
        for name, version in node.makes.items():
            if name in names and not version.is_function:
                self.measured.setdefault(version, Measured()).add(names[name])
        if result:
            self.measured.setdefault(self.flow.result, Measured()).add(result[0])
        self.previous = time.perf_counter()

    def call(self, values):
        """Returns the result of the function for these values of parameters, and its bits."""
        function = getattr(self.module, self.flow.function.name)
        np = sys.modules["numpy"]
        self.previous = time.perf_counter()
        result = function(np.array(self.tile), **arguments(self.flow, values))
        return result, bits(response(result))

    def seconds_of(self, node):
        taken = self.seconds.get(node.index)
        return min(taken) if taken else 0.0


def arguments(flow, values):
    """Returns the arguments of the function for the numbers of a study."""
    found = {}
    for name, parameter in flow.studied.items():
        value = values.get(name, parameter["default"])
        if parameter["type"] == "choice":
            value = parameter["choices"][value - 1]
        elif parameter["type"] == "flag":
            value = bool(value)
        elif parameter["type"] == "real":
            value = float(value)
        found[name] = value
    return found


def evaluations(flow):
    """Returns the parameter sets of the comparison: the defaults, and each parameter at another value."""
    sets = [("the defaults", {})]
    for name, parameter in flow.studied.items():
        if name in flow.unused:
            continue
        options = parameter.get("values") or [1 + number for number in range(len(parameter.get("choices", ())))]
        options = options or parameter["range"][::-1]
        for value in options if parameter["type"] == "choice" else options[:2]:
            if value != parameter["default"]:
                sets.append((f"{name} = {value}", {name: value}))
    return sets


def traced(flow):
    """Returns the script with a call after each statement of the function."""
    tree = copy.deepcopy(flow.script.tree)
    dropped = {id(node) for node in runs_at_import(flow.script, flow.function)}
    kept = [new for old, new in zip(flow.script.tree.body, tree.body) if id(old) not in dropped]
    tree.body = kept
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == flow.function.name)
    docstring = function.body[:1] if ast.get_docstring(function) is not None else []
    body = []
    for index, statement in enumerate(function.body[len(docstring) :]):
        if isinstance(statement, ast.Return):
            note = [
                ast.Assign([ast.Name("__result__", ast.Store())], statement.value),
                ast.parse(f"__trace__({index}, dict(), __result__)").body[0],
                ast.Return(ast.Name("__result__", ast.Load())),
            ]
            body.extend(ast.copy_location(one, statement) for one in note)
        else:
            body.append(statement)
            body.append(ast.copy_location(ast.parse(f"__trace__({index}, locals())").body[0], statement))
    function.body = docstring + body
    return ast.fix_missing_locations(tree)


def runs_at_import(script, function):
    """Returns the statements at the top of the file that use the function when the file is imported."""
    tainted, found = {function.name}, []
    for node in script.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)) or is_main(node):
            continue
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if names & tainted:
            found.append(node)
            tainted |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return found


def is_main(node):
    """Returns whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))


def last_line(error):
    """Returns the class and text of an error, and the line of the script or library that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (line {frames[-1].lineno} of {os.path.basename(frames[-1].filename)})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def response(result):
    """Returns the numbers that a study of the function responds with. None if it has none."""
    np = sys.modules["numpy"]
    if isinstance(result, np.ndarray) and result.ndim == 2 and result.dtype.kind in "biu":
        numbers = {"area-fraction": float(np.count_nonzero(result)) / result.size}
        if result.dtype != bool and result.dtype != np.uint8:
            numbers = {"count": float(np.unique(result[result > 0]).size), **numbers}
        return numbers
    if isinstance(result, dict):
        numbers = {}
        for name, value in result.items():
            if not isinstance(name, str) or isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
                return None
            numbers[name] = float(value)
        return numbers or None
    if isinstance(result, (int, float, np.number)) and not isinstance(result, bool):
        return {"result": float(result)}
    return None


def bits(numbers):
    return None if numbers is None else [(name, struct.pack("<d", value)) for name, value in numbers.items()]


class Chain:
    """The tasks of a module, called as pleach calls them, each once for equal inputs and parameters."""

    def __init__(self, trace, source, tasks, regions_source):
        self.trace, self.tasks, self.results, self.peaks = trace, tasks, {}, {}
        self.regions = types.ModuleType("regions")
        exec(compile(regions_source, "regions.py", "exec"), self.regions.__dict__)
        self.regions.np = sys.modules["numpy"]
        module = types.ModuleType("cut")
        module.__file__ = trace.module.__file__
        exec(compile(source, "the module", "exec"), module.__dict__)
        self.module = module

    def given(self, port, value):
        """Returns a value as the reader of its region gets it."""
        shape, parts = self.regions.region(port, value)
        data = b"".join(bytes(memoryview(part).cast("B")) if memoryview(part).nbytes else b"" for part in parts)
        return self.regions.opened(port, [int(side) for side in shape], data)

    def call(self, values):
        """Returns the bits of the responses for these values of parameters."""
        flow = self.trace.flow
        passed, stored = arguments(flow, values), {}
        tile = self.given({"name": flow.input, "element": "bgr8", "channels": "rgb"}, self.trace.tile)
        for task in self.tasks:
            key = (task["task"], tuple(sorted((name, repr(passed[name])) for name in task["key"])))
            if key not in self.results:
                self.results[key] = self.run(task, stored, tile, passed)
            stored.update(self.results[key])
        return bits({name: float(value) for name, value in stored[self.tasks[-1]["writes"][-1]["region"]].items()})

    def run(self, task, stored, tile, passed):
        inputs = [tile if port["type"] == "bgr8" else stored[port["region"]] for port in task["reads"]]
        keywords = {}
        for name in task["parameters"]:
            value = passed[name]
            keywords[name] = int(value) if isinstance(value, bool) else value
        if tracemalloc.is_tracing():
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
        result = getattr(self.module, task["function"])(*inputs, **keywords)
        if tracemalloc.is_tracing():
            self.peaks[task["task"]] = max(0, tracemalloc.get_traced_memory()[1] - before)
        results = [result] if len(task["writes"]) == 1 else list(result)
        ports = [{"name": port["region"], "element": port["type"]} for port in task["writes"]]
        return {port["name"]: self.given(port, value) for port, value in zip(ports, results)}
