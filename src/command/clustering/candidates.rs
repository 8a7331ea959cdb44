//! Clusterings of a workflow: methods with vertical modes, with limits that are given or tuned by simulation.

use crate::cli::{MethodArg, VerticalArg};
use pleach_clustering::choose::{self, rank};
use pleach_clustering::simulate::{Execution, Gain, Platform, simulate};
use pleach_clustering::tune::{Tuned, TunedMethod, tune};
use pleach_clustering::{Clustering, Method, Options, Vertical, Workflow, cluster};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::num::NonZeroUsize;

/// Clustering method, without its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MethodName {
    None,
    Hc,
    Hrb,
    Hifb,
    Hdb,
    Dfjs,
    Afjs,
}

impl MethodName {
    /// Methods that cluster levels.
    const HORIZONTAL: [Self; 6] = [Self::Hc, Self::Hrb, Self::Hifb, Self::Hdb, Self::Dfjs, Self::Afjs];

    /// Returns its name as an argument.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Hc => "hc",
            Self::Hrb => "hrb",
            Self::Hifb => "hifb",
            Self::Hdb => "hdb",
            Self::Dfjs => "dfjs",
            Self::Afjs => "afjs",
        }
    }

    /// Returns the method of an argument. `None` for those that compare methods.
    pub(super) fn single(method: MethodArg) -> Option<Self> {
        match method {
            MethodArg::None => Some(Self::None),
            MethodArg::Hc => Some(Self::Hc),
            MethodArg::Hrb => Some(Self::Hrb),
            MethodArg::Hifb => Some(Self::Hifb),
            MethodArg::Hdb => Some(Self::Hdb),
            MethodArg::Dfjs => Some(Self::Dfjs),
            MethodArg::Afjs => Some(Self::Afjs),
            MethodArg::All | MethodArg::Best => None,
        }
    }
}

/// Returns the name of a vertical mode as an argument.
pub(super) fn vertical_name(vertical: VerticalArg) -> &'static str {
    match vertical {
        VerticalArg::None => "none",
        VerticalArg::Prior => "prior",
        VerticalArg::PriorBounded => "prior-bounded",
        VerticalArg::Posterior => "posterior",
        VerticalArg::Only => "only",
    }
}

/// Returns options with a vertical mode.
pub(super) fn with_vertical(options: Options, vertical: VerticalArg) -> Options {
    let mode = match vertical {
        VerticalArg::None => Vertical::None,
        VerticalArg::Prior | VerticalArg::PriorBounded => Vertical::Prior,
        VerticalArg::Posterior => Vertical::Posterior,
        VerticalArg::Only => Vertical::Only,
    };
    Options { vertical: mode, bounded_chains: vertical == VerticalArg::PriorBounded, ..options }
}

/// A method with a vertical mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) method: MethodName,
    pub(super) vertical: VerticalArg,
}

impl Candidate {
    /// One job for each task.
    pub(super) const SINGLE: Self = Self { method: MethodName::None, vertical: VerticalArg::None };

    /// Returns the words for a sentence, such as `hrb, vertical prior`.
    pub(super) fn in_words(self) -> String {
        match (self.method, self.vertical) {
            (MethodName::None, VerticalArg::None) => "no clustering".to_owned(),
            (method, VerticalArg::None) => method.name().to_owned(),
            (_, VerticalArg::Only) => "vertical clustering only".to_owned(),
            (method, vertical) => format!("{}, vertical {}", method.name(), vertical_name(vertical)),
        }
    }
}

/// Returns the candidates of a comparison: all methods with one vertical mode, or with each that joins chains of the
/// workflow.
pub(super) fn compared(vertical: Option<VerticalArg>, has_chains: bool) -> Vec<Candidate> {
    let modes = match vertical {
        Some(vertical) => vec![vertical],
        None if has_chains => {
            vec![VerticalArg::None, VerticalArg::Only, VerticalArg::Prior, VerticalArg::Posterior]
        }
        // Jobs of levels may form chains that tasks do not.
        None => vec![VerticalArg::None, VerticalArg::Posterior],
    };
    let of_mode = |vertical: VerticalArg| match vertical {
        VerticalArg::Only => vec![Candidate { method: MethodName::None, vertical }],
        _ => MethodName::HORIZONTAL.map(|method| Candidate { method, vertical }).to_vec(),
    };
    let mut candidates: Vec<Candidate> = modes.into_iter().flat_map(of_mode).collect();
    candidates.insert(0, Candidate::SINGLE);
    candidates
}

/// Limits of the jobs of DFJS and AFJS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_seconds: f64,
    /// `None` for DFJS.
    pub(super) max_bytes: Option<u64>,
    /// Number of simulations that tuned the limits. 0 for given limits.
    pub(super) simulations: usize,
    /// Number of different clusterings among these simulations.
    pub(super) clusterings: usize,
}

impl Limits {
    fn given(max_seconds: f64, max_bytes: Option<u64>) -> Self {
        Self { max_seconds, max_bytes, simulations: 0, clusterings: 0 }
    }

    fn tuned(tuned: &Tuned) -> Self {
        let (best, simulations, clusterings) = (tuned.best, tuned.simulations(), tuned.clusterings);
        Self { max_seconds: best.max_seconds, max_bytes: best.max_bytes, simulations, clusterings }
    }

    fn method(self) -> Method {
        let max_seconds = self.max_seconds;
        match self.max_bytes {
            None => Method::Dfjs { max_seconds },
            Some(max_bytes) => Method::Afjs { max_seconds, max_bytes: max_bytes as f64 },
        }
    }
}

/// Options of all candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) platform: Platform,
    /// Granularity, reading of HIFB and HDB, and seed. A candidate replaces method and vertical mode.
    pub(super) options: Options,
    /// Given limit of DFJS and AFJS in seconds.
    pub(super) max_seconds: Option<f64>,
    /// Given limit of AFJS in bytes.
    pub(super) max_bytes: Option<u64>,
    /// Number of seeds of HC.
    pub(super) seeds: NonZeroUsize,
    /// Whether levels have as many jobs as there are workers, where these vary.
    pub(super) jobs_follow_workers: bool,
}

impl Settings {
    /// Returns whether the limits of a method are given.
    pub(super) fn has_limits(&self, method: MethodName) -> bool {
        match method {
            MethodName::Afjs => self.max_seconds.is_some() && self.max_bytes.is_some(),
            _ => self.max_seconds.is_some(),
        }
    }

    /// Simulates the execution of a clustering.
    pub(super) fn execute(&self, workflow: &Workflow, clustering: &Clustering) -> Execution {
        simulate(workflow, clustering, &self.platform, self.options.seed)
    }
}

/// A clustering with its simulated execution.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) candidate: Candidate,
    pub(super) limits: Option<Limits>,
    pub(super) clustering: Clustering,
    pub(super) execution: Execution,
    /// Makespan over several seeds. `None` for one clustering.
    pub(super) seeds: Option<SeedMean>,
}

/// Mean makespan over the seeds of HC.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeedMean {
    pub(super) count: usize,
    /// Mean makespan in seconds.
    pub(super) makespan: f64,
    /// Half the width of its 95 % interval in seconds.
    pub(super) half_width: f64,
}

impl Simulated {
    /// Returns the makespan beside that of one job for each task.
    pub(super) fn gain(&self, baseline: &Self) -> Gain {
        Gain { makespan: self.execution.makespan, baseline: baseline.execution.makespan }
    }

    /// Returns the jobs in an order that depends only on their tasks.
    fn partition(&self) -> Vec<Vec<u32>> {
        let mut jobs = self.clustering.jobs().to_vec();
        jobs.iter_mut().for_each(|job| job.sort_unstable());
        jobs.sort_unstable();
        jobs
    }
}

/// Clusters a workflow by a candidate. HC has a clustering for each seed.
fn clusterings(
    workflow: &Workflow,
    candidate: Candidate,
    settings: &Settings,
) -> (Option<Limits>, Vec<Clustering>) {
    let options = with_vertical(settings.options, candidate.vertical);
    let limits = limits(workflow, candidate.method, &options, settings);
    let method = match (candidate.method, limits) {
        (_, Some(limits)) => limits.method(),
        (MethodName::Hc, None) => Method::Hc,
        (MethodName::Hrb, None) => Method::Hrb,
        (MethodName::Hifb, None) => Method::Hifb,
        (MethodName::Hdb, None) => Method::Hdb,
        (MethodName::None | MethodName::Dfjs | MethodName::Afjs, None) => Method::None,
    };
    let seeds = if method == Method::Hc { settings.seeds.get() as u64 } else { 1 };
    let seeds = (0..seeds).map(|seed| options.seed.wrapping_add(seed));
    let clusterings = seeds.map(|seed| cluster(workflow, &Options { method, seed, ..options }));
    (limits, clusterings.collect())
}

/// Clusters a workflow by a candidate, with the limits of DFJS and AFJS.
pub(super) fn jobs(
    workflow: &Workflow,
    candidate: Candidate,
    settings: &Settings,
) -> (Option<Limits>, Clustering) {
    let (limits, mut clusterings) = clusterings(workflow, candidate, settings);
    (limits, clusterings.swap_remove(0))
}

/// Returns a candidate with its clusterings for a ranking.
pub(super) fn ranked(workflow: &Workflow, candidate: Candidate, settings: &Settings) -> choose::Candidate {
    choose::Candidate {
        method: candidate.method.name().to_owned(),
        vertical: vertical_name(candidate.vertical).to_owned(),
        clusterings: clusterings(workflow, candidate, settings).1,
    }
}

/// Clusters a workflow by a candidate, and simulates the execution. Of several seeds, the first one counts, beside their mean.
pub(super) fn run(workflow: &Workflow, candidate: Candidate, settings: &Settings) -> Simulated {
    let (limits, clusterings) = clusterings(workflow, candidate, settings);
    let clustering = clusterings[0].clone();
    let execution = settings.execute(workflow, &clustering);
    let count = clusterings.len();
    let all = choose::Candidate { clusterings, ..choose::Candidate::new("", "", clustering.clone()) };
    let mean = (count > 1).then(|| rank(workflow, &[all], &settings.platform, settings.options.seed));
    let mean = mean.and_then(|ranking| ranking.scores.into_iter().next());
    let seeds = mean
        .and_then(|score| Some(SeedMean { count, makespan: score.makespan, half_width: score.half_width? }));
    Simulated { candidate, limits, clustering, execution, seeds }
}

/// Simulates candidates in parallel. Results are in their order.
pub(super) fn run_all(
    workflow: &Workflow,
    candidates: Vec<Candidate>,
    settings: &Settings,
) -> Vec<Simulated> {
    candidates.into_par_iter().map(|candidate| run(workflow, candidate, settings)).collect()
}

/// Removes each vertical mode that gives the same jobs as an earlier one with the same method.
pub(super) fn remove_equal_modes(simulated: &mut Vec<Simulated>) {
    let mut known: Vec<(MethodName, Vec<Vec<u32>>)> = Vec::new();
    simulated.retain(|one| {
        let entry = (one.candidate.method, one.partition());
        let is_new = !known.contains(&entry);
        if is_new {
            known.push(entry);
        }
        is_new
    });
}

/// Returns the limits of DFJS and AFJS: given ones, or those of the least makespan. `None` for other methods.
fn limits(workflow: &Workflow, method: MethodName, options: &Options, settings: &Settings) -> Option<Limits> {
    let tuned = |method: TunedMethod| {
        Limits::tuned(&tune(workflow, method, options, &settings.platform, options.seed))
    };
    match (method, settings.max_seconds, settings.max_bytes) {
        (MethodName::Dfjs, Some(max_seconds), _) => Some(Limits::given(max_seconds, None)),
        (MethodName::Dfjs, None, _) => Some(tuned(TunedMethod::Dfjs)),
        (MethodName::Afjs, Some(max_seconds), Some(bytes)) => Some(Limits::given(max_seconds, Some(bytes))),
        (MethodName::Afjs, ..) => Some(tuned(TunedMethod::Afjs)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertical_modes_are_compared_where_chains_exist() {
        let count = |vertical, has_chains| compared(vertical, has_chains).len();
        // No clustering, and six methods with each mode but the one without a method.
        assert_eq!(count(None, true), 1 + 6 + 1 + 6 + 6);
        assert_eq!(count(None, false), 1 + 6 + 6);
        assert_eq!(count(Some(VerticalArg::Prior), false), 1 + 6);
        assert_eq!(count(Some(VerticalArg::Only), true), 1 + 1);
        assert_eq!(compared(None, true)[0], Candidate::SINGLE);
    }

    #[test]
    fn candidates_are_named_in_words() {
        let words = |method, vertical| Candidate { method, vertical }.in_words();
        assert_eq!(Candidate::SINGLE.in_words(), "no clustering");
        assert_eq!(words(MethodName::Hdb, VerticalArg::None), "hdb");
        assert_eq!(words(MethodName::Hdb, VerticalArg::Prior), "hdb, vertical prior");
        assert_eq!(words(MethodName::None, VerticalArg::Only), "vertical clustering only");
    }
}
