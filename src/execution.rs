//! A woven study executed, here or by a cluster: progress, the journal, and what was known before.

use crate::exit::{Outcome, Stop};
use crate::inputs;
use crate::interrupt::Interrupt;
use crate::journal::{Known, WriterError};
use crate::past;
use crate::progress::{Progress, Shown, Totals};
use crate::session::Session;
use crate::study::Prepared;
use crate::weave::{Woven, task_counts};
use pleach_actors::below::Below;
use pleach_actors::embedded::{Embedded, Finished, run as run_embedded};
use pleach_actors::manager::{Notice, Observer, TaskTotal};
use pleach_actors::stage::Past;
use pleach_actors::worker::Resources;
use pleach_dispatch::InstanceId;
use pleach_dispatch::costs::Costs;
use pleach_dispatch::message::TaskDone;
use pleach_dispatch::plan::{ExecutionPlan, Sharing};
use pleach_regions::Ledger;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A plan, executed.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) finished: Finished,
    /// Tasks that buckets would have run as trees, and did not as graphs.
    pub(crate) tasks_shared_in_buckets: u64,
    /// Tasks that were not even planned to run: their results followed from what earlier studies had computed.
    pub(crate) tasks_recalled: u64,
    /// Wall seconds that finding those took.
    pub(crate) recall_seconds: f64,
    /// What operations are believed to cost now.
    pub(crate) costs: Costs,
}

/// What is to be executed.
pub(crate) struct ToExecute {
    pub(crate) plan: ExecutionPlan,
    /// Instances of which the results are known.
    pub(crate) finished: BTreeSet<InstanceId>,
    /// Follows the study.
    pub(crate) observer: Observer,
    /// What operations are believed to cost; whoever executes the study may learn.
    pub(crate) costs: Arc<Mutex<Costs>>,
    /// Counts the regions held, where they are held here.
    pub(crate) ledger: Arc<Ledger>,
}

/// Whoever executes a study.
pub(crate) trait Executor {
    /// Executes it to its end, or until it is stopped.
    fn execute(&mut self, work: ToExecute) -> Outcome<Finished>;

    /// What is to be done when responses can no longer be written down.
    fn broken(&self) -> Box<dyn FnOnce() + Send>;

    /// In words for whoever wants the results: a response could not be written down in this folder.
    fn unwritten(&self, folder: &Path, error: &WriterError) -> String;

    /// Is told how many responses are on disk of those that this process has reported.
    fn durable(&self) -> Box<dyn FnMut(u64) + Send>;
}

/// Executes studies in this process.
pub(crate) struct Here<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) past: &'a Past,
    pub(crate) below: Option<Arc<Below>>,
    pub(crate) resources: Resources,
    pub(crate) interrupt: &'a mut Interrupt,
}

impl Executor for Here<'_> {
    fn execute(&mut self, work: ToExecute) -> Outcome<Finished> {
        let executed = run_embedded(Embedded {
            plan: work.plan,
            finished: work.finished,
            registry: self.prepared.registry.clone(),
            sources: inputs::sources(self.prepared),
            resources: self.resources,
            costs: work.costs,
            past: self.past.clone(),
            ledger: work.ledger,
            below: self.below.clone(),
            observer: work.observer,
            stop: self.interrupt.take_asked(),
        });
        executed.map_err(Stop::defect)
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        Box::new(self.interrupt.asker())
    }

    fn unwritten(&self, folder: &Path, error: &WriterError) -> String {
        format!("--out {}: {error}; --resume continues the study", folder.display())
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        Box::new(|_| {})
    }
}

/// Executes what of the plan is not known yet. The outcome is that of the whole study: results of earlier processes are
/// among the results, and tasks that only those needed are counted as if this one had run them. `follow` is told where
/// progress can be looked at.
///
/// # Errors
/// [`Stop::Input`] when responses can no longer be written down, [`Stop::Defect`] when the plan cannot be executed.
pub(crate) fn execute(
    prepared: &Prepared,
    woven: &mut Woven,
    session: &Session,
    past: &Past,
    executor: &mut impl Executor,
    shown: Shown,
    follow: impl FnOnce(Progress),
) -> Outcome<Executed> {
    let stage = prepared.study.workflow.response.stage;
    let (evaluations, tiles) = (prepared.design.evaluations.len(), prepared.study.tiles.len());
    let within = |known: &&Known| known.evaluation <= evaluations && known.tile < tiles;
    let place = |known: &Known| woven.instance(known.evaluation, known.tile, stage);
    let mut before: HashMap<InstanceId, &Known> =
        session.known.iter().filter(within).map(|known| (place(known), known)).collect();
    let open_after_journal = woven.plan.open(&before.keys().copied().collect());
    let recalling = Instant::now();
    let recalled = past::known(prepared, past);
    let recall_seconds = recalling.elapsed().as_secs_f64();
    for known in &recalled {
        before.entry(place(known)).or_insert(known);
    }
    let finished: BTreeSet<InstanceId> = before.keys().copied().collect();
    let plan = std::mem::take(&mut woven.plan);
    let open = plan.open(&finished);
    let whole = vec![true; open.len()];
    let all = task_counts(&plan, &whole, plan.sharing).map_err(Stop::defect)?;
    // Counting takes as long as planning; what is the same is counted once.
    let count = |open: &[bool], sharing| {
        let is_all = open == whole && sharing == plan.sharing;
        if is_all { Ok(all.clone()) } else { task_counts(&plan, open, sharing).map_err(Stop::defect) }
    };
    let counts = count(&open, plan.sharing)?;
    let as_trees = count(&whole, Sharing::Tree)?;
    let tasks_shared_in_buckets = as_trees.values().sum::<u64>() - all.values().sum::<u64>();
    let after_journal = count(&open_after_journal, plan.sharing)?;
    let tasks_recalled = after_journal.values().sum::<u64>() - counts.values().sum::<u64>();
    let skipped = skipped(&all, &after_journal);

    let costs = Arc::new(Mutex::new(prepared.costs.clone()));
    let ledger = Arc::new(Ledger::default());
    let (stands_for, runs_of) = runs(prepared, woven, open.len());
    let totals = Totals {
        evaluations,
        tiles,
        tasks: counts.values().sum(),
        tasks_a_run: prepared.study.workflow.stages.iter().map(|stage| stage.tasks.len() as u64).sum(),
        runs_of,
    };
    let progress = Progress::new(shown, totals, Arc::clone(&ledger));
    progress.known(before.values().map(|known| (known.evaluation, known.tile)));
    follow(progress.clone());
    let told = progress.clone();
    let (mut durable, mut records) = (executor.durable(), 0);
    let acknowledge = move |known: &[Known]| {
        records += known.len() as u64;
        durable(records);
        told.known(known.iter().map(|known| (known.evaluation, known.tile)));
    };
    let writer = session.record(acknowledge, executor.broken())?;
    let (recorder, told) = (writer.recorder(), progress.clone());
    let observer = move |notice: Notice<'_>| match notice {
        Notice::Reported { instance, results } => {
            if let Some((evaluation, tile)) = stands_for[instance.index()] {
                recorder.record(Known { evaluation, tile, results: results.to_vec() });
            }
        }
        Notice::Failed(instance) => stands_for[instance.index()].into_iter().for_each(|run| told.failed(run)),
        Notice::Done(tasks) => {
            let ran = tasks.iter().filter(|task| matches!(task.done, TaskDone::Ran { .. })).count();
            told.done(tasks.len() as u64, ran as u64);
        }
        Notice::Progress(_) => {}
    };
    let costs_of_all = Arc::clone(&costs);
    let observer = Box::new(observer);
    let executed = executor.execute(ToExecute { plan, finished, observer, costs: costs_of_all, ledger });
    let written = writer.finish();
    progress.finish();
    let mut executed = executed?;
    written.map_err(|error| Stop::Input(executor.unwritten(session.folder.path(), &error)))?;
    for (instance, known) in before {
        executed.outcome.results.entry(instance).or_insert_with(|| known.results.clone());
    }
    for (task, runs) in skipped {
        executed.outcome.tasks.entry(task).or_insert(TaskTotal::default()).runs += runs;
    }
    let costs = costs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Executed { finished: executed, tasks_shared_in_buckets, tasks_recalled, recall_seconds, costs })
}

type Counts = BTreeMap<(usize, usize), u64>;

/// Tasks of `all` that are not in `open`.
fn skipped(all: &Counts, open: &Counts) -> Counts {
    let left = |(task, &count): (&(usize, usize), &u64)| {
        let rest = count - open.get(task).copied().unwrap_or(0);
        (rest > 0).then_some((*task, rest))
    };
    all.iter().filter_map(left).collect()
}

/// A run: evaluation and tile.
type Run = (usize, usize);

/// Of the plan's `instances`, for each that responds the run that stands for it; and by that run, all evaluations' runs it
/// serves.
fn runs(prepared: &Prepared, woven: &Woven, instances: usize) -> (Vec<Option<Run>>, HashMap<Run, Vec<Run>>) {
    let stage = prepared.study.workflow.response.stage;
    let first = usize::from(!prepared.reference_run());
    let (mut stands_for, mut runs_of) = (vec![None; instances], HashMap::new());
    for evaluation in first..=prepared.design.evaluations.len() {
        for tile in 0..prepared.study.tiles.len() {
            let instance = woven.instance(evaluation, tile, stage);
            let run = *stands_for[instance.index()].get_or_insert_with(|| woven.first_run(instance));
            let runs: &mut Vec<Run> = runs_of.entry(run).or_default();
            // The reference is compared with itself, and is no evaluation.
            if evaluation > 0 {
                runs.push((evaluation, tile));
            }
        }
    }
    (stands_for, runs_of)
}
