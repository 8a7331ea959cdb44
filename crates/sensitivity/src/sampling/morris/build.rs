//! Draws trajectories and converts them to rows.
//!
//! The caller selects among the drawn trajectories.

use super::MorrisError;
use super::steps::{ParameterStep, StepChoices};
use crate::design::groups::Group;
use crate::design::trajectory::{Step, Trajectories, Trajectory, joint_fraction};
use crate::sampling::points::UnitPoints;
use crate::sampling::{Design, Structure, names, resting_value};
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::{Parameter, Value};
use rand::RngExt;
use rand::seq::SliceRandom;

/// A trajectory before it is converted to rows: the step of each varying parameter, and the order of the
/// groups.
pub(super) struct TrajectoryDraft {
    moves: Vec<ParameterStep>,
    order: Vec<usize>,
}

/// Draws the trajectory of an index. It starts at its point of `base` if given, otherwise at a random base
/// point.
pub(super) fn walk(
    steps: &[StepChoices<'_>],
    groups: usize,
    base: Option<&UnitPoints>,
    seed: u64,
    index: u32,
) -> Result<TrajectoryDraft, MorrisError> {
    let purpose = if base.is_some() { RngStream::Order(index) } else { RngStream::Trajectory(index) };
    let mut generator = rng::generator(seed, purpose);
    let moves = match base {
        None => steps
            .iter()
            .map(|steps| {
                let base = generator.random_range(0..steps.bases());
                steps.step(base, generator.random::<bool>())
            })
            .collect::<Result<_, _>>()?,
        Some(points) => {
            let places = points.row(index as usize);
            steps.iter().zip(places).map(|(steps, &place)| steps.step_at(place)).collect::<Result<_, _>>()?
        }
    };
    let mut order: Vec<usize> = (0..groups).collect();
    order.shuffle(&mut generator);
    Ok(TrajectoryDraft { moves, order })
}

/// Rows and their structure, one trajectory after the other.
pub(super) struct DesignBuilder<'a> {
    parameters: &'a [Parameter],
    /// Columns of the varying parameters.
    varying: &'a [usize],
    /// Indices into `varying` of the parameters of each group.
    members: Vec<Vec<usize>>,
    resting: Vec<Value>,
    evaluations: Vec<Vec<Value>>,
    trajectories: Vec<Trajectory>,
}

impl<'a> DesignBuilder<'a> {
    pub(super) fn new(parameters: &'a [Parameter], varying: &'a [usize], groups: &[Group]) -> Self {
        // `varying` is ascending. A member of a group that does not vary has no place and takes no step.
        let place = |column: &usize| varying.binary_search(column).ok();
        let members = groups.iter().map(|group| group.columns.iter().filter_map(place).collect()).collect();
        let resting = parameters.iter().map(resting_value).collect();
        let (evaluations, trajectories) = (Vec::new(), Vec::new());
        Self { parameters, varying, members, resting, evaluations, trajectories }
    }

    /// Adds the rows of a trajectory.
    pub(super) fn add(&mut self, walk: &TrajectoryDraft) {
        let mut point = self.resting.clone();
        for (&column, step) in self.varying.iter().zip(&walk.moves) {
            point[column] = step.from.value;
        }
        let first_row = self.evaluations.len();
        let mut steps = Vec::with_capacity(walk.order.len());
        for &group in &walk.order {
            self.evaluations.push(point.clone());
            for &place in &self.members[group] {
                point[self.varying[place]] = walk.moves[place].to.value;
            }
            steps.push(Step { parameter: group, fraction: self.fraction(walk, group) });
        }
        self.evaluations.push(point);
        self.trajectories.push(Trajectory { first_row, steps });
    }

    fn fraction(&self, walk: &TrajectoryDraft, group: usize) -> f64 {
        let fractions: Vec<f64> =
            self.members[group].iter().map(|&place| walk.moves[place].fraction).collect();
        joint_fraction(&fractions)
    }

    /// Returns the points of a trajectory in the unit cube, row by row.
    pub(super) fn places(&self, walk: &TrajectoryDraft) -> Vec<f64> {
        let mut point: Vec<f64> = walk.moves.iter().map(|step| step.from.position).collect();
        let mut places = point.clone();
        for &group in &walk.order {
            for &place in &self.members[group] {
                point[place] = walk.moves[place].to.position;
            }
            places.extend(&point);
        }
        places
    }

    /// Returns the design. Its steps are those of groups with these names.
    pub(super) fn finish(self, group_names: Vec<String>) -> Design {
        let rows = self.evaluations.len();
        let structure = Trajectories::new(group_names, self.trajectories, rows, false);
        Design {
            names: names(self.parameters),
            evaluations: self.evaluations,
            structure: Structure::Trajectories(structure),
        }
    }
}
