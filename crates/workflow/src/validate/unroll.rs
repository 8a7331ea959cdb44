//! Unrolls loops and choices: each becomes tasks with guards, which all later steps treat as a DAG of tasks.
//!
//! A loop of at most *n* iterations becomes *n* copies of its tasks. Those after the first run only while the value that the
//! loop compares, written by the copy before, does not end it. A copy that is skipped passes the regions of the copy before,
//! so the last copy has the regions of the last iteration that ran, the compared value included. Regions that only the loop
//! itself reads do not pass, so they need not stay in memory. The tasks of a choice are guarded by its condition, and one of
//! the two writers of a region that the choice gives passes the region of the other writer.

mod check;

use super::Diagnostics;
use crate::descriptor::{
    ChoiceDescriptor, ConditionDescriptor, EntryDescriptor, LoopDescriptor, ParameterDescriptor,
    StageDescriptor, TaskDescriptor,
};
use crate::error::{DescriptorError, Problem};
use crate::value::Real;
use crate::workflow::Comparison;
use std::collections::{BTreeMap, BTreeSet};

/// A task of the unrolled stage.
pub(super) struct UnrolledTask {
    /// JSON pointer to the task in the stage descriptor.
    pub(super) pointer: String,
    /// The task, with the unique names of its copy.
    pub(super) descriptor: TaskDescriptor,
    /// Conditions of its guard, the outermost first.
    pub(super) conditions: Vec<UnrolledCondition>,
}

/// A condition of a guard.
#[derive(Clone)]
pub(super) struct UnrolledCondition {
    /// JSON pointer to the name of the compared region.
    pub(super) pointer: String,
    /// Unique name of that region.
    pub(super) region: String,
    pub(super) comparison: Comparison,
    pub(super) expected: bool,
    /// By output of the task: unique name of the region that passes, with the JSON pointer to its name.
    pub(super) passes: Vec<Option<(String, String)>>,
}

/// The tasks of a stage without loops and choices.
pub(super) struct UnrolledStage {
    pub(super) tasks: Vec<UnrolledTask>,
    regions: Scope,
}

impl UnrolledStage {
    /// Returns the unique name of a region that the stage may output.
    pub(super) fn region<'a>(&'a self, name: &'a str) -> &'a str {
        self.regions.find(name).unwrap_or(name)
    }
}

/// Visible regions: names in the descriptor with their unique names, in the order of the file. Within a loop, a later entry
/// hides the one of the same name that tasks after the loop read.
#[derive(Clone, Default)]
struct Scope(Vec<(String, String)>);

impl Scope {
    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(known, _)| known == name).map(|(_, unique)| unique.as_str())
    }

    fn names(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        self.0.iter().filter(|(name, _)| seen.insert(name)).map(|(name, _)| name.clone()).collect()
    }
}

/// Unrolls the entries of a stage.
///
/// # Errors
/// The first [`DescriptorError`] of a loop or a choice.
pub(super) fn unroll(at: &Diagnostics, stage: &StageDescriptor) -> Result<UnrolledStage, DescriptorError> {
    let task = |(index, entry): (usize, &EntryDescriptor)| match entry {
        EntryDescriptor::Task(task) => Some(UnrolledTask {
            pointer: format!("/tasks/{index}"),
            descriptor: task.clone(),
            conditions: Vec::new(),
        }),
        EntryDescriptor::Loop(_) | EntryDescriptor::Choice(_) => None,
    };
    let plain: Option<Vec<UnrolledTask>> = stage.tasks.iter().enumerate().map(task).collect();
    if let Some(tasks) = plain {
        return Ok(UnrolledStage { tasks, regions: Scope::default() });
    }
    check::check(at, stage)?;
    let mut all = Reads::default();
    stage.tasks.iter().for_each(|entry| all.add(entry));
    stage.outputs.iter().for_each(|output| all.read(&output.region));
    let inputs = stage.inputs.iter().map(|input| (input.name().to_owned(), input.name().to_owned()));
    let mut unroller = Unroller { at, all, seen: BTreeSet::new(), tasks: Vec::new() };
    unroller.block(&stage.tasks, "/tasks", &Scope(inputs.collect()), &[], &[])?;
    Ok(UnrolledStage { tasks: unroller.tasks, regions: exports(&stage.tasks, &[]) })
}

/// Number of reads of each region.
#[derive(Default)]
struct Reads(BTreeMap<String, usize>);

impl Reads {
    fn read(&mut self, region: &str) {
        *self.0.entry(region.to_owned()).or_default() += 1;
    }

    fn add(&mut self, entry: &EntryDescriptor) {
        match entry {
            EntryDescriptor::Task(task) => task.reads.iter().for_each(|region| self.read(region)),
            EntryDescriptor::Loop(repeated) => self.add_loop(repeated),
            EntryDescriptor::Choice(choice) => {
                self.read(&choice.condition.region);
                choice.then.iter().chain(&choice.otherwise).for_each(|entry| self.add(entry));
                for give in &choice.gives {
                    self.read(&give.then);
                    self.read(&give.otherwise);
                }
            }
        }
    }

    fn add_loop(&mut self, repeated: &LoopDescriptor) {
        self.read(&repeated.until.region);
        for carry in &repeated.carries {
            self.read(&carry.first);
            self.read(&carry.next);
        }
        repeated.tasks.iter().for_each(|entry| self.add(entry));
    }

    fn of(&self, region: &str) -> usize {
        self.0.get(region).copied().unwrap_or(0)
    }
}

/// Returns the name of a task or region in an iteration of each loop around it.
fn unique(name: &str, path: &[u32]) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    let path: Vec<String> = path.iter().map(u32::to_string).collect();
    format!("{name} [{}]", path.join(","))
}

fn within(path: &[u32], iteration: u32) -> Vec<u32> {
    path.iter().copied().chain([iteration]).collect()
}

/// Returns the regions of a list of entries that other entries of the list, and those after it, may read.
fn exports(entries: &[EntryDescriptor], path: &[u32]) -> Scope {
    let mut scope = Scope::default();
    for entry in entries {
        match entry {
            EntryDescriptor::Task(task) => {
                scope.0.extend(task.writes.iter().map(|name| (name.clone(), unique(name, path))));
            }
            EntryDescriptor::Loop(repeated) => {
                scope.0.extend(exports(&repeated.tasks, &within(path, repeated.at_most)).0);
            }
            EntryDescriptor::Choice(choice) => {
                let (then, otherwise) = (exports(&choice.then, path), exports(&choice.otherwise, path));
                for give in &choice.gives {
                    let from = then.find(&give.then).or_else(|| otherwise.find(&give.otherwise));
                    scope.0.extend(from.map(|from| (give.region.clone(), from.to_owned())));
                }
            }
        }
    }
    scope
}

/// Converts a condition.
fn comparison(
    at: &Diagnostics,
    pointer: &str,
    written: &ConditionDescriptor,
) -> Result<Comparison, DescriptorError> {
    let real = |number: Option<f64>| number.and_then(|number| Real::try_from(number).ok());
    match (real(written.below), real(written.at_least)) {
        (Some(limit), None) => Ok(Comparison::Below(limit)),
        (None, Some(limit)) => Ok(Comparison::AtLeast(limit)),
        _ => at.fail(pointer, Problem::ConditionKind { region: written.region.clone() }),
    }
}

struct Unroller<'a> {
    at: &'a Diagnostics,
    /// Reads of the whole stage.
    all: Reads,
    /// Locations of the tasks so far. Later copies only name their parameters.
    seen: BTreeSet<String>,
    tasks: Vec<UnrolledTask>,
}

impl Unroller<'_> {
    fn block(
        &mut self,
        entries: &[EntryDescriptor],
        pointer: &str,
        outer: &Scope,
        path: &[u32],
        guards: &[UnrolledCondition],
    ) -> Result<(), DescriptorError> {
        let mut scope = outer.clone();
        scope.0.extend(exports(entries, path).0);
        for (index, entry) in entries.iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            match entry {
                EntryDescriptor::Task(task) => self.task(task, pointer, &scope, path, guards)?,
                EntryDescriptor::Loop(repeated) => self.repeat(repeated, &pointer, &scope, path, guards)?,
                EntryDescriptor::Choice(choice) => self.choose(choice, &pointer, &scope, path, guards)?,
            }
        }
        Ok(())
    }

    fn resolve(&self, scope: &Scope, name: &str, pointer: String) -> Result<String, DescriptorError> {
        match scope.find(name) {
            Some(unique) => Ok(unique.to_owned()),
            None => {
                self.at.fail(pointer, Problem::DanglingRead { region: name.to_owned(), known: scope.names() })
            }
        }
    }

    fn task(
        &mut self,
        task: &TaskDescriptor,
        pointer: String,
        scope: &Scope,
        path: &[u32],
        guards: &[UnrolledCondition],
    ) -> Result<(), DescriptorError> {
        let mut reads = Vec::with_capacity(task.reads.len());
        for (number, name) in task.reads.iter().enumerate() {
            reads.push(self.resolve(scope, name, format!("{pointer}/reads/{number}"))?);
        }
        let is_first = self.seen.insert(pointer.clone());
        let named = |parameter: &ParameterDescriptor| match is_first {
            true => parameter.clone(),
            false => parameter.without_definition(),
        };
        let descriptor = TaskDescriptor {
            task: unique(&task.task, path),
            parameters: task.parameters.iter().map(named).collect(),
            reads,
            writes: task.writes.iter().map(|name| unique(name, path)).collect(),
            ..task.clone()
        };
        let passes = vec![None; descriptor.writes.len()];
        let guard = |guard: &UnrolledCondition| UnrolledCondition { passes: passes.clone(), ..guard.clone() };
        let conditions = guards.iter().map(guard).collect();
        self.tasks.push(UnrolledTask { pointer, descriptor, conditions });
        Ok(())
    }

    fn repeat(
        &mut self,
        repeated: &LoopDescriptor,
        pointer: &str,
        scope: &Scope,
        path: &[u32],
        guards: &[UnrolledCondition],
    ) -> Result<(), DescriptorError> {
        let comparison = comparison(self.at, &format!("{pointer}/until"), &repeated.until)?;
        let until = format!("{pointer}/until/region");
        let mut own = Reads::default();
        own.add_loop(repeated);
        let mut before: Option<Scope> = None;
        for iteration in 1..=repeated.at_most {
            let path = within(path, iteration);
            let regions = exports(&repeated.tasks, &path);
            let value = self.resolve(&regions, &repeated.until.region, until.clone())?;
            let mut inner = scope.clone();
            for (number, carry) in repeated.carries.iter().enumerate() {
                let place = |key: &str| format!("{pointer}/carries/{number}/{key}");
                self.resolve(&regions, &carry.next, place("next"))?;
                let from = match &before {
                    None => self.resolve(scope, &carry.first, place("first"))?,
                    Some(before) => self.resolve(before, &carry.next, place("next"))?,
                };
                inner.0.push((carry.region.clone(), from));
            }
            let mut guarded = guards.to_vec();
            if let Some(before) = &before {
                guarded.push(UnrolledCondition {
                    pointer: until.clone(),
                    region: self.resolve(before, &repeated.until.region, until.clone())?,
                    comparison,
                    expected: false,
                    passes: Vec::new(),
                });
            }
            let first = self.tasks.len();
            self.block(&repeated.tasks, &format!("{pointer}/tasks"), &inner, &path, &guarded)?;
            for ((name, now), (_, last)) in regions.0.iter().zip(before.iter().flat_map(|before| &before.0)) {
                if *now == value || self.all.of(name) > own.of(name) {
                    self.pass(first, now, guards.len(), (last.clone(), until.clone()));
                }
            }
            before = Some(regions);
        }
        Ok(())
    }

    fn choose(
        &mut self,
        choice: &ChoiceDescriptor,
        pointer: &str,
        scope: &Scope,
        path: &[u32],
        guards: &[UnrolledCondition],
    ) -> Result<(), DescriptorError> {
        let comparison = comparison(self.at, &format!("{pointer}/if"), &choice.condition)?;
        let compared = format!("{pointer}/if/region");
        let region = self.resolve(scope, &choice.condition.region, compared.clone())?;
        let first = self.tasks.len();
        for (key, entries, expected) in [("then", &choice.then, true), ("else", &choice.otherwise, false)] {
            let condition = UnrolledCondition {
                pointer: compared.clone(),
                region: region.clone(),
                comparison,
                expected,
                passes: Vec::new(),
            };
            let guarded: Vec<UnrolledCondition> = guards.iter().cloned().chain([condition]).collect();
            self.block(entries, &format!("{pointer}/{key}"), scope, path, &guarded)?;
        }
        let (then, otherwise) = (exports(&choice.then, path), exports(&choice.otherwise, path));
        for (number, give) in choice.gives.iter().enumerate() {
            let place = |key: &str| format!("{pointer}/gives/{number}/{key}");
            let outside = |own: &Scope, name: &str, key: &str| match own.find(name) {
                Some(own) => Ok(own.to_owned()),
                None => self.resolve(scope, name, place(key)),
            };
            let chosen = outside(&then, &give.then, "then")?;
            let other = outside(&otherwise, &give.otherwise, "else")?;
            if then.find(&give.then).is_some() {
                self.pass(first, &chosen, guards.len(), (other, place("else")));
            } else {
                self.pass(first, &other, guards.len(), (chosen, place("then")));
            }
        }
        Ok(())
    }

    /// Lets a region pass as output `name` of one of the tasks from `first` on, if the condition at `depth` is not met.
    fn pass(&mut self, first: usize, name: &str, depth: usize, from: (String, String)) {
        for task in &mut self.tasks[first..] {
            if let Some(output) = task.descriptor.writes.iter().position(|written| written == name) {
                task.conditions[depth].passes[output] = Some(from);
                return;
            }
        }
    }
}
