//! One study of the manager's, from its plan to its results, on a thread of its own.

use super::inputs::{InputDigest, InputStore};
use super::state::{Ended, Kept};
use super::studies::{Followed, Shared};
use crate::analysis::Collected;
use crate::api::view::StudyState;
use crate::cli::{BucketArgs, TaskOrderName};
use crate::command::way::{BucketLimits, Way};
use crate::execution::{self, Executor, ToExecute};
use crate::exit::{Outcome, Stop};
use crate::gallery::previews::Previews;
use crate::inputs::content_digest;
use crate::journal::WriterError;
use crate::output::record::Plan;
use crate::progress::Shown;
use crate::results;
use crate::session::{self, Found};
use crate::study::Prepared;
use crate::weave::{self, Loom, Woven};
use pleach_actors::embedded::Finished;
use pleach_actors::files::gather;
use pleach_actors::manager::{Begin, Durable, Halt, ManagerActor, StudyRun};
use pleach_actors::stage::Past;
use pleach_dispatch::StudyId;
use pleach_dispatch::memory::Needs;
use pleach_dispatch::message::FileContent;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::warn;

/// A study that is ready to be executed.
pub(crate) struct Planned {
    pub(crate) prepared: Prepared,
    pub(crate) woven: Woven,
    pub(crate) plan: Plan,
    max_buckets: NonZeroUsize,
    /// What the study takes, one task at a time.
    pub(crate) needs: Needs,
    start: Instant,
}

/// A file of this content: where the client has it, if it lies there here as well, or as clients have sent it.
pub(crate) fn find_one(store: &InputStore, path: &Path, digest: InputDigest) -> Option<PathBuf> {
    let sent = store.path(digest);
    if sent.is_file() {
        return Some(sent);
    }
    (content_digest(path)? == digest.bytes()).then(|| path.to_owned())
}

/// The same of a file that may be a slide in several: where all of them lie as they do there.
fn find(store: &InputStore, file: &FileContent) -> Option<PathBuf> {
    let place = |part: FileContent| {
        find_one(store, Path::new(&part.path), blake3::Hash::from_bytes(part.digest).into())
    };
    let places = file.parts().map(place).collect::<Option<Vec<PathBuf>>>()?;
    gather(store.folder(), file, places).ok()
}

/// Plans a study for workers of so many processors and so much memory.
///
/// # Errors
/// [`Stop::Input`] when the study cannot be planned.
pub(crate) fn plan(
    id: u32,
    kept: &Kept,
    store: &InputStore,
    slots: NonZeroU32,
    memory_bytes: u64,
) -> Outcome<Planned> {
    let start = Instant::now();
    let mut prepared = kept.submission.prepare(id, |file| find(store, file))?;
    let choice = kept.submission.plan;
    prepared.costs = pleach_dispatch::costs::Costs::default();
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
    let needs = woven.plan.needs.clone();
    let plan = Plan {
        strategy: way.strategy_name(),
        reuse: way.reuse_name(),
        figures: woven.figures.clone(),
        planning_seconds: Some(start.elapsed().as_secs_f64()),
        workers: slots.get(),
        max_bucket_size: way.max_bucket_size(limits),
        max_buckets: way.max_buckets(limits),
    };
    let max_buckets = way.max_buckets(limits).and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX);
    Ok(Planned { prepared, woven, plan, max_buckets, needs, start })
}

/// Executes studies on the manager's workers.
struct Cluster<'a> {
    shared: &'a Arc<Shared>,
    id: u32,
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
            done,
        };
        let begun = self.shared.manager.send(Begin { id: StudyId(self.id), study });
        let begun = self.shared.network.block_on(begun).map_err(Stop::defect)?;
        begun.map_err(Stop::defect)?;
        let outcome = outcome.blocking_recv().map_err(Stop::defect)?;
        Ok(Finished { outcome, peak_bytes: 0, left_bytes: 0 })
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        let (manager, id) = (self.shared.manager.clone(), StudyId(self.id));
        Box::new(move || manager.do_send(Halt(id)))
    }

    fn unwritten(&self, folder: &Path, error: &WriterError) -> String {
        format!("{}: {error}; make room there, or put right what is wrong with it", folder.display())
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        let (manager, study) = (self.shared.manager.clone(), StudyId(self.id));
        Box::new(move |records| manager.do_send(Durable { study, records }))
    }
}

/// Where the manager actor is.
pub(crate) type Manager = actix::Addr<ManagerActor>;

/// Executes a study and writes its results; `follow` is told where its progress can be looked at. Returns how it ended,
/// or `None` when it was cancelled.
///
/// # Errors
/// [`Stop`], when it could not be executed, or its results not be written: it can be tried again.
pub(crate) fn run(
    shared: &Arc<Shared>,
    id: u32,
    planned: Planned,
    follow: impl FnOnce(Followed),
) -> Outcome<Option<Ended>> {
    let Planned { prepared, mut woven, plan, max_buckets, start, .. } = planned;
    let out = shared.state.results(id);
    let session = match session::begin(&out, &prepared, out.join(crate::journal::NAME).exists())? {
        Found::Complete(_) => return Err(Stop::defect("results of a study that has not ended")),
        Found::Open(session) => session,
    };
    if session.cut_bytes > 0 {
        warn!(
            study = id,
            "study {id}: the last {} bytes of its journal were cut short or damaged; what they said is computed again",
            session.cut_bytes
        );
    }
    results::write_plan(&prepared, &plan, &session.folder)?;
    let replan = (plan.strategy == "trtma").then(|| woven.take_replan(max_buckets));
    let inputs = shared.input_files(id, &prepared);
    let mut cluster = Cluster { shared, id, inputs, replan };
    let past = Past::default();
    let (stage, tree) = results::merged(&plan, &prepared.study.workflow.stages);
    let follow = |progress| follow(Followed { progress, stage, tree });
    let mut executed =
        execution::execute(&prepared, &mut woven, &session, &past, &mut cluster, Shown::Nothing, follow)?;
    executed.count_skipped();
    let collected = Collected::new(&prepared, &woven, &executed.finished.outcome);
    if executed.finished.outcome.stopped {
        return Ok(None);
    }
    let done = results::Done {
        prepared: &prepared,
        plan: &plan,
        executed: &executed,
        past: &past,
        below: None,
        costs_lost: None,
        convergence: None,
        start,
    };
    let written = results::write(&done, &collected, &Previews::default(), &session.folder)?;
    session.end(true)?;
    let failed = collected.failed();
    Ok(Some(Ended {
        state: StudyState::Complete,
        message: (failed > 0).then(|| format!("{failed} runs failed, listed in failed.csv")),
        evaluations_done: written.run.evaluations as u64,
        tasks_executed: written.run.tasks_executed,
        failed: failed as u64,
    }))
}
