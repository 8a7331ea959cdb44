"""Runs operations of a Python package for pleach, one at a time.

pleach starts this file with the interpreter of the operations' environment. stdin is one end of a socket pair that keeps
packet boundaries. A packet is a JSON object, with file descriptors beside it. pleach sends `start` once, then `run` for each
task, and closes its end. The answers are `ready` or `refused`, then `done` or `failed` for each task.

Regions are in sealed memory files (`regions.py`, which precedes this file). Standard library and numpy only.
"""

import ctypes
import faulthandler
import fcntl
import importlib
import inspect
import json
import os
import re
import resource
import signal
import socket
import sys
import sysconfig
import threading
import time
import traceback
import types

CONTRACT = 1
PACKET_BYTES = 64 * 1024
MAX_DESCRIPTORS = 64
PR_SET_PDEATHSIG = 1
TRACEBACK_LINES = 20

# Bytes of texts in a packet. Each byte may become 6 in JSON, and PACKET_BYTES is the limit of all.
TYPE_BYTES, TEXT_BYTES, TRACEBACK_BYTES = 200, 4000, 6000


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
    # A fatal signal prints the function in which it arrives.
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)
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
        data = json.dumps(packet, ensure_ascii=False).encode("utf-8", "replace")
        socket.send_fds(self.socket, [data], list(descriptors))


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
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
    except OSError:
        # Some containers forbid it. The peak is then that of all tasks.
        pass


def installed_top(file):
    """Returns the top-level module that an installed file belongs to. None for other files."""
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = file.rpartition(os.sep + folder + os.sep)
        if found:
            return rest.partition(os.sep)[0].partition(".")[0]
    return None


def distributions_of(tops):
    """Returns the distributions with these top-level modules, without those that another of them requires."""
    from importlib import metadata

    def normalized(name):
        return name.lower().replace("_", "-").replace(".", "-")

    # Some libraries import others where these are installed, such as scikit-learn pandas.
    having = distributions_by_top()
    found = {normalized(name): name for top in tops for name in having.get(top, [top])}
    required = set()
    for name in found.values():
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        names = (line.partition(";")[0] for line in needed if "extra" not in line.partition(";")[2])
        required.update(normalized(re.match(r"[A-Za-z0-9._-]*", line.strip()).group()) for line in names)
    # Two that require each other are both named.
    return sorted(name for key, name in found.items() if key not in required) or sorted(found.values())


def is_below(file, folder):
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)


class Package:
    """The modules of a package, loaded and checked."""

    def __init__(self, start):
        self.folder = start["folder"]
        self.files = start["files"]
        self.allowed = set(start["allowed"])
        self.libraries = [sysconfig.get_path(library) for library in ("stdlib", "platstdlib")] + start["sources"]
        # Modules that the interpreter and the environment load by themselves are no part of the package.
        self.before = set(sys.modules)
        # Last, so that no file of the package shadows the standard library or an installed distribution.
        if self.folder:
            sys.path.append(self.folder)
        self.functions = [self.function(operation) for operation in start["operations"]]
        self.check_modules()
        self.operations = start["operations"]
        # The first arguments of each function.
        self.first = []
        if start["setup"]:
            self.first = [self.attribute(start["setup"])()]
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
        count = len(sys.modules)
        loaded = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            # Some modules are built by code and name no file.
            if file and os.path.isfile(file):
                loaded[name] = os.path.abspath(file)
        for name, own in self.files.items():
            wanted = os.path.join(self.folder, own)
            if name in loaded and os.path.realpath(loaded[name]) != os.path.realpath(wanted):
                raise Mistake(f"module {name} is loaded from {loaded[name]} instead of {wanted}; rename one of the two")
        unknown = set()
        for name, file in loaded.items():
            if name not in self.before and name not in self.files:
                # By the file, since compiled modules may have a name without their package.
                top = installed_top(file)
                if top is None:
                    self.check_module(name, file)
                elif top not in self.allowed:
                    unknown.add(top)
        if unknown:
            raise Mistake(f"`requires` of the manifest lacks {', '.join(distributions_of(unknown))}, which the modules import")
        self.loaded = count

    def check_module(self, name, file):
        """Checks a module that no import statement of the package names and no distribution has."""
        if self.folder and is_below(file, self.folder) and not is_below(file, sys.prefix):
            raise Mistake(f"module {name} of the package is imported in a way that its identity misses; use import statements")
        elif not any(is_below(file, folder) for folder in self.libraries):
            # Such as one that an environment variable or a .pth file brings.
            raise Mistake(f"module {name} is loaded from {file}; a module of the package or of an installed distribution is allowed")

    def run(self, packet, inputs):
        operation, function = self.operations[packet["operation"]], self.functions[packet["operation"]]
        arguments = dict(operation["constants"])
        for argument, value in zip(operation["arguments"], packet["arguments"]):
            choices = argument.get("choices")
            arguments[argument["name"]] = choices[str(value)] if choices else value
        if operation["seeded"]:
            arguments["seed"] = packet["seed"]
        if not operation["batch"]:
            return self.outputs(operation, function(*self.first, *inputs, **arguments))
        # One list for each input, with an item for each tile.
        ports = len(operation["inputs"])
        results = function(*self.first, *(inputs[port::ports] for port in range(ports)), **arguments)
        tiles = packet["tiles"]
        if not isinstance(results, (tuple, list)) or len(results) != tiles:
            found = f"{len(results)} results" if isinstance(results, (tuple, list)) else type(results).__name__
            raise Mistake(f"the function returned {found}; a list of {tiles}, one for each tile, is allowed")
        return [output for result in results for output in self.outputs(operation, result)]

    def outputs(self, operation, result):
        """Returns the outputs of one tile."""
        if isinstance(result, types.GeneratorType) or inspect.isawaitable(result):
            raise Mistake("the function returned a generator or coroutine; regions are allowed")
        outputs = operation["outputs"]
        if len(outputs) == 1:
            return [result]
        if not isinstance(result, (tuple, list)) or len(result) != len(outputs):
            found = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise Mistake(f"the function returned {found}; a tuple of {len(outputs)} outputs is allowed")
        return list(result)


def cut(text, most):
    """Returns the beginning of a text of at most so many bytes, without what UTF-8 cannot express."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def failure(error):
    if isinstance(error, Mistake):
        return {"kind": "failed", "type": "", "text": cut(str(error), TEXT_BYTES)}
    try:
        words = str(error)
    except Exception:
        words = "an exception without a text"
    trace = error.__traceback__
    # The lines of this program explain nothing to the author of the function.
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    lines = "".join(traceback.format_exception(type(error), error, trace)).splitlines() if trace else []
    lines = [cut(line, 500) for line in lines[-TRACEBACK_LINES:]]
    return {
        "kind": "failed",
        "type": cut(type(error).__name__, TYPE_BYTES),
        "text": cut(words, TEXT_BYTES),
        "traceback": cut("\n".join(lines), TRACEBACK_BYTES),
    }


def run(link, package, packet, descriptors):
    """Runs one task and answers. The regions of the task are dropped before the next packet is read."""
    operation = package.operations[packet["operation"]]
    threads = threading.active_count()
    own = os.getpid()
    given = []
    try:
        inputs = zip(operation["inputs"] * packet["tiles"], packet["shapes"], descriptors)
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
        ports = operation["outputs"] * packet["tiles"]
        forms = [form(port, value) for port, value in zip(ports, results)]
        regions = [region(port, value) for (port, _), value in zip(forms, results)]
        written = [passed(parts) for _, parts in regions]
    except BaseException as error:
        if os.getpid() != own:
            os._exit(1)
        # A thread of an earlier task could disturb a later one.
        link.send(dict(failure(error), task=packet["task"], reusable=threading.active_count() <= threads))
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
        "task": packet["task"],
        "shapes": [[int(count) for count in shape] for shape, _ in regions],
        "bytes": [length(parts) for _, parts in regions],
        "reversed": [is_reversed for _, is_reversed in forms],
        "seconds": seconds,
        "peak_bytes": max(0, peak - before),
        "reusable": threading.active_count() <= threads,
    }
    link.send(answer, [descriptor for descriptor, _ in written])
    for descriptor, _ in written:
        os.close(descriptor)
    for (_, parts), (_, stream) in zip(regions, written):
        if stream is not None:
            send_through(stream, parts)


def main():
    global np
    isolate(int(sys.argv[1]))
    link, own = Link(), os.getpid()
    packet, descriptors = link.receive()
    try:
        start = json.loads(bytes(content(descriptors[0])))
        os.close(descriptors[0])
        if start["contract"] != CONTRACT:
            raise Mistake(f"contract {start['contract']}; {CONTRACT} is allowed")
        import numpy as np

        package = Package(start)
    except BaseException as error:
        if os.getpid() == own:
            link.send(dict(failure(error), kind="refused"))
        os._exit(1)
    if os.getpid() != own:
        # A module or the setup has forked, and this is the copy.
        os._exit(1)
    link.send({"kind": "ready", "contract": CONTRACT})
    while True:
        packet, descriptors = link.receive()
        run(link, package, packet, descriptors)


main()
