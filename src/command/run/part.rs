//! Executes a whole study or one of its phases, from the plan to the results. All rounds and phases use one engine.

use crate::accelerators::{self, OpenAccelerators};
use crate::cli::RunArgs;
use crate::command::{load_costs, meter, process_bytes, workers};
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::operations;
use crate::progress_display::fitting_stderr;
use crate::spill::{self, OpenTiers};
use crate::terminal::{print_line, print_notice};
use pleach_accelerate::DeviceSpec;
use pleach_actors::spill::SpillStore;
use pleach_actors::task::Accelerators;
use pleach_actors::worker::Resources;
use pleach_cache::{PriorResults, StudyLabel};
use pleach_dispatch::cost_model::CostModel;
use pleach_execution::cost_history;
use pleach_execution::executor::{self, ExecutionResult, LocalExecutor};
use pleach_execution::result_files;
use pleach_execution::rounds::{self, RoundResult, StudyResult};
use pleach_execution::session::{self, Session, SessionState};
use pleach_planner::memory_limit::default_memory_bytes;
use pleach_planner::memory_size::MemorySize;
use pleach_planner::{Plan, PlanOptions};
use pleach_report::gallery::previews::Previews;
use pleach_results::analysis::CollectedResponses;
use pleach_results::cache_walk;
use pleach_results::folder::Folder;
use pleach_results::journal;
use pleach_study::PreparedStudy;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Engine, tiers and options for all phases of a study.
pub(super) struct Runner<'a> {
    pub(super) args: &'a RunArgs,
    previews: Previews,
    pub(super) options: PlanOptions,
    pub(super) workers: NonZeroU32,
    pub(super) accelerators: Accelerators,
    /// Memory limit in bytes.
    pub(super) memory_bytes: u64,
    spill: Option<Arc<SpillStore>>,
    pub(super) spill_bytes: u64,
    prior: PriorResults,
    /// Interrupt, taken when the engine starts.
    interrupt: Option<&'a mut Interrupt>,
    executor: Option<LocalExecutor>,
}

/// Prints a notice that `--resume` found nothing to continue: the folder may be mistyped.
pub(super) fn notice_of_nothing(args: &RunArgs, out: &Path) {
    if !args.quiet {
        print_notice(&format!("nothing to resume in {}; starting the study", out.display()));
    }
}

/// Outcome of a study or phase.
pub(super) enum RunEnd {
    /// All results existed before. Nothing was executed.
    Before(Folder),
    /// Executed by this process.
    Now(Box<RoundResult>),
}

impl<'a> Runner<'a> {
    /// Creates the runner for studies that read the files of this study. Opens the cache and the spill tiers.
    pub(super) fn new(
        args: &'a RunArgs,
        prepared: &PreparedStudy,
        interrupt: &'a mut Interrupt,
    ) -> CommandResult<Self> {
        let previews = Previews::find(&args.preview, &prepared.study.workflow)?;
        let options = args.plan.options();
        if args.cache.cache.is_some() && options.reuse_name() != Some("value") {
            return Err(CommandError::Input(
                "--cache: results are keyed by input content; --reuse value with naive, sca, rtma, trtma, ranges or hrb is allowed"
                    .to_owned(),
            ));
        }
        let OpenAccelerators { accelerators, remarks } = accelerators::open(&args.accelerators)?;
        // Most machines have no OpenCL. Without a choice of devices, their absence deserves no notice.
        let is_asked = args.accelerators.accelerators != DeviceSpec::Auto || !accelerators.is_empty();
        if !args.quiet && is_asked {
            remarks.iter().for_each(|remark| print_notice(remark));
        }
        accelerators::check(prepared, &accelerators)?;
        let cache = args.cache.options().map(cache_walk::open).transpose()?;
        let (study, user) = (prepared.study.name.clone(), crate::command::user_name());
        let label = Some(Arc::new(StudyLabel { study, id: None, user }));
        let tiers = spill::open(&args.spill.options())?;
        let spill_bytes = tiers.as_ref().map_or(0, OpenTiers::bytes);
        let memory_bytes = args.memory.map_or_else(default_memory_bytes, MemorySize::bytes);
        Ok(Self {
            args,
            previews,
            options,
            workers: workers(args.workers),
            accelerators,
            memory_bytes,
            spill: tiers.map(|tiers| tiers.spill),
            spill_bytes,
            prior: PriorResults { cache, label, ..PriorResults::default() },
            interrupt: Some(interrupt),
            executor: None,
        })
    }

    /// Returns the requested previews.
    pub(super) fn previews(&self) -> &Previews {
        &self.previews
    }

    fn executor(&mut self, prepared: &PreparedStudy) -> CommandResult<LocalExecutor> {
        // One engine for all phases: its result cache carries task results from one phase to the next.
        if let Some(here) = self.executor.take() {
            return Ok(here);
        }
        let interrupt = self.interrupt.take().ok_or_else(|| CommandError::defect("the engine is missing"))?;
        operations::limit_processes(self.memory_bytes);
        let resources = Resources {
            slots: self.workers,
            accelerators: self.accelerators.clone(),
            memory_bytes: self.memory_bytes,
            active_paths: self.args.active_paths,
            meter,
            process_bytes,
        };
        let (stopped, stop) = (interrupt.take_stop_requested(), interrupt.stopper());
        Ok(LocalExecutor::start(prepared, &self.prior, self.spill.clone(), resources, stopped, stop)?)
    }

    /// Executes a study or phase into a folder. With `retains_results`, another phase may follow.
    ///
    /// # Errors
    /// [`CommandError::Input`] as in [`session::begin`], or if it cannot be planned. [`CommandError::Interrupted`] if
    /// the user interrupts it.
    pub(super) fn execute(
        &mut self,
        mut first: PreparedStudy,
        out: &Path,
        retains_results: bool,
    ) -> CommandResult<RunEnd> {
        let (start, args) = (Instant::now(), self.args);
        load_costs(&mut first, args.plan.buckets, args.cache.cache.as_deref())?;
        let planned = self.fitting_plan(&first)?;
        pleach_pages::set_limit_bytes(self.memory_bytes);
        if self.prior.cache.is_some() && self.executor.is_none() {
            let identities: HashMap<_, _> = cache_walk::identities(&first);
            self.prior.identities = Arc::new(identities);
        }
        let mut session = match session::begin(out, &first, args.existing())? {
            SessionState::Complete(folder) => return Ok(RunEnd::Before(folder)),
            SessionState::Open(session) => session,
        };
        // A study with phases prints this notice once, for all phases.
        if args.resume && session.is_new && first.study.phase.is_none() {
            notice_of_nothing(args, out);
        }
        self.say_what_is_known(&first, &session);
        // After `session::begin`: a folder that refuses the study must not cost the start of an engine.
        let mut here = self.executor(&first)?;
        here.retains_results = retains_results || first.study.until.is_some();
        self.executor = Some(here);
        let StudyResult { prepared, planned, executed, collected, convergence } =
            rounds::execute(self, first, planned, &mut session)?;
        if !args.quiet {
            self.accelerators.take_remarks().iter().for_each(|remark| print_notice(remark));
            executed.records_lost.iter().for_each(|lost| print_notice(lost));
        }
        // Before the record of the study, which has the warnings of its cache.
        if let Some(cache) = &self.prior.cache {
            cache.flush();
        }
        let costs_lost = self.keep_costs(&prepared, &executed.costs);
        let done = result_files::CompletedStudy {
            prepared: &prepared,
            plan: &planned.record,
            executed: &executed,
            prior: &self.prior,
            spill: self.spill.as_deref(),
            costs_lost,
            convergence: convergence.as_ref(),
            cost: None,
            start,
        };
        let written = result_files::write(&done, &collected, &self.previews, &session.folder)?;
        let (plan, retained_bytes) = (planned.record, executed.finished.retained_bytes);
        Ok(RunEnd::Now(Box::new(RoundResult { prepared, plan, collected, written, session, retained_bytes })))
    }

    /// Writes the learned costs to the cache, for later studies. Returns a message if that fails.
    fn keep_costs(&self, prepared: &PreparedStudy, learned: &CostModel) -> Option<String> {
        let folder = self.args.cache.cache.as_deref().filter(|_| *learned != prepared.costs)?;
        if cache_walk::is_bucket(folder) {
            return None;
        }
        let lost = cost_history::store(folder, learned).err()?;
        Some(format!("operation costs are not stored for later plans: {lost}"))
    }

    fn say_what_is_known(&self, prepared: &PreparedStudy, session: &Session) {
        let args = self.args;
        if args.quiet || args.json || (session.known.is_empty() && session.cut_bytes == 0) {
            return;
        }
        let phase = prepared.study.phase.map_or_else(String::new, |phase| format!("phase {phase} "));
        print_line(&format!("{phase}resumed: {} responses are known", session.known.len()));
        if session.cut_bytes > 0 {
            print_line(&format!(
                "the last {} bytes of the journal were incomplete or corrupt; their responses are computed again",
                session.cut_bytes
            ));
        }
    }

    /// Ends the engine, if it has been started.
    pub(super) fn end(&mut self) {
        if let Some(here) = self.executor.take() {
            here.engine.end();
        }
    }
}

impl rounds::Runner for Runner<'_> {
    type Error = CommandError;

    fn plan(&mut self, prepared: &PreparedStudy) -> CommandResult<Plan> {
        self.fitting_plan(prepared)
    }

    fn execute(
        &mut self,
        prepared: &PreparedStudy,
        planned: &mut Plan,
        session: &Session,
        _: usize,
    ) -> CommandResult<ExecutionResult> {
        let args = self.args;
        let display = (!args.quiet && !args.json).then(fitting_stderr);
        let here = self.executor.as_mut().ok_or_else(|| CommandError::defect("the engine is missing"))?;
        Ok(executor::execute(prepared, &mut planned.study, session, &self.prior, here, display, |_| {})?)
    }

    fn stopped(
        &self,
        prepared: &PreparedStudy,
        executed: &ExecutionResult,
        collected: &CollectedResponses,
        session: &Session,
    ) -> CommandError {
        // Later studies can use the learned costs although this study was interrupted.
        drop(self.keep_costs(prepared, &executed.costs));
        let known = collected.runs.len() - collected.failed();
        CommandError::Interrupted(format!(
            "{known} of {} responses are in {}; --resume continues the study",
            collected.runs.len(),
            session.folder.path().join(journal::NAME).display(),
        ))
    }
}
