//! Writes the segmentation of a parameter set: what `pleach export` and `pleach apply` share.

use crate::cli::{FileArgs, ParameterArgs};
use crate::command::workers;
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::terminal::{print_json, print_line};
use indicatif::{ProgressBar, ProgressStyle};
use pleach_export::{
    Earlier, ExportFolder, ExportJob, ExportOptions, ExportOutcome, ExportProgress, ExportRequest,
    Segmentation, StudyImage, output_of,
};
use pleach_regions::DataRegion;
use pleach_results::chosen::{self, EvaluationChoice};
use pleach_study::applied;
use pleach_study::single_run::TaskOutput;
use pleach_workflow::{Registry, Study, Value};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::oneshot;

/// Looks up the output of a task on a tile of a study.
pub(super) type CachedOutputs<'a> = dyn Fn(usize, TaskOutput) -> Option<DataRegion> + Sync + 'a;

/// Parameter set and task output of a command.
pub(super) struct ChosenParameters {
    /// Number of the evaluation. `None` if `--set` changes it.
    evaluation: Option<usize>,
    /// A value for each parameter.
    pub(super) values: Vec<Value>,
    pub(super) output: TaskOutput,
    task: Option<String>,
}

impl ChosenParameters {
    /// Finds the parameter set of the options.
    pub(super) fn find(args: &ParameterArgs, study: &Study, registry: &Registry) -> CommandResult<Self> {
        let workflow = &study.workflow;
        let output = output_of(workflow, args.task.as_deref())
            .map_err(|error| CommandError::Input(format!("--task {error}")))?;
        let results = args.results.clone().unwrap_or_else(|| PathBuf::from(&study.name));
        if args.evaluation.is_none() && (args.results.is_some() || args.response.is_some()) {
            return Err(CommandError::Input(
                "--evaluation is missing: --results and --response choose an evaluation by number or role, as in \
                 --evaluation best"
                    .to_owned(),
            ));
        }
        let response = args.response.as_deref();
        let choice = args.evaluation.unwrap_or(EvaluationChoice::Default);
        let chosen = chosen::choose(choice, &results, response, &study.name, &workflow.parameters)?;
        let mut values = chosen.values;
        applied::set_values(&mut values, &args.set, workflow, registry)?;
        let evaluation = args.set.is_empty().then_some(chosen.evaluation);
        Ok(Self { evaluation, values, output, task: args.task.clone() })
    }

    fn segmentation<'s>(
        &'s self,
        study: &'s Study,
        registry: &'s Registry,
        microns_a_px: Option<f64>,
        tasks_executed: &'s AtomicU64,
        cached: &'s CachedOutputs<'s>,
    ) -> Segmentation<'s> {
        let (values, output) = (&self.values[..], self.output);
        Segmentation {
            workflow: &study.workflow,
            registry,
            values,
            output,
            cached,
            tasks_executed,
            microns_a_px,
        }
    }
}

/// Segmentation in progress: its folder, its parameters and its interrupt.
pub(super) struct WrittenSegmentation<'a> {
    args: &'a FileArgs,
    chosen: &'a ChosenParameters,
    options: ExportOptions,
    pub(super) folder: ExportFolder,
    stop: Arc<AtomicBool>,
    _interrupt: Interrupt,
    /// Receives the first signal. `None` after it was taken.
    stop_requested: Option<oneshot::Receiver<()>>,
    /// Number of images that an earlier process finished.
    complete: usize,
    /// Number of tasks that this process ran.
    pub(super) tasks_executed: AtomicU64,
    /// Studies of a cluster.
    pub(super) studies: Vec<ClusterStudy>,
}

/// Study that workers executed.
#[derive(Debug, Serialize)]
pub(super) struct ClusterStudy {
    pub(super) id: String,
    pub(super) tasks_executed: u64,
}

impl<'a> WrittenSegmentation<'a> {
    /// Claims the folder. `study` has the cutting of slides.
    pub(super) fn begin(
        args: &'a FileArgs,
        chosen: &'a ChosenParameters,
        study: &Study,
    ) -> CommandResult<Self> {
        if let Some(mpp) = args.mpp
            && !(mpp.is_finite() && mpp > 0.0)
        {
            return Err(CommandError::Input(format!("--mpp {mpp}: more than 0 is allowed, as in 0.25")));
        }
        let mut formats = args.formats.clone();
        formats.sort_unstable();
        formats.dedup();
        let options = ExportOptions { formats, class: args.class.clone(), gzip: args.gzip };
        let number = |value: &Value| match value {
            Value::Integer(number) => json!(number),
            Value::Real(number) => json!(number.get()),
        };
        let parameters = study.workflow.parameters.iter().zip(&chosen.values);
        let parameters: BTreeMap<_, _> =
            parameters.map(|(parameter, value)| (parameter.name.clone(), number(value))).collect();
        let mut slides = serde_json::to_value(&study.slides).map_err(CommandError::defect)?;
        if let Some(slides) = slides.as_object_mut() {
            slides.remove("files");
        }
        let request = ExportRequest {
            study: study.name.clone(),
            workflow: study.workflow.name.clone(),
            evaluation: chosen.evaluation,
            parameters,
            switched_off: study.switched_off.clone(),
            task: chosen.task.clone(),
            slides,
            microns_per_px: args.mpp,
            options: options.clone(),
        };
        let earlier = match (args.resume, args.overwrite) {
            (true, _) => Earlier::Resume,
            (_, true) => Earlier::Overwrite,
            _ => Earlier::Refuse,
        };
        let mut interrupt = Interrupt::listen()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (requested, stopped) = (interrupt.take_stop_requested(), Arc::clone(&stop));
        let (wake, stop_requested) = oneshot::channel();
        // Ends with the process.
        std::thread::spawn(move || {
            if requested.blocking_recv().is_ok() {
                stopped.store(true, Ordering::Relaxed);
                // Fails if nothing waits.
                let _ = wake.send(());
            }
        });
        let folder = ExportFolder::claim(&args.out, &request, earlier)?;
        Ok(Self {
            args,
            chosen,
            options,
            folder,
            stop,
            _interrupt: interrupt,
            stop_requested: Some(stop_requested),
            complete: 0,
            tasks_executed: AtomicU64::new(0),
            studies: Vec::new(),
        })
    }

    /// Returns the receiver of the first signal. `None` in later calls.
    pub(super) fn take_stop_requested(&mut self) -> Option<oneshot::Receiver<()>> {
        self.stop_requested.take()
    }

    /// Returns the chosen parameters.
    pub(super) fn chosen(&self) -> &'a ChosenParameters {
        self.chosen
    }

    /// Returns whether progress is not shown.
    pub(super) fn is_quiet(&self) -> bool {
        self.args.quiet || self.args.json
    }

    /// Returns the images that are not complete.
    pub(super) fn incomplete(&self, mut images: Vec<StudyImage>) -> Vec<StudyImage> {
        let complete: Vec<&str> = self.folder.complete().iter().map(|image| image.image.as_str()).collect();
        images.retain(|image| !complete.contains(&image.name.as_str()));
        images
    }

    /// Returns the cause why the header of an image cannot be read. `None` if it can.
    pub(super) fn unreadable(
        &self,
        study: &Study,
        registry: &Registry,
        image: &StudyImage,
    ) -> Option<String> {
        let segmentation =
            self.chosen.segmentation(study, registry, self.args.mpp, &self.tasks_executed, &|_, _| None);
        segmentation.geometry(study, image).err().map(|error| error.to_string())
    }

    /// Writes the images that are not complete, and adds them to the outcome.
    pub(super) fn run(
        &mut self,
        study: &Study,
        registry: &Registry,
        images: Vec<StudyImage>,
        cached: &CachedOutputs<'_>,
        outcome: &mut ExportOutcome,
    ) -> CommandResult {
        let before = images.len();
        let images = self.incomplete(images);
        self.complete += before - images.len();
        if outcome.is_stopped {
            return Ok(());
        }
        let tiles: usize = images.iter().map(|image| image.tiles.len()).sum();
        let bar = self.bar(tiles);
        let show = |progress: ExportProgress| {
            bar.set_position(progress.tiles as u64);
            bar.set_message(format!("{} images, {} objects", progress.images, progress.objects));
        };
        let (chosen, tasks_executed) = (self.chosen, &self.tasks_executed);
        let job = ExportJob {
            study,
            images: &images,
            segmentation: chosen.segmentation(study, registry, self.args.mpp, tasks_executed, cached),
            options: &self.options,
            threads: workers(self.args.workers).get() as usize,
            stop: &self.stop,
        };
        let done = job.run(&mut self.folder, show)?;
        bar.finish_and_clear();
        outcome.written.extend(done.written);
        outcome.failed.extend(done.failed);
        outcome.is_stopped = done.is_stopped;
        Ok(())
    }

    /// Returns the progress bar, which a terminal shows on stderr.
    fn bar(&self, tiles: usize) -> ProgressBar {
        if self.is_quiet() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} tiles, {msg}, {eta} left");
        let bar = ProgressBar::new(tiles as u64);
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Prints the result. Images without files give exit code 3.
pub(super) fn print_and_end(
    args: &FileArgs,
    writing: &WrittenSegmentation<'_>,
    outcome: &ExportOutcome,
) -> CommandResult {
    let folder = &writing.folder;
    let all = folder.complete();
    let objects: u64 = all.iter().map(|image| image.objects).sum();
    let failed = outcome.failed.len();
    let listed = if failed > 0 { Some(folder.write_failed(&outcome.failed)?) } else { None };
    if args.json {
        let failed: Vec<_> = outcome
            .failed
            .iter()
            .map(|failed| json!({ "image": failed.image, "cause": failed.cause }))
            .collect();
        print_json(&json!({
            "out": args.out.display().to_string(),
            "images": all,
            "objects": objects,
            "already_complete": writing.complete,
            "failed": failed,
            "stopped": outcome.is_stopped,
            "tasks_executed": writing.tasks_executed.load(Ordering::Relaxed),
            "studies": writing.studies,
        }))?;
    } else if !args.quiet {
        let names = writing.options.formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        let before = match writing.complete {
            0 => String::new(),
            complete => format!(" ({complete} complete before)"),
        };
        print_line(&format!(
            "{}: {} images{before}, {objects} objects as {names}",
            args.out.display(),
            all.len()
        ));
    }
    if outcome.is_stopped {
        return Err(CommandError::Interrupted(format!(
            "{} images are in {}; --resume continues",
            all.len(),
            args.out.display()
        )));
    }
    let Some(first) = outcome.failed.first() else { return Ok(()) };
    Err(CommandError::SomeFailed(format!(
        "{failed} of {} images failed, listed in {}; the first: {}: {}",
        failed + all.len(),
        listed.unwrap_or_default().display(),
        first.image,
        first.cause,
    )))
}
