//! Positions of instances in the plan's order, and their tiles.
//!
//! The planner lists the instances of a stage tile by tile, and within a tile in the order with the most reuse. Buckets of
//! neighboring positions therefore have tasks in common. Tables of the plan: no event changes them.

use crate::InstanceId;
use crate::plan::{ExecutionPlan, PlannedInstance, ReuseScope};
use pleach_regions::{RegionIdentity, RegionKey};
use std::collections::{BTreeSet, HashMap};

/// Positions and tiles of all instances. Empty for plans whose buckets share nothing.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    positions: Vec<u32>,
    /// Index into `tiles`.
    tile_of: Vec<u32>,
    /// First input from a file of each tile.
    tiles: Vec<RegionKey>,
    /// Keys of the tiles by the contents of these inputs, as far as they are known: the same in every study.
    by_content: Vec<RegionKey>,
    /// By stage: whether instances have tasks in common with others.
    has_ranges: Vec<bool>,
}

/// Positions of a bucket's open instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) stage: usize,
    /// Its tile, as [`Positions`] numbers them.
    pub(crate) tile: u32,
    /// Position of its first instance.
    pub(crate) start: u32,
    /// Position of its last instance.
    pub(crate) end: u32,
}

impl Positions {
    /// Creates the tables of a valid plan. With the tree scope, buckets share nothing, whatever their positions.
    pub(crate) fn of(plan: &ExecutionPlan) -> Self {
        if plan.sharing == ReuseScope::Tree {
            return Self::default();
        }
        let mut positions = vec![0; plan.instances.len()];
        let mut has_ranges = vec![false; plan.stages.len()];
        let mut before: Option<InstanceId> = None;
        let order = plan.buckets.iter().flat_map(|bucket| bucket.instances.iter().copied());
        for (position, id) in (0u32..).zip(order) {
            positions[id.index()] = position;
            let PlannedInstance { stage, inputs, .. } = plan.instances.at(id);
            let shares = |before: InstanceId| {
                let before = plan.instances.at(before);
                before.stage == stage && before.inputs == inputs
            };
            has_ranges[stage] |= before.is_some_and(shares);
            before = Some(id);
        }
        let (mut tiles, mut numbers, mut tile_of) = (Vec::new(), HashMap::new(), Vec::<u32>::new());
        for instance in plan.instances.iter() {
            let tile = match (instance.parents.first(), instance.inputs.first()) {
                // Parents come before their children.
                (Some(parent), _) => tile_of[parent.index()],
                (None, Some(key)) => *numbers.entry(*key).or_insert_with(|| {
                    tiles.push(*key);
                    tiles.len() as u32 - 1
                }),
                (None, None) => u32::MAX,
            };
            tile_of.push(tile);
        }
        let by_content = tiles.clone();
        Self { positions, tile_of, tiles, by_content, has_ranges }
    }

    /// Returns whether instances of a stage have tasks in common with others.
    pub(crate) fn has_ranges(&self, stage: usize) -> bool {
        self.has_ranges.get(stage).copied().unwrap_or(false)
    }

    /// Returns the span of a bucket of these planned and open instances. `None` if its stage has no ranges.
    pub(crate) fn span(
        &self,
        stage: usize,
        planned: &[InstanceId],
        open: &BTreeSet<InstanceId>,
    ) -> Option<Span> {
        let first = *open.first().filter(|_| self.has_ranges(stage))?;
        let position = |id: &InstanceId| self.positions[id.index()];
        let ends = planned.first().map(position).zip(planned.last().map(position));
        // A whole bucket of the planner is in order, so its ends suffice.
        let (start, end) = match ends.filter(|(start, end)| start <= end && planned.len() == open.len()) {
            Some(ends) => ends,
            None => {
                open.iter().map(position).fold((u32::MAX, 0), |(start, end), at| (start.min(at), end.max(at)))
            }
        };
        Some(Span { stage, tile: self.tile_of[first.index()], start, end })
    }

    /// Returns the tile of an instance. `None` for plans whose buckets share nothing.
    pub(crate) fn tile_of(&self, instance: InstanceId) -> Option<u32> {
        self.tile_of.get(instance.index()).copied()
    }

    /// Returns the first input from a file of a tile.
    pub(crate) fn key_of(&self, tile: u32) -> Option<RegionKey> {
        self.tiles.get(tile as usize).copied()
    }

    /// Names tiles by the contents of their first inputs.
    pub(crate) fn name_by_content(&mut self, identity: impl Fn(RegionKey) -> Option<RegionIdentity>) {
        for (name, tile) in self.by_content.iter_mut().zip(&self.tiles) {
            if let Some(RegionIdentity(identity)) = identity(*tile) {
                name.0.copy_from_slice(&identity[..16]);
            }
        }
    }

    /// Returns the key of a tile by its content, or that of its first input if the content is unknown.
    pub(crate) fn content_key_of(&self, tile: u32) -> Option<RegionKey> {
        self.by_content.get(tile as usize).copied()
    }

    /// Returns all tiles, each with its first input from a file.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = (u32, RegionKey)> {
        (0u32..).zip(self.tiles.iter().copied())
    }
}
