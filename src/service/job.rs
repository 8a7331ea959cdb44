//! One study of the manager's, from its plan to its results, on a thread of its own.
//!
//! A study of several parts is several plans of the manager actor, one after another: each phase, and each size of a sample that
//! grows, under an id that is the same after a restart. `parts` says what follows what.

use super::inputs::InputStore;
use super::local::Lookup;
use super::mend;
use super::state::{Ended, Kept};
use super::studies::{Followed, Shared};
use super::submission::PlanChoice;
use crate::analysis::Collected;
use crate::api::view::StudyState;
use crate::cli::{BucketArgs, TaskOrderName};
use crate::command::way::{BucketLimits, Way};
use crate::execution::{self, Executed, Executor, ToExecute};
use crate::exit::{Outcome, Stop};
use crate::gallery::previews::Previews;
use crate::journal::{self, WriterError};
use crate::output::folder::Folder;
use crate::output::record::{Plan, Run};
use crate::parts::{self, Grown, Part, Planned, phases};
use crate::progress::{Counts, Shown};
use crate::results::{self, phases::PlanOfPhases};
use crate::session::{self, Existing, Found, Session};
use crate::study::Prepared;
use crate::weave::{self, Loom};
use pleach_actors::embedded::Finished;
use pleach_actors::files::gather;
use pleach_actors::manager::{Begin, Durable, Halt, Look, ManagerActor, ManagerView, StudyRun};
use pleach_actors::stage::Past;
use pleach_dispatch::StudyId;
use pleach_dispatch::memory::Needs;
use pleach_dispatch::message::FileContent;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use time::OffsetDateTime;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// A study that is ready to be executed.
pub(crate) struct Ready {
    whole: Prepared,
    /// Its first phase, if it has several.
    first: Option<Prepared>,
    /// Of that, or of the whole study.
    planned: Planned,
    start: Instant,
}

impl Ready {
    /// What the study, or its first part, takes, one task at a time.
    pub(crate) fn needs(&self) -> &Needs {
        &self.planned.woven.plan.needs
    }
}

/// The workers that a study is planned for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    slots: NonZeroU32,
    /// Of the one that has least.
    memory_bytes: u64,
}

impl Workers {
    /// Those that are there.
    pub(crate) fn of(view: &ManagerView) -> Self {
        let slots: u32 = view.workers.iter().map(|worker| worker.slots).sum();
        let memory_bytes = view.workers.iter().map(|worker| worker.memory_bytes).min().unwrap_or(u64::MAX);
        Self { slots: NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN), memory_bytes }
    }
}

/// A file, with its companions, that may be a slide in several: where all of them lie as they do at the client.
fn find(store: &InputStore, lookup: &Lookup<'_>, file: &FileContent) -> Option<PathBuf> {
    let place = |part: FileContent| {
        let digest = blake3::Hash::from_bytes(part.digest).into();
        // What is no file now was one when the study was taken.
        lookup.find(Path::new(&part.path), digest, part.bytes).ok().flatten()
    };
    let places = file.parts().map(place).collect::<Option<Vec<PathBuf>>>()?;
    gather(store.folder(), file, places).ok()
}

/// Makes a study ready for these workers.
///
/// # Errors
/// [`Stop::Input`] when the study cannot be planned.
pub(crate) fn ready(id: u32, kept: &Kept, store: &InputStore, workers: Workers) -> Outcome<Ready> {
    let start = Instant::now();
    let lookup = Lookup::new(store);
    let whole = kept.submission.prepare(id, |file| find(store, &lookup, file))?;
    let first = (!whole.study.phases.is_empty()).then(|| whole.of_phase(0, None)).transpose()?;
    let planned = plan(first.as_ref().unwrap_or(&whole), kept.submission.plan, workers)?;
    Ok(Ready { whole, first, planned, start })
}

fn plan(prepared: &Prepared, choice: PlanChoice, workers: Workers) -> Outcome<Planned> {
    let start = Instant::now();
    let Workers { slots, memory_bytes } = workers;
    let way = Way::new(choice.strategy, choice.reuse);
    let buckets = BucketArgs {
        max_bucket_size: choice.max_bucket_size,
        max_buckets: choice.max_buckets,
        task_order: TaskOrderName::Given,
    };
    let loom = Loom::set_up(prepared.material(), way.merging()).map_err(Stop::input)?;
    let limits = BucketLimits::choose(buckets, &loom, slots, memory_bytes).map_err(Stop::input)?;
    let mut woven = weave::weave(loom, way.level(limits), slots.get()).map_err(Stop::input)?;
    weave::rehearse(&mut woven, &prepared.registry, 0).map_err(Stop::defect)?;
    woven.plan.durable = prepared.study.durable;
    let plan = Plan {
        strategy: way.strategy_name(),
        reuse: way.reuse_name(),
        figures: woven.figures.clone(),
        planning_seconds: Some(start.elapsed().as_secs_f64()),
        workers: slots.get(),
        max_bucket_size: way.max_bucket_size(limits),
        max_buckets: way.max_buckets(limits),
    };
    Ok(Planned { woven, plan })
}

/// Executes a plan on the manager's workers.
struct Cluster<'a> {
    shared: &'a Arc<Shared>,
    id: StudyId,
    /// See [`Parts`].
    keeps: bool,
    inputs: std::collections::HashMap<pleach_regions::RegionKey, pleach_dispatch::message::InputFile>,
    replan: Option<weave::Replan>,
}

impl Executor for Cluster<'_> {
    fn execute(&mut self, work: ToExecute) -> Outcome<Finished> {
        let (done, outcome) = oneshot::channel();
        let study = StudyRun {
            plan: work.plan,
            finished: work.finished,
            inputs: std::mem::take(&mut self.inputs),
            observer: work.observer,
            replanner: self.replan.take().map(|replan| Box::new(replan) as _),
            keeps: self.keeps,
            done,
        };
        let begun = self.shared.manager.send(Begin { id: self.id, study });
        let begun = self.shared.network.block_on(begun).map_err(Stop::defect)?;
        begun.map_err(Stop::defect)?;
        let outcome = outcome.blocking_recv().map_err(Stop::defect)?;
        Ok(Finished { outcome, peak_bytes: 0, left_bytes: 0 })
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        let (manager, id) = (self.shared.manager.clone(), self.id);
        Box::new(move || manager.do_send(Halt(id)))
    }

    fn unwritten(&self, folder: &Path, error: &WriterError) -> String {
        format!("{}: {error}; make room there, or put right what is wrong with it", folder.display())
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        let (manager, study) = (self.shared.manager.clone(), self.id);
        Box::new(move |records| manager.do_send(Durable { study, records }))
    }
}

/// Executes the parts of a study on the manager's workers.
struct Parts<'a, F> {
    shared: &'a Arc<Shared>,
    id: u32,
    choice: PlanChoice,
    /// The present one, from 0.
    phase: usize,
    /// Workers keep what tasks have computed, until the study is over: for the parts that follow, and for the last one where
    /// they come back to another manager.
    keeps: bool,
    past: Past,
    /// What earlier phases came to, as far as it does not count for this one.
    before: Counts,
    /// Tasks that earlier rounds of this phase had run.
    rounds_tasks: u64,
    /// Is told where progress can be looked at.
    follow: F,
}

impl<F: FnMut(Followed)> parts::Runner for Parts<'_, F> {
    fn plan(&mut self, prepared: &Prepared) -> Outcome<Planned> {
        let view = self.shared.network.block_on(self.shared.manager.send(Look)).map_err(Stop::defect)?;
        plan(prepared, self.choice, Workers::of(&view))
    }

    fn execute(
        &mut self,
        prepared: &Prepared,
        planned: &mut Planned,
        session: &Session,
        round: usize,
    ) -> Outcome<Executed> {
        let Planned { woven, plan } = planned;
        let replan = (plan.strategy == "trtma").then(|| {
            let most = plan.max_buckets.and_then(NonZeroUsize::new);
            woven.take_replan(most.unwrap_or(NonZeroUsize::MAX))
        });
        let number = |number: usize, what: &str| {
            let most = u16::MAX;
            u16::try_from(number).map_err(|_| {
                let name = &prepared.study.name;
                Stop::Input(format!("study {name}: it has {number} {what}; a manager runs up to {most}"))
            })
        };
        let id = StudyId {
            study: self.id,
            phase: number(self.phase, "phases")?,
            round: number(round, "times its sample has grown")?,
        };
        let keeps = self.keeps;
        let inputs = self.shared.input_files(self.id, prepared);
        let mut cluster = Cluster { shared: self.shared, id, keeps, inputs, replan };
        let (stage, tree) = results::merged(plan, &prepared.study.workflow.stages);
        let before = Counts { tasks_run: self.before.tasks_run + self.rounds_tasks, ..self.before };
        let (phase, evaluations) = (self.phase + 1, prepared.design.evaluations.len());
        let follow = |progress| (self.follow)(Followed { progress, stage, tree, phase, evaluations, before });
        let shown = Shown::Nothing;
        let executed = execution::execute(prepared, woven, session, &self.past, &mut cluster, shown, follow)?;
        self.rounds_tasks += executed.finished.outcome.tasks.values().map(|total| total.runs).sum::<u64>();
        Ok(executed)
    }

    fn stopped(&self, _: &Prepared, _: &Executed, _: &Collected, _: &Session) -> Stop {
        Stop::Interrupted(format!("study {} was cancelled", self.id))
    }
}

impl<F: FnMut(Followed)> Parts<'_, F> {
    /// Executes the study, or a phase of it, and writes its results into a folder.
    fn part(&mut self, prepared: Prepared, planned: Planned, out: &Path, start: Instant) -> Outcome<Part> {
        mend::owner_of(&self.shared.state, self.id, out, &prepared.digest)?;
        mend::journal_in(&self.shared.state, self.id, out)?;
        // Without a journal, results there are those of a manager that ended before it recorded the study's end.
        let has_journal = out.join(journal::NAME).exists();
        let existing = if has_journal { Existing::Resume } else { Existing::Overwrite };
        let mut session = match session::begin(out, &prepared, existing)? {
            Found::Complete(_) => return Err(Stop::defect("results of a study that has not ended")),
            Found::Open(session) => session,
        };
        let id = self.id;
        if session.cut_bytes > 0 {
            warn!(
                study = id,
                "study {id}: the last {} bytes of its journal were cut short or damaged; what they said is computed again",
                session.cut_bytes
            );
        }
        self.rounds_tasks = 0;
        let grown = parts::execute(self, prepared, planned, &mut session)?;
        let Grown { prepared, planned, executed, collected, convergence } = grown;
        let done = results::Done {
            prepared: &prepared,
            plan: &planned.plan,
            executed: &executed,
            past: &self.past,
            below: None,
            costs_lost: None,
            convergence: convergence.as_ref(),
            start,
        };
        let written = results::write(&done, &collected, &Previews::default(), &session.folder)?;
        Ok(Part { prepared, plan: planned.plan, collected, written, session, left_bytes: 0 })
    }

    /// Executes all phases, and writes what they come to together.
    fn phases(
        &mut self,
        whole: &Prepared,
        first: &Prepared,
        planned: Planned,
        out: &Path,
        start: Instant,
    ) -> Outcome<Run> {
        let (names, digest) = (phases::names(&whole.study), phases::digest(first));
        mend::owner_of(&self.shared.state, self.id, out, &digest)?;
        let folder = Folder::take(out, &digest)?;
        folder.write_json("plan.json", &PlanOfPhases::new(&whole.study.name, &digest, &names))?;
        let mut planned = Some(planned);
        let id = self.id;
        let tell = |what: &str| warn!(study = id, "study {id}: {what}");
        let parts = phases::execute(whole, out, tell, |phase, out| {
            let start = Instant::now();
            self.phase = phase.number;
            let planned = planned.take().map_or_else(|| parts::Runner::plan(self, &phase.prepared), Ok)?;
            let (number, of) = (phase.number + 1, names.len());
            info!(study = self.id, phase = number, "study {}: phase {number} of {of} begins", self.id);
            let part = self.part(phase.prepared, planned, out, start)?;
            self.before.evaluations += part.written.run.evaluations;
            self.before.failed_runs += part.written.run.failed;
            self.before.tasks_run += self.rounds_tasks;
            Ok(part)
        })?;
        let run =
            results::phases::write(&phases::told(&parts, &names), start.elapsed().as_secs_f64(), &folder)?;
        // The last one first: where one is gone, all results are known to be written.
        parts.iter().rev().try_for_each(|(part, _)| part.session.end(true))?;
        Ok(run)
    }
}

/// Where the manager actor is.
pub(crate) type Manager = actix::Addr<ManagerActor>;

/// Executes a study and writes its results; `follow` is told, of each part, where its progress can be looked at. Returns how
/// it ended, or `None` when it was cancelled.
///
/// # Errors
/// [`Stop`], when it could not be executed, or its results not be written: it can be tried again.
pub(crate) fn run(
    shared: &Arc<Shared>,
    id: u32,
    choice: PlanChoice,
    ready: Ready,
    follow: impl FnMut(Followed),
) -> Outcome<Option<Ended>> {
    let Ready { whole, first, planned, start } = ready;
    let out = shared.state.results(id);
    let mut parts = Parts {
        shared,
        id,
        choice,
        phase: 0,
        keeps: first.is_some() || whole.study.until.is_some(),
        past: Past::default(),
        before: Counts::default(),
        rounds_tasks: 0,
        follow,
    };
    let (run, place) = match first {
        Some(first) => (parts.phases(&whole, &first, planned, &out, start), " of its phases"),
        None => {
            let run = parts.part(whole, planned, &out, start).and_then(|part| {
                part.session.end(true)?;
                Ok(part.written.run)
            });
            (run, "")
        }
    };
    let run = match run {
        Err(Stop::Interrupted(_)) => return Ok(None),
        run => run?,
    };
    Ok(Some(Ended {
        state: StudyState::Complete,
        message: (run.failed > 0).then(|| format!("{} runs failed, listed in failed.csv{place}", run.failed)),
        evaluations_done: run.evaluations as u64,
        tasks_executed: run.tasks_executed,
        failed: run.failed as u64,
        ended: Some(OffsetDateTime::now_utc()),
        results: Some(super::results::checksums(&out).map_err(Stop::input)?),
    }))
}
