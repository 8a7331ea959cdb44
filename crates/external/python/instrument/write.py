"""Writes the module, the manifest and the descriptors of a cut function."""

import difflib
import json
import os
import re
import sys

TRAJECTORIES = 10

# Seconds of a call of a task, and seconds for each byte that enters and leaves its process (ADR 30).
CALL_SECONDS, IN_SECONDS, OUT_SECONDS = 0.0005, 0.6e-9, 2.1e-9


class Types:
    """Element types of versions, with their conversions. Without a trace all are unknown."""

    def __init__(self, flow, trace):
        self.flow, self.trace = flow, trace
        self.tile = ("bgr8", "{}", "numpy.ascontiguousarray({})")

    def of(self, version):
        """Returns element type, conversion of an output and of an input. None if the value has no element type."""
        if version is self.flow.start[self.flow.input]:
            return self.tile
        if self.trace is None:
            is_code = version.is_function or version.closure
            return None if is_code else ("unknown", "{}", "{}")
        measured = self.trace.measured.get(version)
        return measured.type() if measured is not None else None

    def result(self, version):
        """Returns the element type of the function's result. None if a study has no response of it."""
        if self.trace is None:
            return "unknown"
        if self.trace.expected is None:
            return None
        if isinstance(self.trace.result, dict):
            return "table"
        if not hasattr(self.trace.result, "shape") or not self.trace.result.shape:
            return "scalar"
        found = self.trace.measured[version].type()
        return found[0] if found is not None else None

    def is_typed(self, version):
        return self.of(version) is not None


def statement_lines(flow, node):
    """Returns the lines of a statement with the comments before it, as in the script."""
    script, statement = flow.script, node.statement
    others = [other for other in flow.function.body if other is not statement]
    def_line = flow.function.lineno
    shares = statement.lineno == def_line or any(
        other.lineno <= statement.end_lineno and statement.lineno <= other.end_lineno for other in others
    )
    if shares:
        return [indent(flow) + line for line in ast.unparse(statement).splitlines()]
    before = [other.end_lineno for other in others if other.end_lineno < statement.lineno]
    head = before[-1] if before else header_end(flow)
    comments = [line for line in script.lines[head : statement.lineno - 1] if line.strip().startswith("#")]
    return comments + script.lines[statement.lineno - 1 : statement.end_lineno]


def header_end(flow):
    """Returns the last line of the function's signature."""
    first = flow.function.body[0]
    line = first.lineno - 1
    while line > flow.function.lineno and not flow.script.lines[line - 1].partition("#")[0].rstrip().endswith(":"):
        line -= 1
    return line


def indent(flow):
    first = flow.function.body[0]
    if first.lineno == flow.function.lineno:
        return "    "
    line = flow.script.lines[first.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def function_lines(flow, types, task):
    """Returns the function of a task."""
    space, start = indent(flow), flow.start
    inputs = ([flow.input] if task.reads_tile else []) + [task.regions[version] for version in task.inputs]
    keywords = list(task.parameters) + [f"{name}={flow.fixed[name]}" for name in task.fixed]
    signature = ", ".join(inputs + (["*"] if keywords else []) + keywords)
    lines = [f"def {task.function}({signature}):"]
    lines.append(f'{space}"""Returns {", ".join(task.regions[version] for version in task.outputs)}: {words(task)} of {flow.function.name}."""')
    body, given, current = [], {}, dict(start)
    if task.reads_tile:
        copied = start[flow.input] in task.copied
        body.append(f"{flow.input} = {flow.input}.copy()" if copied else f"{flow.input} = numpy.ascontiguousarray({flow.input})")
        if types.trace is None and not copied:
            body.pop()
    for version in task.inputs:
        region = task.regions[version]
        back = types.of(version)[2]
        value = back.format(region)
        if version in task.copied and (back == "{}" or back.endswith("[1]")) and types.of(version)[0] != "scalar":
            value += ".copy()"
        name = region
        early = [node for node in task.nodes if version.name in node.makes and node.index < version.node.index]
        if region == version.name and early:
            name = f"{region}_given"
        elif region == version.name:
            current[region] = version
        if value != name:
            body.append(f"{name} = {value}")
        given[version] = name
    body += [f"{name} = {name} != 0" for name in task.parameters if flow.studied[name]["type"] == "flag"]
    text = [space + line for line in body]
    last = {}
    for node in task.nodes:
        for name in node.makes:
            last[name] = node
    kept = {}
    for node in task.nodes:
        for name, version in sorted(node.reads.items()):
            if version in given and current.get(name) is not version:
                text.append(f"{space}{name} = {given[version]}")
                current[name] = version
        text += statement_lines(flow, node)
        for name, version in node.makes.items():
            current[name] = version
            if version in task.outputs and version is not flow.result and last[name] is not node:
                changed = any(
                    other.index > node.index and other.reads[one].roots & version.roots
                    for other in task.nodes
                    for one in other.facts.changes
                    if one in other.reads
                )
                kept[version] = f"{task.regions[version]}_kept"
                text.append(f"{space}{kept[version]} = {name}{'.copy()' if changed else ''}")
    if not task.is_last:
        outputs = [types.of(version)[1].replace("{}", kept.get(version, version.name)) for version in task.outputs]
        text.append(f"{space}return {', '.join(outputs)}")
    return lines + text


def words(task):
    """Returns the lines of a task in words."""
    spans = []
    for node in task.nodes:
        first, last = node.statement.lineno, node.statement.end_lineno
        if spans and first <= spans[-1][1] + 1:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return ("line " if len(texts) == 1 and "-" not in texts[0] else "lines ") + ", ".join(texts)


# Numbers of a result that is no table, by its element type: names and expressions.
AREA = ("area-fraction", "float(numpy.count_nonzero({0})) / {0}.size")
RESPONSES = {
    "scalar": [("result", "float({0})")],
    "mask": [AREA],
    "gray8": [AREA],
    "labels": [("count", "float(numpy.unique({0}[{0} > 0]).size)"), AREA],
}


def response_lines(region, element):
    """Returns the function of the task that makes a table of a result that is none."""
    numbers = [f'"{name}": {expression.format(region)}' for name, expression in RESPONSES[element]]
    start = [f"def compute_response({region}):", '    """Returns the numbers that the study analyzes."""']
    return [*start, "    return {", *(f"        {number}," for number in numbers), "    }"]


def module_text(flow, types, tasks):
    """Returns the file with the functions of the tasks, and the function as their composition."""
    script, function, space = flow.script, flow.function, indent(flow)
    parts = []
    for task in tasks:
        parts.append(function_lines(flow, types, task))
    element = types.result(flow.result)
    if element in RESPONSES:
        parts.append(response_lines(tasks[-1].regions[flow.result], element))
    docstring = ast.get_docstring(function) is not None
    head = function.body[0].end_lineno if docstring else header_end(flow)
    whole = script.lines[function.lineno - 1 : head]
    if function.body[0].lineno == function.lineno:
        whole = [ast.unparse(function).splitlines()[0]]
    for task in tasks:
        inputs = ([flow.input] if task.reads_tile else []) + [task.regions[version] for version in task.inputs]
        call = ", ".join(inputs + [f"{name}={name}" for name in task.parameters + task.fixed])
        targets = ", ".join(task.regions[version] for version in task.outputs)
        prefix = "return " if task.is_last else f"{targets} = "
        whole.append(f"{space}{prefix}{task.function}({call})")
    parts.append(whole)
    lines = "\n\n\n".join("\n".join(part) for part in parts).split("\n")
    dropped = set()
    for node in runs_at_import(script, function):
        dropped |= set(range(node.lineno, node.end_lineno + 1))
    before = [line for number, line in enumerate(script.lines[: function.lineno - 1], 1) if number not in dropped]
    after = [
        line
        for number, line in enumerate(script.lines[function.end_lineno :], function.end_lineno + 1)
        if number not in dropped
    ]
    return with_numpy(script, before, lines, after, dropped)


def with_numpy(script, before, lines, after, dropped):
    """Returns the text of the module, with numpy under the name of the script, or imported."""
    name = next((short for short, whole in script.imported.items() if whole == "numpy"), None)
    text = "\n".join(lines)
    if name is not None:
        text = re.sub(r"\bnumpy\.(?=ascontiguousarray|asfortranarray|array\(|bool_|int|uint|float|count_nonzero|unique)", f"{name}.", text)
    elif "numpy." in text:
        imports = [node for node in script.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        at = max((node.end_lineno for node in imports), default=0)
        if not at and ast.get_docstring(script.tree) is not None:
            at = script.tree.body[0].end_lineno
        at -= sum(1 for number in dropped if number <= at)
        before[at:at] = ["import numpy"]
    return "\n".join(before + [text] + after).rstrip("\n") + "\n"


def described(flow, types, tasks, trace):
    """Returns the tasks as the proposal lists them."""
    found = []
    for task in tasks:
        reads = [{"region": flow.input, "type": "bgr8"}] if task.reads_tile else []
        reads += [port(types, task, version) for version in task.inputs]
        writes = [port(types, task, version) for version in task.outputs]
        found.append(
            {
                "task": task.name,
                "function": task.function,
                "lines": words(task),
                "reads": reads,
                "writes": writes,
                "parameters": task.parameters,
                "key": [name for name in flow.studied if name in task.key],
                "results": results(len(task.key)),
                "seconds": sum(trace.seconds_of(node) for node in task.nodes) if trace else None,
            }
        )
    element = types.result(flow.result)
    if element in RESPONSES:
        last = found[-1]
        entry = {"task": "response", "function": "compute_response", "lines": "added", "reads": last["writes"][-1:]}
        entry["writes"] = [{"region": "response", "type": "table", "bytes": 64}]
        found.append({**entry, "parameters": [], "key": last["key"], "results": last["results"], "seconds": 0.0})
    return found


def results(count):
    """Returns the distinct results for a tile in a MOAT study, of a key of so many parameters: at most one for each point of a
    trajectory at which one of them changes."""
    return TRAJECTORIES * (count + 1) if count else 1


def port(types, task, version):
    element = types.result(version) if version is types.flow.result else (types.of(version) or ("none",))[0]
    measured = types.trace.measured.get(version) if types.trace else None
    return {"region": task.regions[version], "type": element or "none", "bytes": measured.nbytes if measured else None}


def expected_seconds(partition, trace):
    """Returns the seconds of the tasks for a tile of the study, with the transfers of their values."""
    total = 0.0
    for group in partition.groups:
        count = results(len(partition.key(group)))
        seconds = sum(trace.seconds_of(node) for node in with_repeated(group))
        total += count * (CALL_SECONDS + seconds)
    for version, group, others in partition.crossing():
        size = trace.measured[version].nbytes if version in trace.measured else 0
        total += results(len(partition.key(group))) * OUT_SECONDS * size
        total += sum({id(other): results(len(partition.key(other))) for other in others}.values()) * IN_SECONDS * size
    return total


def advice(partition, found, trace):
    """Returns the seconds of the proposal, and the joins that lower them most, one after the other, with the seconds left."""
    first = best = expected_seconds(partition, trace)
    present, joins = partition, []
    while True:
        candidates = []
        for task in found[:-1]:
            changed = copy.copy(present)
            changed.groups = [set(group) for group in present.groups]
            group = changed.group_of(next(iter(task.group)))
            readers = changed.consumers(group)
            if task.name not in joins and readers:
                changed.merge([group, *readers])
                candidates.append((expected_seconds(changed, trace), task.name, changed))
        seconds, name, changed = min(candidates, key=lambda candidate: candidate[:2], default=(best, None, None))
        # Less than a hundredth is no reason to join tasks.
        if seconds > 0.99 * best:
            return {"seconds": first, "joins": joins, "joined_seconds": best}
        best, present = seconds, changed
        joins.append(name)


def toml(value):
    return json.dumps(value, ensure_ascii=False)


def manifest_text(flow, module, listed, requires, pixels, peaks, resident):
    lines = [
        f"# Operations of workflow.json: functions of {module}.py. Costs and memory are measured on one tile.",
        "# Limits of arguments (low, high) are wide: set them to the values that the functions can handle.",
        "",
        "[package]",
        f"requires = {toml(requires)}",
    ]
    for task in listed:
        reads = ", ".join(
            f'{{ name = {toml(read["region"])}, type = "{read["type"]}"' + (', channels = "rgb" }' if read["type"] == "bgr8" else " }")
            for read in task["reads"]
        )
        writes = ", ".join(f'{{ name = {toml(write["region"])}, type = "{write["type"]}" }}' for write in task["writes"])
        lines += ["", "[[operation]]", f'name = "python:{module}.{task["function"]}"', "version = 1"]
        lines += [f"inputs = [{reads}]", f"outputs = [{writes}]"]
        if task["parameters"]:
            lines += ["arguments = [", *(f"  {argument(name, flow.studied[name])}," for name in task["parameters"]), "]"]
        nanoseconds = max(1, round(task["seconds"] * 1e9 / pixels))
        # Twice the peak: numpy's allocations are measured, those of compiled libraries are not.
        peak = max(16, -(-2 * peaks.get(task["task"], 0) // pixels))
        lines += [f"cost = {{ seconds = {CALL_SECONDS}, ns_a_pixel = {nanoseconds} }}"]
        lines += [f'memory = {{ resident = "{resident}MB", bytes_a_pixel = {peak} }}']
    return "\n".join(lines) + "\n"


def argument(name, parameter):
    if "choices" in parameter:
        choices = ", ".join(f"{number} = {toml(text)}" for number, text in enumerate(parameter["choices"], 1))
        return f'{{ name = "{name}", choices = {{ {choices} }} }}'
    if "values" in parameter:
        return f'{{ name = "{name}", type = "integer", values = {toml(parameter["values"])} }}'
    low, high = parameter["range"]
    most = max(1_000_000, 10 * abs(high), 10 * abs(low))
    least = 0 if low >= 0 else -most
    if parameter["type"] == "real":
        least, most = float(least), float(most)
    return f'{{ name = "{name}", type = "{parameter["type"]}", low = {least}, high = {most} }}'


def stage_text(flow, module, listed):
    tasks, known = [], set()
    for task in listed:
        entry = {"task": task["task"], "description": description(flow, task), "operation": f"python:{module}.{task['function']}"}
        entry["version"] = 1
        entry["parameters"] = [domain(name, flow.studied[name]) if name not in known else {"name": name} for name in task["parameters"]]
        known |= set(task["parameters"])
        entry["reads"] = [read["region"] for read in task["reads"]]
        entry["writes"] = [write["region"] for write in task["writes"]]
        tasks.append({key: value for key, value in entry.items() if value or key != "parameters"})
    stage = {"stage": flow.function.name, "description": f"From the tile to the responses of {flow.function.name}"}
    stage["inputs"] = [{"region": flow.input, "type": "bgr8"}]
    stage["outputs"] = [{"region": listed[-1]["writes"][-1]["region"], "type": "table"}]
    return json.dumps({**stage, "tasks": tasks}, indent=2, ensure_ascii=False) + "\n"


def description(flow, task):
    if task["lines"] == "added":
        return "The numbers that the study analyzes"
    return f"{task['lines'][0].upper()}{task['lines'][1:]} of {flow.function.name}"


def domain(name, parameter):
    kind = "real" if parameter["type"] == "real" else "integer"
    found = {"name": name, "type": kind, "default": parameter["default"]}
    if "choices" in parameter:
        return {**found, "values": list(range(1, len(parameter["choices"]) + 1))}
    if "values" in parameter:
        return {**found, "values": parameter["values"]}
    steps = {"step": 1} if kind == "integer" else {}
    return {**found, "range": parameter["range"], **steps}


def workflow_text(flow, listed, metrics):
    workflow = {"workflow": flow.function.name, "description": f"The function {flow.function.name}, cut into tasks"}
    workflow["operations"] = ["pleach.toml"]
    workflow["inputs"] = [{"region": flow.input, "type": "bgr8"}]
    workflow["stages"] = [{"descriptor": "stage.json"}]
    metrics = [{"metric": name, "over_tiles": "mean"} for name in metrics]
    workflow["response"] = {"region": listed[-1]["writes"][-1]["region"], "metrics": metrics}
    return json.dumps(workflow, indent=2, ensure_ascii=False) + "\n"


def study_text(flow, tile, metrics):
    return f"""# Ranges and steps of the parameters are in stage.json. They are proposals from the defaults: edit them before you run a study.

[study]
name = {toml(flow.function.name.replace("_", "-"))}
workflow = "workflow.json"
seed = 1

[input]
tiles = [{toml(tile)}]

[method]
kind = "moat"
trajectories = {TRAJECTORIES}
levels = 8

[response]
metric = {toml(metrics[0])}
"""


def difference(script, module, text):
    lines = difflib.unified_diff(
        [line + "\n" for line in script.lines], text.splitlines(keepends=True), script.file, module + ".py (proposed)"
    )
    return "".join(lines)
