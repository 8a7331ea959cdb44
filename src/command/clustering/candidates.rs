//! Clusterings of a workflow: methods with vertical modes, with limits that are given or tuned by simulation.

use crate::cli::MethodArg;
use pleach_clustering::simulate::{Execution, Gain, Platform, simulate};
use pleach_clustering::tune::{Tuned, tune_seconds, tune_seconds_and_bytes};
use pleach_clustering::{Clustering, Method, Options, Vertical, Workflow, cluster};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

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
pub(super) fn vertical_name(vertical: Vertical) -> &'static str {
    match vertical {
        Vertical::None => "none",
        Vertical::Prior => "prior",
        Vertical::Posterior => "posterior",
        Vertical::Only => "only",
    }
}

/// A method with a vertical mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) method: MethodName,
    pub(super) vertical: Vertical,
}

impl Candidate {
    /// One job for each task.
    pub(super) const SINGLE: Self = Self { method: MethodName::None, vertical: Vertical::None };

    /// Returns the words for a sentence, such as `hrb, vertical prior`.
    pub(super) fn in_words(self) -> String {
        match (self.method, self.vertical) {
            (MethodName::None, Vertical::None) => "no clustering".to_owned(),
            (method, Vertical::None) => method.name().to_owned(),
            (_, Vertical::Only) => "vertical clustering only".to_owned(),
            (method, vertical) => format!("{}, vertical {}", method.name(), vertical_name(vertical)),
        }
    }
}

/// Returns the candidates of a comparison: all methods with one vertical mode, or with each that joins chains of the
/// workflow.
pub(super) fn compared(vertical: Option<Vertical>, has_chains: bool) -> Vec<Candidate> {
    let modes = match vertical {
        Some(vertical) => vec![vertical],
        None if has_chains => vec![Vertical::None, Vertical::Only, Vertical::Prior, Vertical::Posterior],
        // Jobs of levels may form chains that tasks do not.
        None => vec![Vertical::None, Vertical::Posterior],
    };
    let of_mode = |vertical: Vertical| match vertical {
        Vertical::Only => vec![Candidate { method: MethodName::None, vertical }],
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
}

impl Limits {
    fn tuned(tuned: &Tuned) -> Self {
        let best = tuned.best;
        let (max_seconds, max_bytes) = (best.max_seconds, best.max_bytes);
        Self { max_seconds, max_bytes, simulations: tuned.simulations() }
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

/// Clusters a workflow by a candidate, and simulates the execution.
pub(super) fn run(workflow: &Workflow, candidate: Candidate, settings: &Settings) -> Simulated {
    let (limits, clustering) = jobs(workflow, candidate, settings);
    let execution = settings.execute(workflow, &clustering);
    Simulated { candidate, limits, clustering, execution }
}

/// Clusters a workflow by a candidate, with the limits of DFJS and AFJS.
pub(super) fn jobs(
    workflow: &Workflow,
    candidate: Candidate,
    settings: &Settings,
) -> (Option<Limits>, Clustering) {
    let clustered = |method: Method| {
        cluster(workflow, &Options { method, vertical: candidate.vertical, ..settings.options })
    };
    let limits = limits(workflow, candidate.method, settings, |limits| {
        settings.execute(workflow, &clustered(limits.method())).makespan
    });
    let clustering = clustered(match (candidate.method, limits) {
        (_, Some(limits)) => limits.method(),
        (MethodName::Hc, None) => Method::Hc,
        (MethodName::Hrb, None) => Method::Hrb,
        (MethodName::Hifb, None) => Method::Hifb,
        (MethodName::Hdb, None) => Method::Hdb,
        (MethodName::None | MethodName::Dfjs | MethodName::Afjs, None) => Method::None,
    });
    (limits, clustering)
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

/// Returns the limits of DFJS and AFJS: given ones, or tuned with the makespan that some limits give. `None` for other
/// methods.
fn limits(
    workflow: &Workflow,
    method: MethodName,
    settings: &Settings,
    makespan: impl Fn(Limits) -> f64,
) -> Option<Limits> {
    let with = |max_seconds: f64, max_bytes: Option<u64>| Limits { max_seconds, max_bytes, simulations: 0 };
    let seconds = workflow.total_seconds();
    match (method, settings.max_seconds, settings.max_bytes) {
        (MethodName::Dfjs, Some(max_seconds), _) => Some(with(max_seconds, None)),
        (MethodName::Dfjs, None, _) => {
            Some(Limits::tuned(&tune_seconds(seconds, |max_seconds| makespan(with(max_seconds, None)))))
        }
        (MethodName::Afjs, Some(max_seconds), Some(bytes)) => Some(with(max_seconds, Some(bytes))),
        (MethodName::Afjs, ..) => {
            let tuned = tune_seconds_and_bytes(seconds, data_bytes(workflow), |max_seconds, max_bytes| {
                makespan(with(max_seconds, Some(max_bytes)))
            });
            Some(Limits::tuned(&tuned))
        }
        _ => None,
    }
}

/// Returns the sum of all inputs and outputs over the tasks, in bytes.
fn data_bytes(workflow: &Workflow) -> u64 {
    let bytes = |file: &u32| workflow.files()[*file as usize].bytes;
    let of_tasks = workflow.tasks().iter().flat_map(|task| task.reads.iter().chain(&task.writes));
    of_tasks.map(bytes).fold(0, u64::saturating_add)
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
        assert_eq!(count(Some(Vertical::Prior), false), 1 + 6);
        assert_eq!(count(Some(Vertical::Only), true), 1 + 1);
        assert_eq!(compared(None, true)[0], Candidate::SINGLE);
    }

    #[test]
    fn candidates_are_named_in_words() {
        let words = |method, vertical| Candidate { method, vertical }.in_words();
        assert_eq!(Candidate::SINGLE.in_words(), "no clustering");
        assert_eq!(words(MethodName::Hdb, Vertical::None), "hdb");
        assert_eq!(words(MethodName::Hdb, Vertical::Prior), "hdb, vertical prior");
        assert_eq!(words(MethodName::None, Vertical::Only), "vertical clustering only");
    }
}
