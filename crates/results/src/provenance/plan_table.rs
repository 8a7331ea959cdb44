//! The plan of an execution, as far as a reader of its records needs it: names, the instances of each run, and which tasks
//! of instances are equal.

use super::bytes::{Cursor, put, put_difference, put_sparse, put_text};
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_planner::PlannedStudy;
use pleach_regions::RegionKey;
use pleach_study::PreparedStudy;
use pleach_workflow::{TaskInput, Value, plain_name};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};

/// Source of a response that is known before an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownSource {
    /// An earlier process has recorded it in the journal.
    Journal,
    /// An earlier round or phase of this process has computed it.
    Earlier,
    /// It follows from the task cache.
    Cache,
}

impl KnownSource {
    const ALL: [Self; 3] = [Self::Journal, Self::Earlier, Self::Cache];
}

/// A stage, with its tasks and their operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StageNames {
    pub(super) name: String,
    /// Name and operation.
    pub(super) tasks: Vec<(String, String)>,
}

/// The plan of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanTable {
    pub(super) study: String,
    pub(super) tiles: Vec<String>,
    /// 0 if the plan has a run of the defaults or the reference, else 1.
    pub(super) first_evaluation: usize,
    /// Number of the last evaluation.
    pub(super) evaluations: usize,
    pub(super) stages: Vec<StageNames>,
    /// Instance of each run, by stage, then tile, then evaluation.
    pub(super) instances: Vec<u32>,
    /// By instance: its stage and the place of its first task in `classes`.
    pub(super) first_tasks: Vec<(u32, usize)>,
    /// Number of the class of each task of each instance. Tasks of one class have equal operations, values and inputs.
    pub(super) classes: Vec<u32>,
    /// Instances with a known response.
    pub(super) known: [BTreeSet<u32>; 3],
    /// Tasks saved by sharing within buckets beyond reuse trees.
    pub(super) shared_in_buckets: u64,
    /// Tasks saved by responses from the task cache.
    pub(super) recalled: u64,
}

impl PlanTable {
    /// Describes a plan. `known` are the instances with a known response.
    #[must_use]
    pub fn new(
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
        plan: &ExecutionPlan,
        known: impl IntoIterator<Item = (InstanceId, KnownSource)>,
        (shared_in_buckets, recalled): (u64, u64),
    ) -> Self {
        let stages = plan.stages.iter().map(|stage| {
            let tasks =
                stage.tasks.iter().map(|task| (task.name.clone(), plain_name(&task.operation).to_owned()));
            let tasks = tasks.collect();
            StageNames { name: stage.name.clone(), tasks }
        });
        let first_evaluation = usize::from(!prepared.defaults_run());
        let evaluations = prepared.design.evaluations.len();
        let tiles = prepared.study.tiles.len();
        let runs = (0..plan.stages.len()).flat_map(|stage| {
            (0..tiles)
                .flat_map(move |tile| (first_evaluation..=evaluations).map(move |run| (stage, tile, run)))
        });
        let instances = runs.map(|(stage, tile, run)| planned.instance(run, tile, stage).0).collect();
        let mut by_source: [BTreeSet<u32>; 3] = Default::default();
        for (instance, source) in known {
            let place = KnownSource::ALL.iter().position(|other| *other == source).unwrap_or_default();
            by_source[place].insert(instance.0);
        }
        let (first_tasks, classes) = classes(plan);
        Self {
            study: prepared.study.name.clone(),
            tiles: prepared.study.tiles.iter().map(|tile| tile.name.clone()).collect(),
            first_evaluation,
            evaluations,
            stages: stages.collect(),
            instances,
            first_tasks,
            classes,
            known: by_source,
            shared_in_buckets,
            recalled,
        }
    }

    /// Returns the runs of a tile: evaluations, with 0 if the plan has it.
    fn runs(&self) -> usize {
        self.evaluations + 1 - self.first_evaluation
    }

    /// Returns the instance of a run, or `None` if the plan does not have it.
    pub(super) fn instance(&self, evaluation: usize, tile: usize, stage: usize) -> Option<u32> {
        let run = evaluation.checked_sub(self.first_evaluation)?;
        let is_there = run < self.runs() && tile < self.tiles.len() && stage < self.stages.len();
        is_there.then(|| self.instances[(stage * self.tiles.len() + tile) * self.runs() + run])
    }

    /// Returns the first evaluation that needs each instance.
    pub(super) fn first_evaluations(&self) -> Vec<u32> {
        let mut first = vec![u32::MAX; self.first_tasks.len()];
        for (place, instance) in self.instances.iter().enumerate() {
            let evaluation = (place % self.runs() + self.first_evaluation) as u32;
            let first = &mut first[*instance as usize];
            *first = (*first).min(evaluation);
        }
        first
    }

    /// Returns the classes of an instance's tasks.
    pub(super) fn classes_of(&self, instance: u32) -> &[u32] {
        let Some(&(stage, first)) = self.first_tasks.get(instance as usize) else { return &[] };
        &self.classes[first..first + self.stages[stage as usize].tasks.len()]
    }

    /// Returns the stage of an instance.
    pub(super) fn stage_of(&self, instance: u32) -> Option<usize> {
        self.first_tasks.get(instance as usize).map(|(stage, _)| *stage as usize)
    }

    /// Returns the source of an instance's response that was known before the execution.
    pub(super) fn known_source(&self, instance: u32) -> Option<KnownSource> {
        let sources = KnownSource::ALL.into_iter().zip(&self.known);
        sources.into_iter().find(|(_, known)| known.contains(&instance)).map(|(source, _)| source)
    }

    /// Returns the table as bytes of a block.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        put_text(&mut to, &self.study);
        put(&mut to, self.tiles.len() as u64);
        self.tiles.iter().for_each(|tile| put_text(&mut to, tile));
        put(&mut to, self.stages.len() as u64);
        for StageNames { name, tasks } in &self.stages {
            put_text(&mut to, name);
            put(&mut to, tasks.len() as u64);
            for (name, operation) in tasks {
                put_text(&mut to, name);
                put_text(&mut to, operation);
            }
        }
        for number in [self.first_evaluation as u64, self.evaluations as u64, self.first_tasks.len() as u64] {
            put(&mut to, number);
        }
        put(&mut to, self.shared_in_buckets);
        put(&mut to, self.recalled);
        // Runs of a stage are mostly the next instance or the same as before.
        let mut next = 0;
        put_sparse(
            &mut to,
            self.instances.iter().map(|instance| {
                let code = coded(*instance, next);
                next = instance + 1;
                code
            }),
        );
        let mut last: HashMap<u32, u32> = HashMap::new();
        let numbers = (0u32..).zip(&self.first_tasks);
        let tasks = numbers
            .flat_map(|(instance, _)| self.classes_of(instance).iter().map(move |class| (instance, *class)));
        // The distance to the last instance with the same class. 0 is a new class.
        put_sparse(
            &mut to,
            tasks.map(|(instance, class)| match last.insert(class, instance) {
                Some(before) => u64::from(instance - before),
                None => 0,
            }),
        );
        for known in &self.known {
            put(&mut to, known.len() as u64);
            let mut before = 0;
            for instance in known {
                put_difference(&mut to, u64::from(*instance), before);
                before = u64::from(*instance);
            }
        }
        to
    }

    /// Reads a table. `None` if the bytes are invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Cursor(bytes);
        let study = from.text()?.to_owned();
        let tiles = (0..from.count()?).map(|_| Some(from.text()?.to_owned())).collect::<Option<Vec<_>>>()?;
        let mut stages = Vec::new();
        for _ in 0..from.count()? {
            let name = from.text()?.to_owned();
            let tasks = from.count()?;
            let tasks = (0..tasks).map(|_| Some((from.text()?.to_owned(), from.text()?.to_owned())));
            let tasks = tasks.collect::<Option<Vec<_>>>()?;
            stages.push(StageNames { name, tasks });
        }
        let (first_evaluation, evaluations) = (from.small()? as usize, from.small()? as usize);
        let instances_count = from.small()? as usize;
        let (shared_in_buckets, recalled) = (from.number()?, from.number()?);
        let runs = (evaluations + 1).checked_sub(first_evaluation)?;
        let places = runs.checked_mul(tiles.len())?.checked_mul(stages.len())?;
        let mut next = 0;
        let mut instances = Vec::new();
        for code in from.sparse(places)? {
            let instance = decoded(code, next)?;
            next = instance.checked_add(1)?;
            instances.push(instance);
        }
        let mut table = Self {
            study,
            tiles,
            first_evaluation,
            evaluations,
            stages,
            instances,
            shared_in_buckets,
            recalled,
            first_tasks: Vec::new(),
            classes: Vec::new(),
            known: Default::default(),
        };
        table.first_tasks = table.find_first_tasks(instances_count)?;
        table.classes = table.decode_classes(&mut from)?;
        for place in 0..table.known.len() {
            let mut before = 0;
            for _ in 0..from.count()? {
                before = from.difference(before)?;
                table.known[place].insert(before.try_into().ok()?);
            }
        }
        from.0.is_empty().then_some(table)
    }

    /// Derives the stage and the first task of each instance. `None` if an instance belongs to no run.
    fn find_first_tasks(&self, instances: usize) -> Option<Vec<(u32, usize)>> {
        if instances > self.instances.len() {
            return None;
        }
        let mut stages = vec![u32::MAX; instances];
        for (place, instance) in self.instances.iter().enumerate() {
            let stage = place / (self.runs() * self.tiles.len());
            *stages.get_mut(*instance as usize)? = stage as u32;
        }
        let mut next = 0;
        let first = |stage: u32| {
            let first = next;
            next += self.stages.get(stage as usize)?.tasks.len();
            Some((stage, first))
        };
        stages.into_iter().map(first).collect()
    }

    fn decode_classes(&self, from: &mut Cursor<'_>) -> Option<Vec<u32>> {
        let tasks_of = |stage: u32| self.stages[stage as usize].tasks.len();
        let all = self.first_tasks.last().map_or(0, |(stage, first)| first + tasks_of(*stage));
        let distances = from.sparse(all)?;
        let (mut classes, mut next) = (Vec::with_capacity(all), 0);
        for (instance, &(stage, first)) in self.first_tasks.iter().enumerate() {
            for task in 0..tasks_of(stage) {
                let distance = usize::try_from(distances[first + task]).ok()?;
                if distance == 0 {
                    classes.push(next);
                    next += 1;
                    continue;
                }
                let &(other, before) = self.first_tasks.get(instance.checked_sub(distance)?)?;
                if other != stage {
                    return None;
                }
                classes.push(classes[before + task]);
            }
        }
        Some(classes)
    }
}

/// Codes an instance as 0 for the expected one, 1 for the one before, and otherwise by its distance.
fn coded(instance: u32, next: u32) -> u64 {
    let difference = i64::from(instance) - i64::from(next);
    match difference {
        0 => 0,
        -1 => 1,
        difference => (((difference << 1) ^ (difference >> 63)).cast_unsigned()) + 2,
    }
}

fn decoded(code: u64, next: u32) -> Option<u32> {
    let difference = match code {
        0 => 0,
        1 => -1,
        code => ((code - 2) >> 1).cast_signed() ^ -(((code - 2) & 1).cast_signed()),
    };
    i64::from(next).checked_add(difference)?.try_into().ok()
}

/// Identity of a task by its values and the provenance of its inputs, as a graph bucket compares tasks.
#[derive(Hash)]
struct TaskIdentity<'a> {
    stage: usize,
    task: usize,
    arguments: Vec<&'a Value>,
    /// Classes of the read tasks, and keys of the read stage inputs.
    tasks: Vec<(u32, usize)>,
    inputs: Vec<RegionKey>,
}

/// Numbers the classes of all tasks. A hash of 64 bits identifies a task: 10^7 tasks collide with a probability below 10^-5,
/// and only an explanation would be wrong then.
fn classes(plan: &ExecutionPlan) -> (Vec<(u32, usize)>, Vec<u32>) {
    let tasks: usize = plan.instances.iter().map(|instance| plan.stages[instance.stage].tasks.len()).sum();
    let (mut first_tasks, mut classes) =
        (Vec::with_capacity(plan.instances.len()), Vec::with_capacity(tasks));
    let state = RandomState::new();
    let mut known: HashMap<u64, u32> = HashMap::new();
    for instance in plan.instances.iter() {
        let first = classes.len();
        first_tasks.push((instance.stage as u32, first));
        let parameters: Vec<Value> = instance.parameters().collect();
        for (number, task) in plan.stages[instance.stage].tasks.iter().enumerate() {
            let (mut tasks, mut inputs) = (Vec::new(), Vec::new());
            for read in &task.reads {
                match *read {
                    TaskInput::StageInput(input) => inputs.push(instance.inputs[input]),
                    TaskInput::Task { task, output } => tasks.push((classes[first + task], output)),
                }
            }
            let arguments = task.arguments.iter().map(|argument| &parameters[*argument]).collect();
            let identity = TaskIdentity { stage: instance.stage, task: number, arguments, tasks, inputs };
            let next = known.len() as u32;
            classes.push(*known.entry(state.hash_one(&identity)).or_insert(next));
        }
    }
    (first_tasks, classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table with 2 stages of 2 and 3 tasks. `seeds` choose instances and classes.
    fn table(tiles: usize, evaluations: usize, first_evaluation: usize, seeds: &[u32]) -> PlanTable {
        let stage = |name: &str, tasks: usize| StageNames {
            name: name.to_owned(),
            tasks: (0..tasks).map(|task| (format!("t{task}"), format!("operation-{task}"))).collect(),
        };
        let stages = vec![stage("a", 2), stage("b", 3)];
        let mut table = PlanTable {
            study: "s".to_owned(),
            tiles: (0..tiles).map(|tile| format!("tile-{tile}")).collect(),
            first_evaluation,
            evaluations,
            stages,
            instances: Vec::new(),
            first_tasks: Vec::new(),
            classes: Vec::new(),
            known: [BTreeSet::from([0]), BTreeSet::new(), BTreeSet::new()],
            shared_in_buckets: 7,
            recalled: 9,
        };
        let mut seeds = seeds.iter().cycle();
        let mut next = 0;
        for _ in 0..2 {
            let first = next;
            for _ in 0..tiles * table.runs() {
                let seed = seeds.next().unwrap();
                if next == first || seed.is_multiple_of(3) {
                    table.instances.push(next);
                    next += 1;
                } else {
                    table.instances.push(first + seed % (next - first));
                }
            }
        }
        table.first_tasks = table.find_first_tasks(next as usize).unwrap();
        // Classes are numbered by first use, and are of one task.
        let mut by_key: HashMap<(u32, usize, u32), u32> = HashMap::new();
        for (stage, _) in table.first_tasks.clone() {
            for task in 0..table.stages[stage as usize].tasks.len() {
                let next = by_key.len() as u32;
                table.classes.push(*by_key.entry((stage, task, seeds.next().unwrap() % 4)).or_insert(next));
            }
        }
        table
    }

    proptest! {
        #[test]
        fn table_is_read_back(
            tiles in 1usize..3, evaluations in 1usize..20, first in 0usize..2,
            seeds in prop::collection::vec(0u32..100, 1..40),
        ) {
            let table = table(tiles, evaluations, first, &seeds);
            let bytes = table.encode();
            prop_assert_eq!(PlanTable::decode(&bytes), Some(table.clone()));
            for length in 0..bytes.len() {
                prop_assert_eq!(PlanTable::decode(&bytes[..length]), None);
            }
        }

        #[test]
        fn noise_is_read_or_refused(
            seeds in prop::collection::vec(0u32..100, 1..10), place: prop::sample::Index, byte: u8,
        ) {
            let mut bytes = table(1, 5, 0, &seeds).encode();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let _ = PlanTable::decode(&bytes);
        }
    }
}
