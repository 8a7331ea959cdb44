//! Stage instances of a plan in tables: a study has millions of them, and each would otherwise take five allocations.

use super::OutputPlan;
use crate::InstanceId;
use pleach_regions::RegionKey;
use pleach_workflow::Value;
use std::sync::Arc;

/// One stage instance, by itself.
#[derive(Clone, Debug)]
pub struct InstancePlan {
    /// Index into [`ExecutionPlan::stages`](super::ExecutionPlan::stages).
    pub stage: usize,
    /// Values of the stage's parameters, in the order of [`Stage::parameters`](pleach_workflow::Stage::parameters).
    pub parameters: Vec<Value>,
    /// Keys of the stage's inputs, in its order.
    pub inputs: Vec<RegionKey>,
    /// The stage's outputs, in its order.
    pub outputs: Vec<OutputPlan>,
    /// Instances whose outputs this one reads, each once.
    pub parents: Vec<InstanceId>,
}

/// One stage instance in the tables of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlannedInstance<'a> {
    /// As [`InstancePlan::stage`].
    pub stage: usize,
    /// As [`InstancePlan::inputs`].
    pub inputs: &'a [RegionKey],
    /// As [`InstancePlan::outputs`].
    pub outputs: &'a [OutputPlan],
    /// As [`InstancePlan::parents`].
    pub parents: &'a [InstanceId],
    /// Parameter set of the instance.
    set: &'a [Value],
    /// Columns of the set that the stage consumes. `None` for all.
    columns: Option<&'a [usize]>,
}

impl<'a> PlannedInstance<'a> {
    /// Returns the values of the stage's parameters, in the order of [`InstancePlan::parameters`].
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = Value> + use<'a> {
        let (set, columns) = (self.set, self.columns);
        let count = columns.map_or(set.len(), <[usize]>::len);
        (0..count).map(move |place| set[columns.map_or(place, |columns| columns[place])])
    }

    /// Returns the regions that must stay until the instance is final: its inputs and its stored outputs. Each occurs
    /// once, even if a stage reads it through two inputs.
    pub(crate) fn used(&self) -> Vec<RegionKey> {
        let stored = self.outputs.iter().filter(|output| output.stored).map(|output| output.key);
        let mut keys: Vec<RegionKey> = self.inputs.iter().copied().chain(stored).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn to_owned(self) -> InstancePlan {
        InstancePlan {
            stage: self.stage,
            parameters: self.parameters().collect(),
            inputs: self.inputs.to_vec(),
            outputs: self.outputs.to_vec(),
            parents: self.parents.to_vec(),
        }
    }
}

/// Stage instances of a plan, by id.
#[derive(Clone, Debug, Default)]
pub struct InstancePlans {
    rows: Vec<Row>,
    inputs: Vec<RegionKey>,
    outputs: Vec<OutputPlan>,
    parents: Vec<InstanceId>,
    sets: Arc<Vec<Vec<Value>>>,
    /// Columns of the sets that each stage consumes. `None` for plans whose instances have sets of their own.
    columns: Option<Vec<Vec<usize>>>,
}

/// Stage and parameter set of an instance, and the ends of its parts of the tables.
#[derive(Clone, Copy, Debug)]
struct Row {
    stage: u32,
    set: u32,
    inputs: u32,
    outputs: u32,
    parents: u32,
}

impl InstancePlans {
    /// Creates empty tables for instances of these parameter sets. `columns` are those of the sets that each stage consumes.
    #[must_use]
    pub fn of_sets(sets: Arc<Vec<Vec<Value>>>, columns: Vec<Vec<usize>>) -> Self {
        Self { sets, columns: Some(columns), ..Self::default() }
    }

    /// Adds an instance of a parameter set, by its number.
    ///
    /// # Panics
    /// If a table has 2³² entries, or the set does not exist.
    pub fn push_row(
        &mut self,
        (stage, set): (usize, usize),
        inputs: &[RegionKey],
        outputs: &[OutputPlan],
        parents: &[InstanceId],
    ) {
        assert!(set < self.sets.len(), "an instance has parameter set {set} of {}", self.sets.len());
        self.inputs.extend_from_slice(inputs);
        self.outputs.extend_from_slice(outputs);
        self.parents.extend_from_slice(parents);
        let number = |number: usize| u32::try_from(number).expect("fewer than 2^32 entries");
        self.rows.push(Row {
            stage: number(stage),
            set: number(set),
            inputs: number(self.inputs.len()),
            outputs: number(self.outputs.len()),
            parents: number(self.parents.len()),
        });
    }

    /// Adds an instance with its own parameters.
    ///
    /// # Panics
    /// As [`push_row`](Self::push_row), and if the instances of the plan refer to shared parameter sets.
    pub fn push(&mut self, instance: InstancePlan) {
        assert!(self.columns.is_none(), "the instances of this plan share parameter sets");
        let InstancePlan { stage, parameters, inputs, outputs, parents } = instance;
        Arc::make_mut(&mut self.sets).push(parameters);
        self.push_row((stage, self.sets.len() - 1), &inputs, &outputs, &parents);
    }

    /// Gives memory back that the tables have in reserve.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.inputs.shrink_to_fit();
        self.outputs.shrink_to_fit();
        self.parents.shrink_to_fit();
    }

    /// Counts the instances.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there is no instance.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns an instance.
    ///
    /// # Panics
    /// If it does not exist.
    #[must_use]
    pub fn at(&self, id: InstanceId) -> PlannedInstance<'_> {
        let number = id.index();
        let row = self.rows[number];
        let before = number.checked_sub(1).map_or((0, 0, 0), |before| {
            let Row { inputs, outputs, parents, .. } = self.rows[before];
            (inputs as usize, outputs as usize, parents as usize)
        });
        PlannedInstance {
            stage: row.stage as usize,
            inputs: &self.inputs[before.0..row.inputs as usize],
            outputs: &self.outputs[before.1..row.outputs as usize],
            parents: &self.parents[before.2..row.parents as usize],
            set: &self.sets[row.set as usize],
            columns: self.columns.as_ref().map(|columns| columns[row.stage as usize].as_slice()),
        }
    }

    /// As [`at`](Self::at). `None` if a message names an unknown instance.
    #[must_use]
    pub fn get(&self, id: InstanceId) -> Option<PlannedInstance<'_>> {
        (id.index() < self.len()).then(|| self.at(id))
    }

    /// Returns all instances, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = PlannedInstance<'_>> + ExactSizeIterator {
        (0..self.rows.len()).map(|number| self.at(InstanceId(number as u32)))
    }

    /// Returns all instances with their ids, in order.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (InstanceId, PlannedInstance<'_>)> {
        (0..self.rows.len()).map(|number| InstanceId(number as u32)).map(|id| (id, self.at(id)))
    }

    /// Changes the outputs of all instances, in order.
    pub fn change_outputs(&mut self, change: impl FnMut(&mut OutputPlan)) {
        self.outputs.iter_mut().for_each(change);
    }

    /// Changes the instances one by one. For tests: it copies all of them twice.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<InstancePlan>)) {
        let mut all: Vec<InstancePlan> = self.iter().map(PlannedInstance::to_owned).collect();
        change(&mut all);
        *self = all.into_iter().collect();
    }
}

impl FromIterator<InstancePlan> for InstancePlans {
    fn from_iter<I: IntoIterator<Item = InstancePlan>>(instances: I) -> Self {
        let mut tables = Self::default();
        instances.into_iter().for_each(|instance| tables.push(instance));
        tables
    }
}
