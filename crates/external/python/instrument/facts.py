"""Finds what a statement of a function does with the names of the function, without running it."""

import ast
import builtins


class Refusal(Exception):
    """A part of the script that cannot be cut, with its line."""

    def __init__(self, node, text):
        super().__init__(text)
        self.line = getattr(node, "lineno", None)


class Facts:
    """Names that a statement reads before binding them, binds on some or all paths, and changes in place."""

    def __init__(self):
        self.reads, self.binds, self.must, self.changes = set(), set(), set(), set()
        # For a name bound to a function: names of the outer function that it reads when it is called.
        self.closures = {}
        # For a bound name: names whose memory it may share.
        self.shares = {}
        # Names that `+=` and the like change in place, unless they hold numbers.
        self.augmented = set()
        # Names that hold generators of random numbers.
        self.generators = set()
        # Weight of the calls: see `weight`.
        self.work = 0
        self.returns = self.reports = self.acts = self.ends = False
        self.bound_functions = set()
        # Names that are read other than as the function of a call.
        self.passed = set()


def path_of(node, script):
    """Returns the dotted path of a called function with the full names of imported modules. None if it has no path."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([script.imported.get(node.id, node.id)] + parts[::-1])


def root_of(node):
    """Returns the name at the start of a chain of attributes, items and calls. None if it starts with no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


class Reader:
    """Collects the facts of statements of one function."""

    def __init__(self, script, local, generators=()):
        self.script, self.local = script, local
        self.facts = Facts()
        self.generators = set(generators)
        # Names of comprehensions, lambdas and functions around the present node.
        self.inner = []

    def is_local(self, name):
        return name in self.local and not any(name in names for names in self.inner)

    def block(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, node):
        name = type(node).__name__
        handler = getattr(self, "on_" + name, None)
        if handler is None:
            raise Refusal(node, f"{name} is not supported")
        handler(node)

    def branch(self, statements, before=()):
        """Reads statements that may not run. Returns the names that they always bind, None if they end the function."""
        must = set(self.facts.must)
        self.facts.must |= set(before)
        self.block(statements)
        bound, self.facts.must = self.facts.must, must
        ends = bool(statements) and isinstance(statements[-1], (ast.Return, ast.Raise))
        return None if ends else bound

    # Statements

    def on_Pass(self, node):
        pass

    on_Break = on_Continue = on_Pass

    def on_Expr(self, node):
        value = node.value
        if isinstance(value, ast.Call):
            path = path_of(value.func, self.script) or ""
            root = root_of(value.func)
            is_report = any(path == report or (report[-1] == "." and path.startswith(report)) for report in REPORTS)
            self.visit(value)
            if is_report:
                self.facts.reports = True
            elif isinstance(value.func, ast.Attribute) and root and (self.is_local(root) or self.script.holds_state(root)):
                self.change(value.func.value)
            elif path in self.script.functions:
                # Its changes of arguments are known.
                self.facts.reports = True
            elif path in CHANGING_FUNCTIONS or any(word.arg in OUTPUT_KEYWORDS for word in value.keywords):
                pass
            else:
                self.facts.acts = True
                for argument in value.args + [word.value for word in value.keywords]:
                    self.change(argument)
        elif not isinstance(value, ast.Constant):
            self.visit(value)

    def on_Assign(self, node):
        if isinstance(node.value, ast.Lambda) and all(isinstance(target, ast.Name) for target in node.targets):
            self.function(node.value, is_later=True)
        else:
            self.visit(node.value)
        for target in node.targets:
            self.bind(target, node.value)

    def on_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)
            self.bind(node.target, node.value)

    def on_AugAssign(self, node):
        self.visit(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            self.read(target.id)
            if self.is_local(target.id):
                self.facts.augmented.add(target.id)
            self.bind(target, None)
        else:
            self.bind(target, None)

    def on_Delete(self, node):
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.bind(target, None)

    def on_Return(self, node):
        self.facts.returns = True
        if node.value is not None:
            self.visit(node.value)

    def on_Raise(self, node):
        self.facts.reports = True
        for part in (node.exc, node.cause):
            if part is not None:
                self.visit(part)

    def on_Assert(self, node):
        self.facts.reports = True
        self.visit(node.test)
        if node.msg is not None:
            self.visit(node.msg)

    def on_Import(self, node):
        for alias in node.names:
            self.bound((alias.asname or alias.name).partition(".")[0])

    def on_ImportFrom(self, node):
        for alias in node.names:
            if alias.name == "*":
                raise Refusal(node, "import * binds names that the analysis cannot see")
            self.bound(alias.asname or alias.name)

    def on_FunctionDef(self, node):
        names = self.function(node, is_later=True)
        self.bound(node.name)
        self.facts.closures[node.name] = names
        self.facts.bound_functions.add(node.name)

    def on_ClassDef(self, node):
        raise Refusal(node, "a class within the function; a class at the top of the file is allowed")

    def on_Global(self, node):
        raise Refusal(node, f"global {', '.join(node.names)}: state that other tasks lack; return the value")

    def on_Nonlocal(self, node):
        raise Refusal(node, f"nonlocal {', '.join(node.names)}: a function that changes names of another; return the value")

    def on_AsyncFunctionDef(self, node):
        raise Refusal(node, "async; plain functions are allowed")

    on_AsyncFor = on_AsyncWith = on_AsyncFunctionDef

    def on_If(self, node):
        self.visit(node.test)
        ways = [self.branch(node.body), self.branch(node.orelse)]
        ways = [way for way in ways if way is not None]
        if ways:
            self.facts.must |= set.intersection(*ways)

    def on_For(self, node):
        self.visit(node.iter)
        self.facts.work += WORK
        must = set(self.facts.must)
        self.bind(node.target, node.iter)
        self.branch(node.body)
        # The iterable may be empty.
        self.facts.must = must
        self.branch(node.orelse)

    def on_While(self, node):
        self.visit(node.test)
        self.facts.work += WORK
        self.branch(node.body)
        self.branch(node.orelse)

    def on_With(self, node):
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, item.context_expr)
        self.block(node.body)

    def on_Try(self, node):
        self.branch(node.body)
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            if handler.name and not self.inner:
                self.facts.binds.add(handler.name)
            self.branch(handler.body, [handler.name] if handler.name else [])
        self.branch(node.orelse)
        self.block(node.finalbody)

    on_TryStar = on_Try

    def on_Match(self, node):
        self.visit(node.subject)
        for case in node.cases:
            names = set()
            for pattern in ast.walk(case.pattern):
                names |= {name for name in (getattr(pattern, "name", None), getattr(pattern, "rest", None)) if name}
                if isinstance(pattern, ast.MatchValue):
                    self.visit(pattern.value)
            self.facts.binds |= names
            if case.guard is not None:
                self.visit(case.guard)
            self.branch(case.body, names)

    # Names

    def read(self, name):
        if self.is_local(name) and name not in self.facts.must:
            self.facts.reads.add(name)

    def bound(self, name):
        if self.inner:
            return
        self.facts.binds.add(name)
        self.facts.must.add(name)

    def change(self, node):
        """Notes that an object may be changed in place."""
        name = root_of(node)
        if name is None:
            return
        if self.is_local(name):
            if any(name in names for names in self.inner):
                return
            if self.inner:
                raise Refusal(node, f"an inner function changes {name}; return the value")
            self.facts.changes.add(name)
            self.read(name)
        elif self.script.holds_state(name) and not any(name in names for names in self.inner):
            raise Refusal(node, f"changes {name} of the file: state that other tasks lack; return the value")

    def bind(self, target, value):
        if isinstance(target, ast.Name):
            self.bound(target.id)
            if value is not None and not self.inner:
                self.facts.shares.setdefault(target.id, set()).update(self.shared(value))
                self.note_closure(target.id, value)
                called = path_of(value.func, self.script) if isinstance(value, ast.Call) else None
                if called and called.rpartition(".")[2] in GENERATORS:
                    self.facts.generators.add(target.id)
                    self.generators.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
            has_pairs = values is not None and len(values) == len(target.elts)
            for number, part in enumerate(target.elts):
                self.bind(part, values[number] if has_pairs else value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.visit(target.value)
            if isinstance(target, ast.Subscript):
                self.visit(target.slice)
            root = root_of(target)
            if root and not self.is_local(root) and root in self.script.names:
                raise Refusal(target, f"changes {root} of the file: state that other tasks lack; return the value")
            self.change(target)
            if value is not None and root and not self.inner:
                self.facts.shares.setdefault(root, set()).update(self.shared(value) if isinstance(target, ast.Attribute) else ())

    def note_closure(self, name, value):
        """Notes the names that a bound value reads when it is called later."""
        names = set()
        for node in ast.walk(value):
            if isinstance(node, ast.Lambda):
                names |= self.function_names(node)
        if names or isinstance(value, ast.Lambda):
            self.facts.closures[name] = names
            if isinstance(value, ast.Lambda):
                self.facts.bound_functions.add(name)

    def shared(self, node):
        """Returns the local names whose memory the value of an expression may share."""
        if isinstance(node, ast.Name):
            return {node.id} if self.is_local(node.id) else set()
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            return self.shared(node.value)
        if isinstance(node, ast.IfExp):
            return self.shared(node.body) | self.shared(node.orelse)
        if isinstance(node, ast.BoolOp):
            return set().union(*map(self.shared, node.values))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return set().union(*map(self.shared, node.elts))
        if isinstance(node, ast.Dict):
            return set().union(*map(self.shared, node.values))
        if isinstance(node, ast.NamedExpr):
            return self.shared(node.value)
        if isinstance(node, ast.Call):
            path = path_of(node.func, self.script) or ""
            last = node.func.attr if isinstance(node.func, ast.Attribute) else path
            found = set()
            arguments = node.args + [word.value for word in node.keywords]
            if path in self.script.functions or last in SHARING:
                found = set().union(*map(self.shared, arguments)) if arguments else set()
            if isinstance(node.func, ast.Attribute) and last in SHARING and last != "astype":
                found |= self.shared(node.func.value)
            for word in node.keywords:
                if word.arg in OUTPUT_KEYWORDS:
                    found |= self.shared(word.value)
            return found
        return set()

    # Expressions

    def visit(self, node):
        handler = getattr(self, "visit_" + type(node).__name__, None)
        if handler is not None:
            handler(node)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.read(node.id)
            self.facts.passed.add(node.id)

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        if node.target.id in self.local:
            self.facts.binds.add(node.target.id)

    def visit_Yield(self, node):
        raise Refusal(node, "yield; return a value")

    visit_YieldFrom = visit_Yield

    def visit_Await(self, node):
        raise Refusal(node, "await; plain functions are allowed")

    def visit_Lambda(self, node):
        self.function(node)

    def visit_ListComp(self, node):
        names = set()
        for generator in node.generators:
            # The iterable is read before the names of the comprehension are bound.
            self.inner.append(names)
            self.visit(generator.iter)
            self.inner.pop()
            names = names | {part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)}
        self.inner.append(names)
        for generator in node.generators:
            for test in generator.ifs:
                self.visit(test)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self.inner.pop()
        self.facts.work += 1

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def function_names(self, node):
        """Returns the local names that an inner function reads."""
        reader = Reader(self.script, self.local, self.generators)
        reader.inner = list(self.inner)
        return reader.function(node, is_later=True)

    def function(self, node, is_later=False):
        """Reads an inner function. Returns the local names that it reads: now, or when it is called later."""
        arguments = node.args
        for default in arguments.defaults + [value for value in arguments.kw_defaults if value is not None]:
            self.visit(default)
        before = set(self.facts.reads)
        self.facts.reads = set()
        named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
        names = {argument.arg for argument in named + [arguments.vararg, arguments.kwarg] if argument is not None}
        if isinstance(node, ast.FunctionDef):
            if node.decorator_list:
                raise Refusal(node, f"function {node.name} within the function has a decorator; a function without one is allowed")
            names |= bound_names(node)
        self.inner.append(names)
        flags = (self.facts.returns, self.facts.reports)
        must, self.facts.must = self.facts.must, set()
        if isinstance(node, ast.FunctionDef):
            self.block(node.body)
        else:
            self.visit(node.body)
        self.facts.must = must
        self.facts.returns, self.facts.reports = flags
        self.inner.pop()
        found = self.facts.reads
        if is_later:
            self.facts.reads = before
        else:
            self.facts.reads = before | {name for name in found if name not in self.facts.must}
        return found

    def visit_Call(self, node):
        path = path_of(node.func, self.script)
        root = root_of(node.func)
        if path and not (root and self.is_local(root)):
            self.check_call(node, path)
        if isinstance(node.func, ast.Name):
            self.read(node.func.id)
        else:
            self.visit(node.func)
        for child in node.args + node.keywords:
            self.visit(child)
        if path in CHANGING_FUNCTIONS and node.args:
            self.change(node.args[0])
        for word in node.keywords:
            if word.arg in OUTPUT_KEYWORDS:
                self.change(word.value)
            if word.arg in ("inplace", "in_place") and node.args:
                self.change(node.args[0])
        if isinstance(node.func, ast.Attribute) and root and (self.is_local(root) or self.script.holds_state(root)):
            is_generator = root in self.generators or root in self.script.generators
            if node.func.attr in CHANGING_METHODS or is_generator:
                self.change(node.func.value)
        helper = self.script.functions.get(path) if path and not (root and self.is_local(root)) else None
        if helper is not None:
            for argument in self.script.changed_arguments(helper, node):
                self.change(argument)
        self.facts.work += self.script.weight(path, node, root and self.is_local(root))

    def check_call(self, node, path):
        if path in REFUSED_CALLS and (path in self.script.imported.values() or "." in path or path not in self.script.names):
            raise Refusal(node, f"{path}: {REFUSED_CALLS[path]}")
        if path == "vars" and not node.args:
            raise Refusal(node, "vars: reads names that the analysis cannot see")
        if any(path == clock or (clock[-1] == "." and path.startswith(clock)) for clock in CLOCKS):
            raise Refusal(node, f"{path}: a clock or a random value: equal inputs would give different results")
        first, _, rest = path.partition(".")
        if path.startswith(("numpy.random.", "torch.rand", "torch.manual_seed")) or (first == "random" and rest and first in self.script.imported):
            last = path.rpartition(".")[2]
            seeded = [argument for argument in node.args + [word.value for word in node.keywords] if not is_none(argument)]
            if last not in GENERATORS or not seeded:
                raise Refusal(node, f"{path}: random numbers without a seed; np.random.default_rng(SEED) is allowed")


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


BUILTINS = set(dir(builtins))
