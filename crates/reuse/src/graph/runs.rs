//! A study in integers: the stages of a workflow, and its runs (evaluations × tiles).
//!
//! The constructors check the assumptions of later steps: stages are in topological order, table sizes match,
//! and ids fit in 32 bits. Names and values of parameters are not needed: two runs have the same key for a
//! stage if the parameters *that stage consumes* have the same values.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A stage of the workflow, by position. Stages are in topological order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageIndex(pub u32);

/// A column of the table of external inputs (the tile itself, a reference mask from a file, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExternalIndex(pub u32);

/// One evaluation on one tile. Runs are numbered tile by tile, the evaluations of a tile consecutively.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub u32);

/// Origin of one input of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// An earlier stage of the same run.
    Stage(StageIndex),
    /// An earlier stage of the reference run (evaluation 0) on the same tile: an input of a comparison.
    Reference(StageIndex),
    /// An input that exists before the study and depends on the tile only.
    External(ExternalIndex),
    /// As [`Stage`](Self::Stage), on the tile that a slot of [`Neighbors`] names.
    StageAt(StageIndex, SlotIndex),
    /// As [`Reference`](Self::Reference), on the tile that a slot names.
    ReferenceAt(StageIndex, SlotIndex),
    /// As [`External`](Self::External), of the tile that a slot names.
    ExternalAt(ExternalIndex, SlotIndex),
}

impl Source {
    fn slot(self) -> Option<SlotIndex> {
        match self {
            Self::Stage(_) | Self::Reference(_) | Self::External(_) => None,
            Self::StageAt(_, slot) | Self::ReferenceAt(_, slot) | Self::ExternalAt(_, slot) => Some(slot),
        }
    }
}

/// A column of the table of neighbors: a relation between tiles, such as "left of".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotIndex(pub u32);

/// Relations between the tiles of a study. Empty if stages read only regions of their own tile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// `tiles[tile * slots + slot]` is the tile that the slot names for a tile.
    pub tiles: Vec<u32>,
    /// Number of slots.
    pub slots: usize,
    /// For each tile, the first tile of its specimen: itself or an earlier one. Empty if no stage runs once a specimen.
    pub first_of_specimen: Vec<u32>,
    /// For each stage, whether it runs once a specimen: its inputs are equal on all tiles of the specimen. Empty if none
    /// does.
    pub once: Vec<bool>,
}

/// Stages of a workflow with their inputs: a directed acyclic graph in topological order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowShape {
    stages: Vec<Vec<Source>>,
    externals: usize,
}

/// Error of a workflow's stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// A stage reads itself or a later one.
    #[error("order stages: stage {stage} reads stage {reads}, which does not come before it")]
    NotTopological {
        /// The reading stage.
        stage: usize,
        /// The stage it reads.
        reads: u32,
    },
    /// A stage reads a column of external inputs that does not exist.
    #[error("resolve inputs: stage {stage} reads external input {reads} of {externals}")]
    UnknownExternal {
        /// The reading stage.
        stage: usize,
        /// The column it names.
        reads: u32,
        /// Number of columns.
        externals: usize,
    },
}

impl WorkflowShape {
    /// Creates a shape. `stages[s]` lists the inputs of stage `s` in order, and `externals` is the number of
    /// external inputs per tile.
    ///
    /// # Errors
    /// If a stage reads a stage that does not precede it, or an external input beyond `externals`.
    pub fn new(stages: Vec<Vec<Source>>, externals: usize) -> Result<Self, ShapeError> {
        for (stage, sources) in stages.iter().enumerate() {
            for source in sources {
                match *source {
                    Source::Stage(reads)
                    | Source::Reference(reads)
                    | Source::StageAt(reads, _)
                    | Source::ReferenceAt(reads, _)
                        if reads.0 as usize >= stage =>
                    {
                        return Err(ShapeError::NotTopological { stage, reads: reads.0 });
                    }
                    Source::External(reads) | Source::ExternalAt(reads, _)
                        if reads.0 as usize >= externals =>
                    {
                        return Err(ShapeError::UnknownExternal { stage, reads: reads.0, externals });
                    }
                    _ => {}
                }
            }
        }
        Ok(Self { stages, externals })
    }

    /// Returns the number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Returns the inputs of a stage.
    pub fn sources(&self, stage: StageIndex) -> &[Source] {
        &self.stages[stage.0 as usize]
    }

    fn reads_reference(&self) -> bool {
        self.stages
            .iter()
            .flatten()
            .any(|source| matches!(source, Source::Reference(_) | Source::ReferenceAt(..)))
    }

    /// Returns the number of slots that the stages name.
    fn slots(&self) -> usize {
        let slots = self.stages.iter().flatten().filter_map(|source| source.slot());
        slots.map(|slot| slot.0 as usize + 1).max().unwrap_or(0)
    }
}

/// Every run of a study: all evaluations on all tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    shape: WorkflowShape,
    keys: Vec<u32>,
    externals: Vec<u32>,
    evaluations: usize,
    tiles: usize,
    reference: bool,
    neighbors: Neighbors,
}

/// Error of the tables of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RunsError {
    /// The table of parameter keys is not evaluations × stages.
    #[error("read parameter keys: {found} of them, but {evaluations} evaluations of {stages} stages")]
    Keys {
        /// Keys given.
        found: usize,
        /// Evaluations claimed.
        evaluations: usize,
        /// Stages of the workflow.
        stages: usize,
    },
    /// The table of external inputs is not tiles × external inputs.
    #[error("read external inputs: {found} of them, but {tiles} tiles with {externals} each")]
    Externals {
        /// Ids given.
        found: usize,
        /// Tiles claimed.
        tiles: usize,
        /// External inputs of the workflow.
        externals: usize,
    },
    /// The relations between tiles do not fit the study.
    #[error("read neighbors: the table of {tiles} tiles and {slots} slots does not fit the study")]
    Neighbors {
        /// Tiles claimed.
        tiles: usize,
        /// Slots that stages read.
        slots: usize,
    },
    /// The workflow reads the reference run, but the study has none.
    #[error("find the reference run: the workflow reads it, but evaluation 0 is not a reference")]
    NoReference,
    /// Ids do not fit in 32 bits.
    #[error("number the runs: {evaluations} evaluations of {tiles} tiles exceed 32-bit ids")]
    TooLarge {
        /// Evaluations claimed.
        evaluations: usize,
        /// Tiles claimed.
        tiles: usize,
    },
}

impl Runs {
    /// Creates the runs of `evaluations` × `tiles`.
    ///
    /// `keys[evaluation * stages + stage]` is the interned values of the parameters that the stage consumes.
    /// `externals[tile * external inputs + column]` identifies an external input, unique within its column. With
    /// `reference`, evaluation 0 is the reference and not one of the study's own evaluations.
    ///
    /// # Errors
    /// If a table has the wrong size, a stage reads a missing reference, or ids exceed 32 bits.
    pub fn new(
        shape: WorkflowShape,
        evaluations: usize,
        tiles: usize,
        keys: Vec<u32>,
        externals: Vec<u32>,
        reference: bool,
    ) -> Result<Self, RunsError> {
        Self::with_neighbors(shape, (evaluations, tiles), keys, externals, reference, Neighbors::default())
    }

    /// As [`new`](Self::new), for stages that read regions of other tiles.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if `neighbors` names a tile that does not exist or lacks a slot.
    pub fn with_neighbors(
        shape: WorkflowShape,
        (evaluations, tiles): (usize, usize),
        keys: Vec<u32>,
        externals: Vec<u32>,
        reference: bool,
        neighbors: Neighbors,
    ) -> Result<Self, RunsError> {
        let stages = shape.stages();
        if evaluations.checked_mul(stages) != Some(keys.len()) {
            return Err(RunsError::Keys { found: keys.len(), evaluations, stages });
        }
        if tiles.checked_mul(shape.externals) != Some(externals.len()) {
            let found = externals.len();
            return Err(RunsError::Externals { found, tiles, externals: shape.externals });
        }
        if shape.reads_reference() && !(reference && evaluations > 0) {
            return Err(RunsError::NoReference);
        }
        if !neighbors.fits(&shape, tiles) {
            return Err(RunsError::Neighbors { tiles, slots: shape.slots() });
        }
        let ids = neighbors.ids(&shape, tiles).and_then(|ids| ids.checked_mul(evaluations));
        if ids.is_none_or(|ids| ids > u32::MAX as usize) {
            return Err(RunsError::TooLarge { evaluations, tiles });
        }
        Ok(Self { shape, keys, externals, evaluations, tiles, reference, neighbors })
    }

    /// Returns the workflow that every run instantiates.
    pub fn shape(&self) -> &WorkflowShape {
        &self.shape
    }

    /// Returns the number of runs, the reference's included.
    pub fn len(&self) -> usize {
        self.evaluations * self.tiles
    }

    /// Returns whether the study has no run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the run of an evaluation on a tile.
    pub fn run(&self, evaluation: usize, tile: usize) -> RunId {
        debug_assert!(evaluation < self.evaluations && tile < self.tiles);
        RunId((tile * self.evaluations + evaluation) as u32)
    }

    /// Returns the evaluation of a run. With a reference, 0 is the reference.
    pub fn evaluation(&self, run: RunId) -> usize {
        run.0 as usize % self.evaluations
    }

    /// Returns the tile of a run.
    pub fn tile(&self, run: RunId) -> usize {
        run.0 as usize / self.evaluations
    }

    /// Returns whether the run belongs to the reference evaluation.
    pub fn is_reference(&self, run: RunId) -> bool {
        self.reference && self.evaluation(run) == 0
    }

    /// Returns the run that [`Source::Reference`] refers to for this run.
    pub(crate) fn reference_of(&self, run: RunId) -> RunId {
        self.run(0, self.tile(run))
    }

    /// Returns whether a stage reads regions of other tiles, or runs once a specimen.
    pub(crate) fn crosses_tiles(&self) -> bool {
        self.shape.slots() > 0 || self.neighbors.once.contains(&true)
    }

    /// Returns the run of the same evaluation on the tile that a slot names.
    pub fn neighbor(&self, run: RunId, slot: SlotIndex) -> RunId {
        let place = self.tile(run) * self.neighbors.slots + slot.0 as usize;
        self.run(self.evaluation(run), self.neighbors.tiles[place] as usize)
    }

    /// Returns the earlier run of the same evaluation whose instance of a stage serves this run as well, as both tiles are
    /// of one specimen. `None` if the stage runs once a tile, or this run is the first of its specimen.
    pub(crate) fn served_by(&self, run: RunId, stage: StageIndex) -> Option<RunId> {
        if !self.neighbors.once.get(stage.0 as usize).copied().unwrap_or(false) {
            return None;
        }
        let tile = self.tile(run);
        let first = self.neighbors.first_of_specimen[tile] as usize;
        (first < tile).then(|| self.run(self.evaluation(run), first))
    }

    /// Returns the interned values of the parameters that `stage` consumes in `run`.
    pub fn key(&self, run: RunId, stage: StageIndex) -> u32 {
        self.keys[self.evaluation(run) * self.shape.stages() + stage.0 as usize]
    }

    /// Returns the identity of an external input of a run.
    pub fn external(&self, run: RunId, column: ExternalIndex) -> u32 {
        self.externals[self.tile(run) * self.shape.externals + column.0 as usize]
    }
}

impl Neighbors {
    fn fits(&self, shape: &WorkflowShape, tiles: usize) -> bool {
        let has_slots = shape.slots() <= self.slots && self.tiles.len() == self.slots * tiles;
        let once = self.once.contains(&true);
        let knows_specimens =
            !once || (self.first_of_specimen.len(), self.once.len()) == (tiles, shape.stages());
        let is_earlier = |(tile, first): (usize, &u32)| {
            let of_first = self.first_of_specimen.get(*first as usize);
            *first as usize <= tile && of_first == Some(first)
        };
        has_slots
            && knows_specimens
            && self.tiles.iter().all(|tile| (*tile as usize) < tiles)
            && self.first_of_specimen.iter().enumerate().all(is_earlier)
    }

    /// Returns an upper bound of the ids of one evaluation: an instance for each stage of a run, and a list name for each
    /// input of an instance.
    fn ids(&self, shape: &WorkflowShape, tiles: usize) -> Option<usize> {
        let mut ids = tiles.checked_mul(1 + shape.stages())?;
        let is_first = |(tile, first): (usize, &u32)| tile == *first as usize;
        let specimens = self.first_of_specimen.iter().enumerate().filter(|tile| is_first(*tile)).count();
        for (stage, sources) in shape.stages.iter().enumerate() {
            let runs = if self.once.get(stage) == Some(&true) { specimens } else { tiles };
            ids = ids.checked_add(runs.checked_mul(sources.len())?)?;
        }
        Some(ids)
    }
}
