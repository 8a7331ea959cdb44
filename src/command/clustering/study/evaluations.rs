//! Evaluations of a study: simulated executions, which share workflows, clusterings and simulations of equal values.
//!
//! Evaluations form a tree: those of equal jobs, among these those of equal sizes and run times, and among these those of an
//! equal platform. Each node is computed once, in parallel with its siblings.

use super::super::candidates::{Candidate, MethodName, jobs};
use super::super::parameters::{Key, Parameter, Point, scaled, settings};
use crate::cli::ClusterArgs;
use crate::exit::{CommandError, CommandResult};
use pleach_clustering::simulate::Execution;
use pleach_clustering::{Clustering, Workflow};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Result of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Makespan in seconds.
    pub(super) makespan: f64,
    /// Bytes moved to workers.
    pub(super) moved_bytes: u64,
    /// Number of jobs.
    pub(super) jobs: usize,
}

/// Numbers of computed clusterings and simulations beside those of a study that shares none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) clusterings: usize,
    pub(super) clusterings_needed: usize,
    pub(super) simulations: usize,
    pub(super) simulations_needed: usize,
    /// Simulations that tuned the limits of DFJS and AFJS, beside the others.
    pub(super) tuning: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.clusterings += other.clusterings;
        self.clusterings_needed += other.clusterings_needed;
        self.simulations += other.simulations;
        self.simulations_needed += other.simulations_needed;
        self.tuning += other.tuning;
    }
}

/// A workflow at the points of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled<'a> {
    pub(super) args: &'a ClusterArgs,
    pub(super) workflow: &'a Workflow,
    pub(super) points: &'a [Point],
    /// Whether delays are drawn, so that the seed changes them.
    pub(super) draws_delays: bool,
}

/// Parameters that change a workflow.
const SCALES: [Parameter; 3] = [Parameter::ScaleData, Parameter::ScaleTime, Parameter::RunTimeVariance];

/// Evaluations with one execution, by its platform.
type Simulations = BTreeMap<Key, Vec<usize>>;
/// Executions of one workflow, by its sizes and run times.
type Variants = BTreeMap<Key, Simulations>;
/// Workflows of one clustering, by the parameters that change its jobs.
type Clusterings = BTreeMap<Key, Variants>;

/// Returns the parameters that change the jobs of a candidate.
fn of_jobs(candidate: Candidate, args: &ClusterArgs, has_limits: bool) -> Vec<Parameter> {
    const RUN_TIMES: [Parameter; 2] = [Parameter::ScaleTime, Parameter::RunTimeVariance];
    let mut parameters = match candidate.method {
        MethodName::None => Vec::new(),
        MethodName::Hc => vec![Parameter::Jobs, Parameter::Seed],
        MethodName::Hrb | MethodName::Hifb | MethodName::Hdb => [&RUN_TIMES[..], &[Parameter::Jobs]].concat(),
        // The simulation tunes limits that are not given: each parameter may change them.
        MethodName::Dfjs | MethodName::Afjs if !has_limits => Parameter::ALL.to_vec(),
        MethodName::Dfjs => [&RUN_TIMES[..], &[Parameter::MaxSeconds]].concat(),
        MethodName::Afjs => {
            let own = [Parameter::MaxSeconds, Parameter::MaxBytes, Parameter::ScaleData];
            [&RUN_TIMES[..], &own].concat()
        }
    };
    // The order of tasks is drawn only where levels are cut by number.
    parameters.retain(|parameter| {
        *parameter != Parameter::Seed || candidate.method != MethodName::Hc || args.size.is_none()
    });
    parameters
}

/// Returns the parameters that change the execution of given jobs.
fn of_platform(candidate: Candidate, draws_delays: bool) -> Vec<Parameter> {
    let mut parameters = vec![
        Parameter::Queue,
        Parameter::Engine,
        Parameter::Post,
        Parameter::Weibull,
        Parameter::Bandwidth,
        Parameter::Workers,
    ];
    if candidate != Candidate::SINGLE {
        parameters.push(Parameter::Clustering);
    }
    if draws_delays {
        parameters.push(Parameter::Seed);
    }
    parameters
}

impl Sampled<'_> {
    /// Returns the outcome of a candidate at each point, and the counts of computations.
    pub(super) fn evaluate(&self, candidate: Candidate) -> CommandResult<(Vec<Outcome>, Counts)> {
        let clusterings = self.tree(candidate)?;
        let found: Vec<(Vec<(usize, Outcome)>, Counts)> = clusterings
            .par_iter()
            .map(|(_, variants)| self.of_clustering(candidate, variants))
            .collect::<CommandResult<_>>()?;
        let mut outcomes = vec![Outcome::default(); self.points.len()];
        let mut counts = Counts { simulations_needed: self.points.len(), ..Counts::default() };
        if candidate != Candidate::SINGLE {
            counts.clusterings_needed = self.points.len();
        }
        for (of_clustering, counted) in found {
            of_clustering.into_iter().for_each(|(evaluation, outcome)| outcomes[evaluation] = outcome);
            counts += counted;
        }
        Ok((outcomes, counts))
    }

    fn tree(&self, candidate: Candidate) -> CommandResult<Clusterings> {
        let has_limits = match self.points.first() {
            Some(point) => settings(self.args, point)?.has_limits(candidate.method),
            None => false,
        };
        let jobs = of_jobs(candidate, self.args, has_limits);
        let platform = of_platform(candidate, self.draws_delays);
        let mut clusterings = Clusterings::new();
        for (evaluation, point) in self.points.iter().enumerate() {
            let variants = clusterings.entry(point.key(&jobs)).or_default();
            let simulations = variants.entry(point.key(&SCALES)).or_default();
            simulations.entry(point.key(&platform)).or_default().push(evaluation);
        }
        Ok(clusterings)
    }

    /// Clusters once and executes all variants.
    fn of_clustering(
        &self,
        candidate: Candidate,
        variants: &Variants,
    ) -> CommandResult<(Vec<(usize, Outcome)>, Counts)> {
        let Some(first) = variants.values().find_map(first) else { return Ok(Default::default()) };
        let settings = settings(self.args, &self.points[first])?;
        let (limits, clustering) = jobs(&self.variant(first)?, candidate, &settings);
        let found: Vec<Vec<(usize, Outcome)>> = variants
            .par_iter()
            .map(|(_, simulations)| self.of_variant(&clustering, simulations))
            .collect::<CommandResult<_>>()?;
        let counts = Counts {
            clusterings: usize::from(candidate != Candidate::SINGLE),
            simulations: variants.values().map(BTreeMap::len).sum(),
            tuning: limits.map_or(0, |limits| limits.simulations),
            ..Counts::default()
        };
        Ok((found.concat(), counts))
    }

    /// Executes the jobs of a clustering with the run times and sizes of one variant.
    fn of_variant(
        &self,
        clustering: &Clustering,
        simulations: &Simulations,
    ) -> CommandResult<Vec<(usize, Outcome)>> {
        let Some(first) = first(simulations) else { return Ok(Vec::new()) };
        let workflow = self.variant(first)?;
        let found: Vec<Vec<(usize, Outcome)>> = simulations
            .par_iter()
            .map(|(_, evaluations)| {
                let Some(first) = evaluations.first() else { return Ok(Vec::new()) };
                let settings = settings(self.args, &self.points[*first])?;
                let outcome = outcome(&settings.execute(&workflow, clustering));
                Ok(evaluations.iter().map(|evaluation| (*evaluation, outcome)).collect())
            })
            .collect::<CommandResult<_>>()?;
        Ok(found.concat())
    }

    fn variant(&self, evaluation: usize) -> CommandResult<Workflow> {
        scaled(self.workflow.clone(), self.args, &self.points[evaluation]).map_err(|error| {
            let name = self.workflow.name();
            CommandError::Input(format!("{name}: evaluation {}: {error}", evaluation + 1))
        })
    }
}

/// Returns the first evaluation of some simulations.
fn first(simulations: &Simulations) -> Option<usize> {
    simulations.values().find_map(|evaluations| evaluations.first().copied())
}

fn outcome(execution: &Execution) -> Outcome {
    Outcome { makespan: execution.makespan, moved_bytes: execution.moved_bytes, jobs: execution.jobs.len() }
}

#[cfg(test)]
mod tests {
    use super::super::super::candidates::compared;
    use super::*;
    use clap::Parser;
    use pleach_clustering::{Family, generate};
    use pleach_workflow::{Real, Value};

    #[derive(Parser)]
    struct Call {
        #[command(flatten)]
        args: ClusterArgs,
    }

    fn parsed(words: &[&str]) -> ClusterArgs {
        Call::try_parse_from([&["cluster", "w.dax"][..], words].concat()).unwrap().args
    }

    /// Two values of each parameter, far enough apart to change an execution that depends on it.
    fn values(parameter: Parameter) -> [f64; 2] {
        match parameter {
            Parameter::Queue | Parameter::Engine => [0.0, 60.0],
            Parameter::Clustering | Parameter::Post => [0.0, 25.0],
            Parameter::Weibull => [0.6, 2.0],
            Parameter::Bandwidth => [1e5, 1e8],
            Parameter::Workers => [2.0, 7.0],
            Parameter::Jobs => [2.0, 4.0],
            Parameter::MaxSeconds => [12.0, 45.0],
            Parameter::MaxBytes => [3e7, 1.2e8],
            Parameter::ScaleData => [1.0, 20.0],
            Parameter::ScaleTime => [1.0, 3.0],
            Parameter::RunTimeVariance => [0.0, 4.0],
            Parameter::Seed => [0.0, 1.0],
        }
    }

    /// Returns points that have each pair of values in many combinations, so that a missing part of a key shares too much.
    fn points(parameters: &[Parameter], count: u64) -> Vec<Point> {
        let point = |number: u64| {
            let row: Vec<Value> = parameters
                .iter()
                .zip(1..)
                .map(|(parameter, salt)| {
                    // Two rounds: bits of one product repeat a pattern over neighboring numbers.
                    let mixed = (number * 32 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let bit = ((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) & 1;
                    Value::Real(Real::try_from(values(*parameter)[bit as usize]).unwrap())
                })
                .collect();
            Point::new(parameters, &row)
        };
        (0..count).map(point).collect()
    }

    /// Compares shared evaluations of every method and vertical mode with evaluations one by one.
    fn assert_sharing_changes_nothing(args: &ClusterArgs, parameters: &[Parameter], count: u64) {
        let workflow = generate(Family::Montage, 30, 1).unwrap();
        let points = points(parameters, count);
        let draws_delays = parameters.contains(&Parameter::Weibull) || args.platform.weibull.is_some();
        let sampled = Sampled { args, workflow: &workflow, points: &points, draws_delays };
        for candidate in compared(None, true) {
            let (found, counts) = sampled.evaluate(candidate).unwrap();
            for (point, found) in points.iter().zip(&found) {
                let settings = settings(args, point).unwrap();
                let workflow = scaled(workflow.clone(), args, point).unwrap();
                let (_, clustering) = jobs(&workflow, candidate, &settings);
                let expected = outcome(&settings.execute(&workflow, &clustering));
                assert_eq!(*found, expected, "{candidate:?} {point:?}");
            }
            assert!(counts.clusterings <= points.len() && counts.simulations <= points.len());
        }
    }

    #[test]
    fn sharing_changes_no_outcome() {
        assert_sharing_changes_nothing(&parsed(&[]), &Parameter::ALL, 80);
        let seeded = [Parameter::Jobs, Parameter::Seed, Parameter::Queue, Parameter::RunTimeVariance];
        assert_sharing_changes_nothing(&parsed(&[]), &seeded, 6);
        let sized = [Parameter::Seed, Parameter::Queue, Parameter::ScaleTime];
        assert_sharing_changes_nothing(&parsed(&["--size", "3", "--weibull", "1"]), &sized, 3);
    }
}
