"""Groups the statements of a function into tasks.

Statements with equal keys form a task. A cut is then given up where a value has no element type, where the task before it does no
work, or where nothing reads its outputs.
"""


class Partition:
    """Groups of nodes, and the edges between them."""

    def __init__(self, flow, is_typed):
        self.flow, self.is_typed = flow, is_typed
        self.nodes = [node for node in flow.nodes if not node.is_repeated]
        self.groups = []
        by_key = {}
        for node in self.nodes:
            by_key.setdefault(frozenset(node.key), []).append(node)
        self.groups = [set(nodes) for nodes in by_key.values()]
        self.reasons = []
        self.merge_together()
        self.join_untyped()
        self.join_light()
        self.join_unread()
        self.sort()

    def group_of(self, node):
        return next(group for group in self.groups if node in group)

    def key(self, group):
        return set().union(*(node.key for node in group))

    def merge(self, groups):
        """Merges groups, and those on paths between them."""
        distinct = []
        for group in groups:
            if group not in distinct:
                distinct.append(group)
        if len(distinct) > 1:
            self.groups = [group for group in self.groups if group not in distinct]
            self.groups.append(set().union(*distinct))
        self.break_cycles()

    def break_cycles(self):
        while True:
            after = {id(group): self.reachable(group) for group in self.groups}
            cycle = next(
                (
                    (one, other)
                    for one in self.groups
                    for other in self.groups
                    if one is not other and id(other) in after[id(one)] and id(one) in after[id(other)]
                ),
                None,
            )
            if cycle is None:
                return
            self.groups = [group for group in self.groups if group is not cycle[0] and group is not cycle[1]]
            self.groups.append(cycle[0] | cycle[1])

    def consumers(self, group):
        found = []
        for node in group:
            for version in node.makes.values():
                for reader in version.readers:
                    for user in self.users(reader):
                        other = self.group_of(user)
                        if other is not group and not any(other is one for one in found):
                            found.append(other)
        return sorted(found, key=lambda one: min(node.index for node in one))

    def users(self, reader):
        """Returns the nodes that a reader stands for: itself, or those that repeat it."""
        if not reader.is_repeated:
            return [reader]
        return [user for version in reader.makes.values() for other in version.readers for user in self.users(other)]

    def reachable(self, group):
        found, waiting = set(), [group]
        while waiting:
            for other in self.consumers(waiting.pop()):
                if id(other) not in found:
                    found.add(id(other))
                    waiting.append(other)
        return found

    def merge_together(self):
        """Merges statements whose order or memory a cut would change."""
        for nodes in self.flow.sets:
            self.merge([self.group_of(node) for node in nodes])

    def crossing(self):
        """Yields each version that another group reads, with its group and these groups."""
        for node in self.nodes:
            group = self.group_of(node)
            for version in node.makes.values():
                users = [user for reader in version.readers for user in self.users(reader)]
                others = [self.group_of(user) for user in users if user not in group]
                if others:
                    yield version, group, others

    def join_untyped(self):
        while True:
            found = next((cut for cut in self.crossing() if not self.is_typed(cut[0])), None)
            if found is None:
                return
            version, group, others = found
            moved = {version.node}
            while True:
                more = {
                    reader for node in moved for made in node.makes.values() for reader in made.readers if reader in group
                } - moved
                if not more:
                    break
                moved |= more
            self.reasons.append(f"{version.name} of line {version.node.statement.lineno} has no element type")
            rest = group - moved
            self.groups = [one for one in self.groups if one is not group] + ([rest] if rest else [])
            self.groups.append(moved)
            self.merge([moved] + [self.group_of(next(iter(other))) for other in others])

    def work(self, group):
        return sum(node.facts.work for node in group)

    def join_light(self):
        while True:
            self.sort()
            for group in self.groups:
                is_light = self.work(group) < (WORK if self.key(group) else 1)
                consumers = self.consumers(group) if is_light else []
                if len(consumers) == 1:
                    self.merge([group, consumers[0]])
                    break
            else:
                return

    def join_unread(self):
        """Moves statements whose values nothing reads into the task with the smallest sufficient key."""
        while True:
            self.sort()
            last = self.group_of(self.flow.result.node)
            unread = next((group for group in self.groups if group is not last and not self.consumers(group)), None)
            if unread is None:
                return
            key = self.key(unread)
            fitting = [group for group in self.groups if group is not unread and key <= self.key(group)] or [last]
            self.merge([unread, min(fitting, key=lambda group: len(self.key(group)))])

    def sort(self):
        """Orders groups by data flow, and in the order of the script where data flow allows."""
        waiting, done = sorted(self.groups, key=lambda group: min(node.index for node in group)), []
        while waiting:
            ready = next(
                group for group in waiting if not any(group in self.consumers(other) for other in waiting if other is not group)
            )
            waiting.remove(ready)
            done.append(ready)
        self.groups = done


class Task:
    """A task: its statements with those that it repeats, its inputs, parameters and outputs."""

    def __init__(self, partition, group):
        flow = partition.flow
        self.group = group
        self.nodes = sorted(with_repeated(group), key=lambda node: node.index)
        self.key = partition.key(group)
        self.work = partition.work(group)
        own = set(self.nodes)
        reads = {version for node in self.nodes for version in node.reads.values()}
        start = set(flow.start.values())
        self.parameters = [name for name in flow.studied if flow.start[name] in reads]
        self.fixed = [name for name in flow.fixed if flow.start[name] in reads]
        outside = [version for version in reads if version.node not in own and version not in start]
        self.inputs = sorted(outside, key=lambda version: (version.node.index, version.name))
        self.reads_tile = flow.start[flow.input] in reads
        outputs = [version for version, of, _ in partition.crossing() if of is group]
        self.outputs = sorted(outputs, key=lambda version: (version.node.index, version.name))
        self.is_last = flow.result.node in group
        if self.is_last:
            self.outputs.append(flow.result)
        # Inputs and the tile are read-only, so a task copies those that it changes.
        changed = set()
        for node in self.nodes:
            for name in node.facts.changes:
                if name in node.reads:
                    changed |= node.reads[name].roots
        given = self.inputs + ([flow.start[flow.input]] if self.reads_tile else [])
        self.copied = [version for version in given if version in changed or version.roots & changed]


def with_repeated(group):
    """Returns the nodes of a group with the repeated statements that they read."""
    found, waiting = set(group), list(group)
    while waiting:
        for version in waiting.pop().reads.values():
            node = version.node
            if node is not None and node.is_repeated and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def tasks(flow, is_typed, joined):
    """Returns the partition and its tasks in order. `joined` names tasks to merge with the readers of their outputs."""
    partition = Partition(flow, is_typed)
    found = [Task(partition, group) for group in partition.groups]
    named(flow, found)
    known = {task.name: task for task in found}
    for name in joined:
        if name not in known:
            raise Refusal(None, f"--join {name}: no such task; allowed: {', '.join(known)}")
        first = partition.group_of(next(iter(known[name].group)))
        partition.merge([first, *partition.consumers(first)])
    if joined:
        partition.sort()
        found = [Task(partition, group) for group in partition.groups]
        named(flow, found)
    return partition, found


def named(flow, found):
    """Names regions and tasks: the names of the script, numbered where several versions of a name cross."""
    start = {flow.input} | set(flow.studied) | set(flow.fixed)
    local = bound_names(flow.function) | flow.script.names

    def name_of(version):
        if version is not flow.result:
            return version.name
        value = version.node.statement.value
        return value.id if isinstance(value, ast.Name) and value.id not in start else "result"

    outputs = [version for task in found for version in task.outputs]
    counts = {}
    for version in outputs:
        counts[name_of(version)] = counts.get(name_of(version), 0) + 1
    regions, taken, numbers = {flow.start[flow.input]: flow.input}, set(start), {}
    for version in outputs:
        name = name_of(version)
        region, numbers[name] = name, numbers.get(name, 0) + 1
        if counts[name] > 1:
            region = f"{name}_{numbers[name]}"
        while region in taken or (region != name and region in local):
            region += "_value"
        taken.add(region)
        regions[version] = region
    used = set(flow.script.names) | BUILTINS | {flow.function.name}
    for task in found:
        task.regions = regions
        task.name = regions[task.outputs[-1]]
        task.function = f"compute_{task.name}"
        while task.function in used:
            task.function += "_"
        used.add(task.function)
