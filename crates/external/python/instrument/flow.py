"""Data flow of a function: its statements as nodes, the versions of its names, and the key of each."""


class Script:
    """A parsed file: its imports, functions and names."""

    def __init__(self, file, source):
        self.file, self.lines = file, source.splitlines()
        self.tree = ast.parse(source, file)
        self.imported, self.functions, self.names = {}, {}, set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.imported[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    raise Refusal(node, "an import relative to a package; a script of its own is allowed")
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            for part in ast.walk(node) if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ():
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.names.add(part.id)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.names.add(node.name)
        self.names |= set(self.imported)
        self.summaries = {}
        # Names of the file that hold generators of random numbers.
        self.generators = set()
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if (path_of(node.value.func, self) or "").rpartition(".")[2] in GENERATORS:
                    self.generators |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def holds_state(self, name):
        """Returns whether a name is a value of the file, rather than a module or function."""
        return name in self.names and name not in self.imported and name not in self.functions

    def summary(self, function):
        """Returns the parameters that a function of the file changes in place, and the weight of its calls."""
        if function.name not in self.summaries:
            # A recursive call changes no more than the call around it.
            self.summaries[function.name] = (set(), WORK)
            arguments = function.args
            named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
            names = [argument.arg for argument in named + [arguments.vararg, arguments.kwarg] if argument is not None]
            reader = Reader(self, set(names) | bound_names(function))
            for statement in function.body:
                if not isinstance(statement, ast.ClassDef):
                    reader.statement(statement)
            changed = reader.facts.changes | reader.facts.augmented
            while True:
                more = set()
                for name, sources in reader.facts.shares.items():
                    if name in changed:
                        more |= sources
                if more <= changed:
                    break
                changed |= more
            self.summaries[function.name] = ({name for name in names if name in changed}, reader.facts.work)
        return self.summaries[function.name]

    def changed_arguments(self, function, call):
        """Returns the arguments of a call that a function of the file changes in place."""
        changed, _ = self.summary(function)
        names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
        found = [value for name, value in zip(names, call.args) if name in changed]
        return found + [word.value for word in call.keywords if word.arg in changed]

    def weight(self, path, node, is_method):
        """Returns the weight of a call: the larger, the more a repetition costs."""
        if is_method:
            return 0 if isinstance(node.func, ast.Attribute) and node.func.attr in LIGHT_METHODS else WORK
        if path is None:
            return 0 if isinstance(node.func, ast.Attribute) and node.func.attr in LIGHT_METHODS else WORK
        if path in self.functions:
            return self.summary(self.functions[path])[1]
        last = path.rpartition(".")[2]
        if path in BUILTINS or path.startswith("math.") or (path.startswith("numpy.") and last in NUMPY_TYPES):
            return 0
        if path.startswith("numpy.") and not path.startswith(("numpy.linalg.", "numpy.fft.")):
            return 1
        return WORK

    def function(self, name):
        """Returns the function to cut: the one of this name, or the only one that no other calls."""
        for node in self.tree.body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name == name:
                raise Refusal(node, "async; plain functions are allowed")
        if name:
            if name not in self.functions:
                found = ", ".join(self.functions) or "none"
                raise Refusal(None, f"no function {name}; a function at the top of the file is allowed: {found}")
            return self.functions[name]
        called = set()
        for function in self.functions.values():
            called |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} - {function.name}
        free = [function for function in self.functions.values() if function.name not in called]
        free = [function for function in free if any_inputs(function) and function.name != "main"]
        if len(free) != 1:
            names = ", ".join(function.name for function in free) or "none"
            raise Refusal(None, f"functions that no other calls: {names}; choose one with --function")
        return free[0]

    def check_helpers(self, function):
        """Analyses the functions of the file that a function refers to, directly or through others."""
        waiting, seen = [function], {function.name}
        while waiting:
            for node in ast.walk(waiting.pop()):
                if isinstance(node, ast.Name) and node.id in self.functions and node.id not in seen:
                    seen.add(node.id)
                    self.summary(self.functions[node.id])
                    waiting.append(self.functions[node.id])


def any_inputs(function):
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args) > len(arguments.defaults)


def parameters(script, function, constants):
    """Returns the name of the input, the parameters of a study by name, and the texts of the other defaults."""
    arguments = function.args
    if function.decorator_list:
        raise Refusal(function, f"{function.name} has a decorator; a function without one is allowed")
    for star in (arguments.vararg, arguments.kwarg):
        if star is not None:
            raise Refusal(star, f"*{star.arg}: parameters by name are allowed")
    positional = arguments.posonlyargs + arguments.args
    without = positional[: len(positional) - len(arguments.defaults)]
    if len(without) != 1:
        names = ", ".join(argument.arg for argument in without) or "none"
        raise Refusal(function, f"{function.name} has the inputs {names}; one is allowed, the tile, and a default for each parameter")
    pairs = list(zip(positional[len(without) :], arguments.defaults))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        if default is None:
            raise Refusal(argument, f"parameter {argument.arg} has no default; a default is needed")
        pairs.append((argument, default))
    studied, fixed = {}, {}
    for argument, default in pairs:
        found = None if argument.arg in constants else parameter(argument, default)
        if found is None:
            fixed[argument.arg] = ast.unparse(default)
        else:
            studied[argument.arg] = found
    for name in constants:
        if name not in fixed:
            raise Refusal(None, f"--constant {name}: no such parameter of {function.name}")
    if not studied:
        raise Refusal(function, f"{function.name} has no parameters with a number as default; a study varies numbers and choices")
    return without[0].arg, studied, fixed


def parameter(argument, default):
    """Returns a parameter with a proposed range from its default and annotation. None if a study cannot vary it."""
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return None
    annotation = argument.annotation
    if isinstance(annotation, ast.Subscript) and (root_of(annotation) or "").endswith(("Literal", "typing")):
        try:
            options = ast.literal_eval(annotation.slice)
        except ValueError:
            return None
        options = list(options) if isinstance(options, tuple) else [options]
        if value in options and len(options) > 1:
            if all(isinstance(option, str) for option in options):
                return {"type": "choice", "default": options.index(value) + 1, "choices": options}
            if all(type(option) is int for option in options):
                return {"type": "integer", "default": value, "values": options}
        return None
    kind = annotation.id if isinstance(annotation, ast.Name) else None
    if isinstance(value, bool):
        return {"type": "flag", "default": int(value), "values": [0, 1]}
    if isinstance(value, float) or (isinstance(value, int) and kind == "float"):
        if value != value or value in (float("inf"), -float("inf")):
            return None
        low, high = sorted((value / 2, value * 1.5)) if value else (0.0, 1.0)
        return {"type": "real", "default": float(value), "range": [float(f"{low:.6g}"), float(f"{high:.6g}")]}
    if isinstance(value, int):
        half = max(1, abs(value) // 2)
        low = max(1, value - half) if value >= 1 else 0 if value == 0 else value - half
        return {"type": "integer", "default": value, "range": [low, value + half]}
    return None


class Version:
    """A value of a name: that of one binding, or after one change in place."""

    def __init__(self, name, node, roots=()):
        self.name, self.node = name, node
        # Versions whose memory it may share.
        self.roots = frozenset(roots) | {self}
        self.closure = frozenset()
        self.readers = []
        self.is_function = self.is_number = False


class Node:
    """A statement at the top of the function."""

    def __init__(self, index, statement, facts):
        self.index, self.statement, self.facts = index, statement, facts
        self.reads, self.makes, self.key = {}, {}, set()
        # Whether tasks repeat the statement instead of passing its value.
        self.is_repeated = False
        self.depends_on_tile = False


def owners(versions):
    """Returns the nodes that belong to the task of a change of these versions, which share memory.

    A task copies an input that it changes. So the first owner of the memory may be in another task, and all names that were made from
    it must be in the task of the change.
    """
    every = frozenset().union(*(version.roots for version in versions))
    first = next((root for root in every if root.roots == {root} and all(root in version.roots for version in versions)), None)
    return [version.node for version in every if version is not first and version.node is not None]


def is_number(statement):
    """Returns whether a statement binds names to numbers: immutable, whatever a later statement does."""
    value = getattr(statement, "value", None)
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Constant)


class Flow:
    """The nodes of a function in order, with the versions that they read and make."""

    def __init__(self, script, function, constants):
        self.script, self.function = script, function
        self.input, self.studied, self.fixed = parameters(script, function, constants)
        script.check_helpers(function)
        local = bound_names(function) | {self.input} | set(self.studied) | set(self.fixed)
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        self.current, self.nodes, self.together, self.warnings = {}, [], [], []
        self.changed_roots, self.partners = set(), []
        for name in [self.input, *self.studied, *self.fixed]:
            self.current[name] = Version(name, None)
            self.current[name].is_number = name in self.studied
        self.start = dict(self.current)
        reader = Reader(script, local)
        for index, statement in enumerate(body):
            reader.facts = Facts()
            reader.statement(statement)
            self.add(Node(index, statement, reader.facts))
        self.close(function)

    def add(self, node):
        facts, current = node.facts, self.current
        facts.changes |= {name for name in facts.augmented if name not in current or not current[name].is_number}
        names = facts.reads | facts.changes | (facts.binds - facts.must)
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            for free in current[name].closure if name in current else ():
                if free not in names:
                    names.add(free)
                    waiting.append(free)
        changed = [current[name] for name in facts.changes if name in current]
        # An inner function and a loop may bind several names to the memory that they change.
        shared = {source for name in facts.changes for source in facts.shares.get(name, ())}
        changed += [current[name] for name in shared if name in current and name not in facts.changes]
        partners = set()
        self.changed_roots = self.changed_roots.union(*(version.roots for version in changed))
        for version in changed:
            partners |= {other for other in current.values() if other.roots & version.roots and other not in changed}
        partners = {other for other in partners if other.node is not None or other.name == self.input}
        for name in names | {other.name for other in partners}:
            if name in current:
                node.reads[name] = current[name]
                current[name].readers.append(node)
        self.make(node, changed, partners)
        self.partners += [(node, other, node.makes[other.name]) for other in partners if other.name not in names | facts.binds]
        self.nodes.append(node)

    def make(self, node, changed, partners):
        facts, current, made = node.facts, self.current, {}
        for name in sorted(facts.binds):
            sources = facts.shares.get(name, ())
            roots = set().union(*(current[source].roots for source in sources if source in current))
            if name not in facts.must and name in current or name in facts.changes and name in current:
                roots |= current[name].roots
            version = Version(name, node, roots)
            version.closure = frozenset(facts.closures.get(name, ())).union(
                *(current[source].closure for source in facts.passed if source in current)
            )
            version.is_function = name in facts.bound_functions
            version.is_number = is_number(node.statement)
            made[name] = version
        for old in [*changed, *partners]:
            if old.name not in made:
                version = Version(old.name, node, old.roots)
                version.closure = old.closure
                made[old.name] = version
        for old in partners:
            self.together.append(([node, *owners([old, *changed])], made[old.name]))
        node.makes = made
        current.update(made)

    def close(self, function):
        """Completes keys, statements that may end the function, and statements that tasks repeat."""
        if not self.nodes or not isinstance(self.nodes[-1].statement, ast.Return) or self.nodes[-1].statement.value is None:
            raise Refusal(self.nodes[-1].statement if self.nodes else function, f"{function.name} does not end with return and a value")
        # A name that shares the memory of a change does not matter if nothing reads it afterwards.
        for node, old, new in reversed(self.partners):
            if not new.readers:
                del node.reads[old.name], node.makes[new.name]
                old.readers.remove(node)
        self.result = Version("return", self.nodes[-1])
        self.nodes[-1].makes["return"] = self.result
        for node in self.nodes:
            for version in node.reads.values():
                if version.node.depends_on_tile if version.node is not None else version.name == self.input:
                    node.depends_on_tile = True
            node.is_repeated = self.repeats(node)
        early = next((node for node in self.nodes if node.facts.returns), self.nodes[-1])
        self.tail = self.nodes[early.index :]
        if early is not self.nodes[-1]:
            line = early.statement.lineno
            self.warnings.append(f"line {line}: return before the end, so this statement and all later ones are one task")
        acting = [node for node in self.nodes if node.facts.acts]
        sets = [self.tail, acting] + [nodes for nodes, version in self.together if version.readers]
        self.sets = [[node for node in nodes if not node.is_repeated] for nodes in sets]
        self.set_keys()
        for node in acting:
            self.warnings.append(
                f"line {node.statement.lineno}: a call without a result: its effect happens once for each distinct result"
            )
        used = {name for node in self.nodes for name, version in node.reads.items() if version.node is None}
        self.unused = [name for name in self.studied if name not in used]
        for name in self.unused:
            self.warnings.append(f"parameter {name} is not used; the study omits it")

    def set_keys(self):
        """Sets the keys of nodes. Those of a set, which belong to one task, have the same key."""
        while True:
            before = sum(len(node.key) for node in self.nodes)
            for node in self.nodes:
                for version in node.reads.values():
                    node.key |= self.key_of(version)
            for nodes in self.sets:
                key = set().union(*(node.key for node in nodes))
                for node in nodes:
                    node.key |= key
            if sum(len(node.key) for node in self.nodes) == before:
                return

    def key_of(self, version):
        if version.node is not None:
            return version.node.key
        return {version.name} if version.name in self.studied else set()

    def repeats(self, node):
        """Returns whether tasks repeat a statement: it binds names without reading the tile, or binds an inner function."""
        statement, facts = node.statement, node.facts
        if isinstance(statement, ast.Delete):
            return all(isinstance(target, ast.Name) for target in statement.targets)
        if facts.acts or facts.reports or facts.returns or facts.changes or not node.makes:
            return False
        if any(version.roots & self.changed_roots for version in node.makes.values()):
            return False
        if any(version.node is not None and not version.node.is_repeated for version in node.reads.values()):
            return False
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            return True
        return isinstance(statement, (ast.Assign, ast.AnnAssign)) and not node.depends_on_tile


def bound_names(function):
    """Returns the names that statements of a function bind, without those of inner functions and comprehensions."""
    names, waiting = set(), list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            waiting.extend(part for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        waiting.extend(ast.iter_child_nodes(node))
    return names
