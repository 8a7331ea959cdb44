//! Stage-level merging: the compact graph (Barreiros thesis, Algorithm 1, O(kn) for n runs of k stages).
//!
//! The published algorithm walks a replica of the workflow and the compact graph simultaneously. `find` searches
//! the children of a compact vertex for one of the same stage and parameters, and `PendingVer` holds the vertices
//! with several dependencies until all of them have been walked, so that D, reached through B and through C, is
//! created once and joined to both.
//!
//! Here a stage instance is keyed by *(its stage, the identities of its inputs, its own parameter values)* and
//! visited in topological order, so every input already has its compact id. This replaces `find`: one hash lookup
//! over all vertices finds the child of the same stage and parameters, because the key includes the parents. It
//! also replaces `PendingVer`: a stage with several dependencies is looked up once all of them are known, so it is
//! created once and never pending. By induction over the stages, two instances get one id exactly if their whole
//! histories are equal.
//!
//! Tasks are excluded. Instances that differ in one task's parameters are different instances.
//! [`ReuseTree`](crate::ReuseTree) shares the tasks before it.

use serde::{Deserialize, Serialize};

use crate::graph::interner::Interner;
use crate::graph::runs::{RunId, Runs, Source, StageIndex};

/// A stage instance of the compact graph. The inputs of an instance have smaller ids than the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceId(pub u32);

/// Identity of a stage instance's inputs: two instances *of one stage* have equal ids exactly if all their inputs
/// are equal. Only instances of equal inputs can share tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InputsId(pub u32);

/// Whether equal stage instances are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merging {
    /// Every run is replicated: level `none` of reuse.
    None,
    /// Equal stage, parameters and inputs make one instance: level `stage` of reuse.
    Merged,
}

/// One input of a stage instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// The output of another instance.
    Instance(InstanceId),
    /// An external input, by the identity given in [`Runs`].
    External(u32),
}

/// A vertex of the compact graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageInstance {
    /// Stage of the instance.
    pub stage: StageIndex,
    /// First run that the instance serves. The tile and evaluation of this run give its external inputs and
    /// parameter values.
    pub first_run: RunId,
    /// Identity of its inputs.
    pub inputs: InputsId,
    /// Whether the instance serves reference runs only. It is executed, but plan statistics exclude it.
    pub reference_only: bool,
}

/// The stage instances of a study, each distinct computation once, or once per run with [`Merging::None`].
#[derive(Debug, Clone)]
pub struct CompactGraph {
    instances: Vec<StageInstance>,
    inputs: Vec<Input>,
    /// Instance `i` reads `inputs[input_starts[i]..input_starts[i + 1]]`.
    input_starts: Vec<u32>,
    consumers: Vec<u32>,
    /// `instance_of[run * stages + stage]`.
    instance_of: Vec<InstanceId>,
    stages: usize,
}

impl CompactGraph {
    /// Merges the stage instances of all runs.
    pub fn build(runs: &Runs, merging: Merging) -> Self {
        Builder::new(runs, merging).build()
    }

    /// Returns all instances by id, in topological order.
    pub fn instances(&self) -> &[StageInstance] {
        &self.instances
    }

    /// Returns an instance.
    pub fn instance(&self, id: InstanceId) -> &StageInstance {
        &self.instances[id.0 as usize]
    }

    /// Returns the instances of a stage, in ascending order.
    pub fn of_stage(&self, stage: StageIndex) -> impl Iterator<Item = InstanceId> + '_ {
        let all = self.instances.iter().zip(0..);
        all.filter(move |(instance, _)| instance.stage == stage).map(|(_, id)| InstanceId(id))
    }

    /// Returns the inputs of an instance, in the order of its stage's inputs.
    pub fn inputs(&self, id: InstanceId) -> &[Input] {
        let id = id.0 as usize;
        &self.inputs[self.input_starts[id] as usize..self.input_starts[id + 1] as usize]
    }

    /// Returns the parent instances. One that is read through two inputs appears twice.
    pub fn parents(&self, id: InstanceId) -> impl Iterator<Item = InstanceId> + '_ {
        self.inputs(id).iter().filter_map(|input| match *input {
            Input::Instance(parent) => Some(parent),
            Input::External(_) => None,
        })
    }

    /// Returns the number of distinct instances that read this one's output. The output can be dropped once all of
    /// them are done.
    pub fn consumers(&self, id: InstanceId) -> u32 {
        self.consumers[id.0 as usize]
    }

    /// Returns the instance that computes a stage of a run.
    pub fn instance_of(&self, run: RunId, stage: StageIndex) -> InstanceId {
        self.instance_of[run.0 as usize * self.stages + stage.0 as usize]
    }
}

struct Builder<'a> {
    runs: &'a Runs,
    merging: Merging,
    graph: CompactGraph,
    /// Names lists of inputs one element at a time: (name of the list so far, next input) → name.
    lists: Interner<(u32, u32)>,
    /// Merged instances: (stage, inputs, parameter key) → instance.
    merged: Interner<(StageIndex, InputsId, u32)>,
    /// Inputs of the instance in work.
    resolved: Vec<Input>,
}

impl<'a> Builder<'a> {
    fn new(runs: &'a Runs, merging: Merging) -> Self {
        let stages = runs.shape().stages();
        let graph = CompactGraph {
            instances: Vec::new(),
            inputs: Vec::new(),
            input_starts: vec![0],
            consumers: Vec::new(),
            instance_of: Vec::new(),
            stages,
        };
        Self {
            runs,
            merging,
            graph,
            lists: Interner::default(),
            merged: Interner::default(),
            resolved: Vec::new(),
        }
    }

    fn build(mut self) -> CompactGraph {
        // No id below truncates: `Runs::new` bounds runs × (1 + stages + inputs) by 32 bits.
        let (runs, stages) = (self.runs.len() as u32, self.graph.stages as u32);
        let none = InstanceId(u32::MAX);
        self.graph.instance_of = vec![none; self.runs.len() * self.graph.stages];
        if self.runs.crosses_tiles() {
            // Stage by stage: a stage reads earlier ones of any tile.
            for stage in (0..stages).map(StageIndex) {
                (0..runs).for_each(|run| self.add(RunId(run), stage));
            }
        } else {
            for run in (0..runs).map(RunId) {
                (0..stages).for_each(|stage| self.add(run, StageIndex(stage)));
            }
        }
        assert!(!self.graph.instance_of.contains(&none), "a run lacks an instance");
        let (found, instances) = (self.graph.instance_of.len(), self.graph.instances.len());
        let (runs, lists) = (self.runs.len(), self.graph.input_starts.len() - 1);
        assert!(found == runs * self.graph.stages, "{found} stage instances of {runs} runs are found");
        assert!(instances <= found, "{instances} instances are left after merging {found}");
        assert!(instances == lists, "{instances} instances have {lists} lists of inputs");
        self.graph
    }

    /// Finds or creates the instance of a stage of a run.
    fn add(&mut self, run: RunId, stage: StageIndex) {
        let id = match self.runs.served_by(run, stage) {
            Some(other) => self.graph.instance_of(other, stage),
            None => {
                let mut inputs = std::mem::take(&mut self.resolved);
                inputs.clear();
                for source in self.runs.shape().sources(stage) {
                    inputs.push(self.resolve(run, *source));
                }
                let id = self.find_or_insert(run, stage, &inputs);
                self.resolved = inputs;
                id
            }
        };
        self.graph.instance_of[run.0 as usize * self.graph.stages + stage.0 as usize] = id;
        // A single run of the study's own evaluations makes the instance part of the statistics.
        self.graph.instances[id.0 as usize].reference_only &= self.runs.is_reference(run);
    }

    /// Resolves a source. The runs of a tile start with the reference run, and a run's stages are in topological
    /// order, so the instance of a source already exists.
    fn resolve(&self, run: RunId, source: Source) -> Input {
        let input = match source {
            Source::StageAt(stage, slot) => {
                return self.resolve(self.runs.neighbor(run, slot), Source::Stage(stage));
            }
            Source::ReferenceAt(stage, slot) => {
                return self.resolve(self.runs.neighbor(run, slot), Source::Reference(stage));
            }
            Source::ExternalAt(column, slot) => {
                return self.resolve(self.runs.neighbor(run, slot), Source::External(column));
            }
            Source::Stage(stage) => Input::Instance(self.graph.instance_of(run, stage)),
            Source::Reference(stage) => {
                Input::Instance(self.graph.instance_of(self.runs.reference_of(run), stage))
            }
            Source::External(column) => Input::External(self.runs.external(run, column)),
        };
        debug_assert!(
            input != Input::Instance(InstanceId(u32::MAX)),
            "{run:?} reads {source:?}, which is not built"
        );
        input
    }

    fn find_or_insert(&mut self, run: RunId, stage: StageIndex, inputs: &[Input]) -> InstanceId {
        let inputs_id = self.identify(inputs);
        let next = self.graph.instances.len() as u32;
        let id = match self.merging {
            Merging::None => next,
            Merging::Merged => self.merged.intern((stage, inputs_id, self.runs.key(run, stage))),
        };
        assert!(id <= next, "instance {id} is found before {next}, which is the next one");
        if id == next {
            let instance = StageInstance { stage, first_run: run, inputs: inputs_id, reference_only: true };
            self.insert(instance, inputs);
        }
        InstanceId(id)
    }

    /// Names the inputs of an instance. All instances of a stage have equal numbers and kinds of inputs, so
    /// their bare ids identify them, and a single input needs no look-up. Names are compared only within a
    /// stage.
    fn identify(&mut self, inputs: &[Input]) -> InputsId {
        let ids = inputs.iter().map(|input| match *input {
            Input::Instance(InstanceId(id)) | Input::External(id) => id,
        });
        InputsId(ids.reduce(|list, id| self.lists.intern((list, id))).unwrap_or(0))
    }

    fn insert(&mut self, instance: StageInstance, inputs: &[Input]) {
        let id = InstanceId(self.graph.instances.len() as u32);
        self.graph.instances.push(instance);
        self.graph.consumers.push(0);
        // A consumer releases a parent once, when it is done, even if it reads the parent through two inputs.
        for (position, input) in inputs.iter().enumerate() {
            if let Input::Instance(parent) = input
                && !inputs[..position].contains(input)
            {
                assert!(*parent < id, "{id:?} reads {parent:?}, which does not come before it");
                self.graph.consumers[parent.0 as usize] += 1;
            }
        }
        self.graph.inputs.extend_from_slice(inputs);
        self.graph.input_starts.push(self.graph.inputs.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::runs::{ExternalIndex, WorkflowShape};

    const A: StageIndex = StageIndex(0);
    const B: StageIndex = StageIndex(1);
    const C: StageIndex = StageIndex(2);
    const D: StageIndex = StageIndex(3);

    /// Workflow of thesis Fig. 3.2: A feeds B and C, and D needs both. Three parameter sets on one image.
    fn figure_3_2() -> Runs {
        let stages = vec![
            vec![Source::External(ExternalIndex(0))],
            vec![Source::Stage(A)],
            vec![Source::Stage(A)],
            vec![Source::Stage(B), Source::Stage(C)],
        ];
        let shape = WorkflowShape::new(stages, 1).unwrap();
        let keys = vec![0, 0, 0, 0, /* set 2 */ 0, 0, 1, 1, /* set 3 */ 0, 0, 1, 2];
        Runs::new(shape, 3, 1, keys, vec![0], false).unwrap()
    }

    #[test]
    fn figure_3_2_has_12_instances_of_which_7_remain() {
        let runs = figure_3_2();
        assert_eq!(CompactGraph::build(&runs, Merging::None).instances().len(), 12);
        let graph = CompactGraph::build(&runs, Merging::Merged);
        assert_eq!(graph.instances().len(), 7);

        let of = |set: u32, stage| graph.instance_of(RunId(set - 1), stage);
        assert!((2..=3).all(|set| of(set, A) == of(1, A) && of(set, B) == of(1, B)));
        assert_eq!(of(3, C), of(2, C));
        assert_ne!(of(2, C), of(1, C));
        assert_ne!(of(3, D), of(2, D));
        // A feeds B and two Cs, B feeds three Ds, set 2's C feeds two of them.
        assert_eq!(
            [of(1, A), of(1, B), of(1, C), of(2, C), of(3, D)].map(|id| graph.consumers(id)),
            [3, 3, 1, 2, 0]
        );
    }

    #[test]
    fn stages_with_several_dependencies_join_once() {
        let graph = CompactGraph::build(&figure_3_2(), Merging::Merged);
        let joined: Vec<_> = graph.of_stage(D).collect();
        assert_eq!(joined.len(), 3);
        for d in joined {
            let parents: Vec<_> = graph.parents(d).map(|id| graph.instance(id).stage).collect();
            assert_eq!(parents, [B, C]);
        }
    }

    /// Segmentation and a comparison with the reference run's mask. Evaluations: the reference, a different one,
    /// and the reference's parameters again. Two tiles.
    fn with_reference(merging: Merging) -> (Runs, CompactGraph) {
        let stages =
            vec![vec![Source::External(ExternalIndex(0))], vec![Source::Stage(A), Source::Reference(A)]];
        let shape = WorkflowShape::new(stages, 1).unwrap();
        let runs = Runs::new(shape, 3, 2, vec![7, 0, 8, 0, 7, 0], vec![40, 41], true).unwrap();
        let graph = CompactGraph::build(&runs, merging);
        (runs, graph)
    }

    #[test]
    fn comparisons_read_the_reference_run_of_their_tile() {
        for merging in [Merging::None, Merging::Merged] {
            let (runs, graph) = with_reference(merging);
            for tile in 0..2 {
                let reference = graph.instance_of(runs.run(0, tile), A);
                for evaluation in 0..3 {
                    let run = runs.run(evaluation, tile);
                    let comparison = graph.instance_of(run, B);
                    let parents: Vec<_> = graph.parents(comparison).collect();
                    assert_eq!(parents, [graph.instance_of(run, A), reference]);
                }
            }
        }
    }

    #[test]
    fn only_what_serves_no_evaluation_is_reference_only() {
        let (runs, graph) = with_reference(Merging::None);
        let flagged = graph.instances().iter().filter(|instance| instance.reference_only);
        assert!(flagged.clone().all(|instance| runs.is_reference(instance.first_run)));
        assert_eq!(flagged.count(), 4);
        // Merged, evaluation 2 has the reference's parameters and uses the same instances.
        let (_, graph) = with_reference(Merging::Merged);
        assert_eq!(graph.instances().len(), 8);
        assert!(graph.instances().iter().all(|instance| !instance.reference_only));
    }

    /// A on each of three tiles, B on each with its left neighbor (itself at the border), C once for all tiles, and D on each
    /// tile with the result of C. Tiles 0 and 1 are one specimen, tile 2 is another.
    fn across_tiles(merging: Merging) -> (Runs, CompactGraph) {
        let slot = crate::graph::runs::SlotIndex;
        let stages = vec![
            vec![Source::External(ExternalIndex(0))],
            vec![Source::StageAt(A, slot(0)), Source::Stage(A)],
            vec![Source::StageAt(A, slot(1)), Source::StageAt(A, slot(2))],
            vec![Source::Stage(B), Source::Stage(C), Source::ExternalAt(ExternalIndex(0), slot(0))],
        ];
        let neighbors = crate::graph::runs::Neighbors {
            tiles: vec![0, 0, 1, 0, 0, 1, 2, 2, 2],
            slots: 3,
            first_of_specimen: vec![0, 0, 2],
            once: vec![false, false, true, false],
        };
        let shape = WorkflowShape::new(stages, 1).unwrap();
        let keys = vec![0, 0, 0, 0, 0, 0, 1, 0];
        let runs = Runs::with_neighbors(shape, (2, 3), keys, vec![50, 51, 52], false, neighbors).unwrap();
        let graph = CompactGraph::build(&runs, merging);
        (runs, graph)
    }

    #[test]
    fn stages_read_regions_of_other_tiles() {
        for (merging, counts) in [(Merging::Merged, [3, 3, 4, 6]), (Merging::None, [6, 6, 4, 6])] {
            let (runs, graph) = across_tiles(merging);
            let found = [A, B, C, D].map(|stage| graph.of_stage(stage).count());
            assert_eq!(found, counts, "{merging:?}");
            let of = |evaluation, tile, stage| graph.instance_of(runs.run(evaluation, tile), stage);
            let parents = |id| graph.parents(id).collect::<Vec<_>>();
            for evaluation in 0..2 {
                assert_eq!(parents(of(evaluation, 1, B)), [of(evaluation, 0, A), of(evaluation, 1, A)]);
                assert_eq!(of(evaluation, 0, C), of(evaluation, 1, C));
                assert_eq!(parents(of(evaluation, 1, C)), [of(evaluation, 0, A), of(evaluation, 1, A)]);
                assert_ne!(of(evaluation, 2, C), of(evaluation, 0, C));
                let inputs = graph.inputs(of(evaluation, 1, D));
                assert_eq!(inputs[1], Input::Instance(of(evaluation, 0, C)));
                assert_eq!(inputs[2], Input::External(50));
            }
        }
    }

    #[test]
    fn relations_between_tiles_are_checked() {
        let slot = crate::graph::runs::SlotIndex;
        let shape =
            || WorkflowShape::new(vec![vec![Source::ExternalAt(ExternalIndex(0), slot(0))]], 1).unwrap();
        let runs = |neighbors| Runs::with_neighbors(shape(), (1, 2), vec![0], vec![0, 1], false, neighbors);
        let table =
            |tiles: Vec<u32>, slots| crate::graph::runs::Neighbors { tiles, slots, ..Default::default() };
        assert!(runs(table(vec![1, 0], 1)).is_ok());
        for bad in [table(Vec::new(), 0), table(vec![1], 1), table(vec![1, 2], 1)] {
            let error = runs(bad).unwrap_err().to_string();
            assert_eq!(error, "read neighbors: the table of 2 tiles and 1 slots does not fit the study");
        }
        for first_of_specimen in [vec![0], vec![1, 1], vec![0, 5]] {
            let once = vec![true];
            assert!(
                runs(crate::graph::runs::Neighbors { first_of_specimen, once, ..table(vec![0, 0], 1) })
                    .is_err()
            );
        }
    }

    #[test]
    fn an_instance_that_reads_another_twice_is_one_consumer() {
        let (runs, graph) = with_reference(Merging::Merged);
        // The reference mask is read by its own comparison (through both inputs) and by evaluation 1's.
        assert_eq!(graph.consumers(graph.instance_of(runs.run(0, 0), A)), 2);
    }
}
