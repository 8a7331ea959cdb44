"""Reads a request, analyses the script, and writes the proposal.

The request is a JSON document on stdin. The answer on stdout is a JSON document with a proposal, or with the line and the text of a
refusal. Text that the script prints goes to stderr.
"""


def module_name(file):
    name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(file))[0])
    if not name.isidentifier() or name in sys.stdlib_module_names:
        raise Refusal(None, f"{name}.py has the name of a module of Python, or none; rename the file")
    return name


def imported_tops(tree):
    """Returns the top-level modules that a file imports."""
    tops = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            tops.add(node.module.partition(".")[0])
    return tops


def own_files(top, folder):
    """Returns the files of a module of the folder, relative to it."""
    if os.path.isfile(os.path.join(folder, top + ".py")):
        return [top + ".py"]
    found = []
    for parent, _, files in os.walk(os.path.join(folder, top)):
        found += [os.path.relpath(os.path.join(parent, file), folder) for file in files if file.endswith(".py")]
    return sorted(found)


def distributions(script, folder):
    """Returns the distributions of the modules that the script imports, and the files beside it that it imports."""
    waiting, seen, files = list(imported_tops(script.tree)), set(), []
    while waiting:
        top = waiting.pop()
        if top in seen or top in sys.stdlib_module_names:
            continue
        seen.add(top)
        for file in own_files(top, folder):
            files.append(file)
            with open(os.path.join(folder, file), "rb") as stream:
                waiting += imported_tops(ast.parse(stream.read(), file))
    known = distributions_by_top()
    found = {name for top in seen for name in known.get(top, [])[:1] if not own_files(top, folder)}
    return sorted(found | {"numpy"}), sorted(files)


def resident():
    """Returns the resident size of this process in MB, rounded up to tens."""
    with open("/proc/self/status") as stream:
        kilobytes = next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))
    return 10 * (kilobytes // 10_000 + 1)


def read_tile(request):
    try:
        import numpy
    except ImportError as error:
        raise Refusal(None, f"{sys.executable}: {error}; install numpy or choose another environment with --python")
    pixels = sys.stdin.buffer.read(3 * request["height"] * request["width"])
    return numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(request["height"], request["width"], 3)


def tile_path(request):
    """Returns the path of the tile relative to the folder of the study."""
    return os.path.relpath(request["tile"]["path"], request["out"] or ".")


def run_all(flow, trace):
    """Runs the function at the defaults and at other values. Returns the parameter sets that it completes with their bits."""
    completed = []
    for words, values in evaluations(flow):
        try:
            result, found = trace.call(values)
        except BaseException as error:
            if not values:
                raise Refusal(None, f"{flow.function.name} fails at its defaults: {last_line(error)}")
            flow.warnings.append(f"{flow.function.name} fails with {words}: {last_line(error)}; edit its range in stage.json")
            continue
        if not values:
            trace.result, trace.expected = result, found
            if trace.call({})[1] != found:
                raise Refusal(flow.function, f"{flow.function.name} gives different results for equal inputs; a seed is needed")
        elif (found is None) != (trace.expected is None):
            raise Refusal(None, f"{flow.function.name} returns another kind of result with {words}")
        completed.append((words, values, found))
    return completed


def compare(chain, completed):
    """Compares the tasks with the function, bit by bit."""
    for words, values, expected in completed:
        try:
            found = chain.call(values)
        except BaseException as error:
            raise Refusal(None, f"the tasks fail with {words}: {last_line(error)}; nothing is written")
        if found != expected:
            raise Refusal(None, f"the tasks give other numbers than the function with {words}; nothing is written")


def propose(request):
    try:
        with open(request["script"], encoding="utf-8") as stream:
            source = stream.read()
        script = Script(request["script"], source)
    except (OSError, ValueError) as error:
        raise Refusal(None, f"{error}; Python in UTF-8 is allowed")
    except SyntaxError as error:
        raise Refusal(error, error.msg)
    folder = os.path.dirname(os.path.abspath(request["script"]))
    module = module_name(request["script"])
    flow = Flow(script, script.function(request["function"]), request["constants"])
    trace, completed = None, []
    if request["tile"]:
        tile = read_tile(request["tile"])
        trace = Trace(flow, tile, folder)
        completed = run_all(flow, trace)
    types = Types(flow, trace)
    partition, found = tasks(flow, types.is_typed, request["joins"])
    listed = described(flow, types, found, trace)
    text = module_text(flow, types, found)
    answer = {
        "script": request["script"],
        "function": flow.function.name,
        "input": flow.input,
        "parameters": [{"name": name, **flow.studied[name]} for name in flow.studied if name not in flow.unused],
        "constants": list(flow.fixed),
        "statements": len(flow.nodes),
        "trajectories": TRAJECTORIES,
        "results": results(len(flow.studied) - len(flow.unused)),
        "seconds": sum(trace.seconds_of(node) for node in flow.nodes) if trace else None,
        "tasks": listed,
        "joined": partition.reasons,
        "advice": advice(partition, found, trace) if trace else None,
        "compared": 0,
        "diff": difference(script, module, text),
        "files": {},
        "copied": [],
    }
    if trace is not None and trace.expected is not None and listed[-1]["writes"][-1]["type"] == "table":
        chain = Chain(trace, text, listed, request["regions"])
        compare(chain, completed)
        answer["compared"] = len(completed)
        requires, own = distributions(script, folder)
        height, width, _ = trace.tile.shape
        chain.results.clear()
        tracemalloc.start()
        chain.call({})
        tracemalloc.stop()
        metrics = [name for name, _ in trace.expected]
        answer["copied"] = own
        answer["files"] = {
            module + ".py": text,
            "pleach.toml": manifest_text(flow, module, listed, requires, height * width, chain.peaks, resident()),
            "stage.json": stage_text(flow, module, listed),
            "workflow.json": workflow_text(flow, listed, metrics),
            "study.toml": study_text(flow, tile_path(request), metrics),
        }
    elif trace is not None:
        kind = type(trace.result).__name__
        flow.warnings.append(
            f"{flow.function.name} returns {kind}; a dict of numbers, a number, a mask or a label map is allowed for a study"
        )
    answer["warnings"] = flow.warnings
    return answer


def main():
    answers = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.readline())
    try:
        answer = {"proposal": propose(request)}
    except Refusal as refusal:
        answer = {"refusal": {"line": refusal.line, "text": str(refusal)}}
    sys.stdout.flush()
    with os.fdopen(answers, "w") as stream:
        json.dump(answer, stream)
    # Threads and exit handlers of the script are of no use any more.
    os._exit(0)


main()
