//! Segmentation by the workers of a cluster: a study of one evaluation, whose masks this process takes from the task cache of the
//! workers.

use super::cached::CachedTasks;
use super::written::{ClusterStudy, WrittenSegmentation};
use crate::cli::ApplyArgs;
use crate::command::client::progress_bars::{StudyBar, TransferBar};
use crate::command::client::{connect, line_on_stderr};
use crate::exit::{CommandError, CommandResult};
use crate::operations;
use pleach_api::schema::{StudyState, StudyStatus};
use pleach_api::submission::{PlanChoice, Submission, SubmissionOptions};
use pleach_client::submit::submit;
use pleach_client::{Client, ClientError, InterruptibleWait, follow, plain};
use pleach_dispatch::plan::{GrantOrder, ReuseScope};
use pleach_export::{ExportOutcome, FailedImage, RecordedSubmission, StudyImage};
use pleach_planner::StrategyName;
use pleach_results::{cache_walk, tables};
use pleach_study::PreparedStudy;
use pleach_workflow::{Registry, Study};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Requests for entries that object storage has not received yet, one a second: uploads take seconds.
const MAX_REFRESHES: usize = 30;

/// Connection to a manager, and the task cache of its workers.
pub(super) struct ClusterSegmentation<'a> {
    args: &'a ApplyArgs,
    client: Client,
    cache: PathBuf,
}

impl<'a> ClusterSegmentation<'a> {
    /// Connects to the manager of the options. `None` without a manager. Reads the cache once, so that a wrong folder costs no
    /// submission.
    pub(super) fn connect(args: &'a ApplyArgs) -> CommandResult<Option<Self>> {
        let Some((manager, cache)) = args.cluster.given() else { return Ok(None) };
        let client = connect(&manager, InterruptibleWait::until_killed()?)?;
        cache_walk::open_to_read(&cache)?;
        Ok(Some(Self { args, client, cache }))
    }

    /// Segments the images on the workers, writes their files, and adds them to the outcome.
    pub(super) fn run(
        &mut self,
        writing: &mut WrittenSegmentation<'_>,
        study: &Study,
        registry: &Registry,
        images: Vec<StudyImage>,
        outcome: &mut ExportOutcome,
    ) -> CommandResult {
        let open = writing.incomplete(images.clone());
        let cause = |image: &StudyImage| writing.unreadable(study, registry, image);
        let mut causes: BTreeMap<String, String> =
            open.iter().filter_map(|image| Some((image.name.clone(), cause(image)?))).collect();
        let readable = open.iter().filter(|image| !causes.contains_key(&image.name));
        let mut tiles: Vec<usize> = readable.flat_map(|image| image.tiles.iter().copied()).collect();
        tiles.sort_unstable();
        if outcome.is_stopped || tiles.is_empty() {
            return writing.run(study, registry, images, &|_, _| None, outcome);
        }
        let prepared = PreparedStudy::applied(
            &self.args.study,
            &with_tiles(study, &tiles),
            &writing.chosen().values,
            registry,
        )?;
        let names: Vec<String> = prepared.study.tiles.iter().map(|tile| tile.name.clone()).collect();
        let ended = self.execute(writing, &prepared, registry)?;
        let failed = match ended.failed {
            0 => BTreeMap::new(),
            _ => tables::causes_by_tile(&self.client.result_bytes(&ended.id, "failed.csv")?),
        };
        let cached =
            CachedTasks::new(prepared, cache_walk::open_to_read(&self.cache)?, &writing.chosen().values);
        let output = writing.chosen().output;
        let is_expected = |place: &usize| !failed.contains_key(&names[*place]);
        let expected: Vec<usize> = (0..tiles.len()).filter(is_expected).collect();
        self.wait_for(&expected, |place| cached.has_trace(place, output), || cached.refresh())
            .map_err(|error| self.explained(error, &ended))?;
        // A run that failed after its segmentation has the segmentation.
        let place_of: HashMap<usize, usize> =
            tiles.iter().enumerate().map(|(place, tile)| (*tile, place)).collect();
        let failure = |tile: &usize| {
            let place = place_of.get(tile)?;
            failed.get(&names[*place]).filter(|_| !cached.has_trace(*place, output)).cloned()
        };
        let failures =
            open.iter().filter_map(|image| Some((image.name.clone(), image.tiles.iter().find_map(failure)?)));
        causes.extend(failures);
        let order: Vec<String> = images.iter().map(|image| image.name.clone()).collect();
        let (lost, kept): (Vec<_>, Vec<_>) =
            images.into_iter().partition(|image| causes.contains_key(&image.name));
        let first = outcome.failed.len();
        let found = |tile: usize, of| cached.output(*place_of.get(&tile)?, of);
        writing.run(study, registry, kept, &found, outcome)?;
        outcome.failed.extend(lost.into_iter().map(|image| {
            let cause = causes.remove(&image.name).unwrap_or_default();
            FailedImage { image: image.name, cause }
        }));
        // In the order of a run in one process.
        outcome.failed[first..].sort_by_key(|failed| order.iter().position(|name| *name == failed.image));
        let here = writing.tasks_executed.load(Ordering::Relaxed);
        if here > 0 && !writing.is_quiet() {
            line_on_stderr(&format!(
                "{here} tasks ran in this process, because --cache {} does not have their outputs",
                self.cache.display()
            ));
        }
        Ok(())
    }

    /// Submits the study, or finds it on the manager, and follows it to its end.
    fn execute(
        &self,
        writing: &mut WrittenSegmentation<'_>,
        prepared: &PreparedStudy,
        registry: &Registry,
    ) -> CommandResult<StudyStatus> {
        let code = operations::code_of_study(&self.args.study, registry)?;
        // Only the value scope computes the keys of the cache.
        let reuse = ReuseScope::Value;
        let strategy = StrategyName::default_of(reuse);
        let order = GrantOrder::default();
        let plan = PlanChoice {
            strategy,
            reuse,
            max_bucket_size: None,
            max_buckets: None,
            overhead_seconds: None,
            order,
        };
        let options = SubmissionOptions { plan, deadline: None, budget: None, preview: Vec::new(), code };
        let submission = Submission::new(prepared, true, options)?;
        // Slides are read once.
        prepared.set_file_digests(submission.file_digests());
        let files = prepared.digests().pop().map_or_else(String::new, |(_, digest)| digest);
        let digest = format!("{}-{files}", prepared.digest);
        if let Some(stop_requested) = writing.take_stop_requested() {
            self.client.waiting().listen_to(stop_requested);
        }
        let id = match self.submitted(writing, &digest)? {
            Some(id) => id,
            None => {
                let id = submit(&self.client, &submission, || {
                    TransferBar::new("sending files", writing.is_quiet())
                })?;
                let manager = self.client.manager().to_string();
                writing.folder.record_submission(RecordedSubmission {
                    digest,
                    manager,
                    study: id.clone(),
                })?;
                id
            }
        };
        let study_id = plain(&id);
        self.client.waiting().set_message(format!(
            "study {study_id} continues; --resume follows it, pleach cancel {study_id} ends it"
        ));
        let mut bar = StudyBar::new(writing.is_quiet());
        let ended = follow::to_its_end(&self.client, &id, |study| bar.show(study));
        bar.finish();
        let ended = ended?;
        if ended.state != StudyState::Complete {
            follow::verdict(&ended)?;
        }
        writing.studies.push(ClusterStudy { id, tasks_executed: ended.tasks_executed });
        Ok(ended)
    }

    /// Returns the study of an earlier process that executes the same, if the manager has it.
    fn submitted(&self, writing: &WrittenSegmentation<'_>, digest: &str) -> CommandResult<Option<String>> {
        let manager = self.client.manager().to_string();
        let known = writing.folder.submissions();
        let Some(known) = known.iter().find(|of| of.digest == digest && of.manager == manager) else {
            return Ok(None);
        };
        let study = self.client.find_study(&known.study)?;
        let is_alive = |study: &StudyStatus| {
            !matches!(study.state, StudyState::Waiting | StudyState::Canceled | StudyState::Failed)
        };
        Ok(study.filter(is_alive).map(|study| study.id))
    }

    /// Waits until the cache has the traces of the tiles, as far as it may still receive them. Returns an error if it has none.
    fn wait_for(
        &self,
        tiles: &[usize],
        has_trace: impl Fn(usize) -> bool,
        refresh: impl Fn() -> bool,
    ) -> Result<(), Option<ClientError>> {
        let mut refreshes = 0;
        loop {
            let missing = tiles.iter().filter(|tile| !has_trace(**tile)).count();
            if missing == 0 {
                return Ok(());
            }
            if refreshes == MAX_REFRESHES || !refresh() {
                return if missing < tiles.len() { Ok(()) } else { Err(None) };
            }
            refreshes += 1;
            let paused = self.client.waiting().pause(Duration::from_secs(1));
            paused.map_err(|error| Some(ClientError::from(error)))?;
        }
    }

    fn explained(&self, error: Option<ClientError>, study: &StudyStatus) -> CommandError {
        error.map_or_else(
            || {
                CommandError::Input(format!(
                    "--cache {}: has no result of study {}; the folder or bucket of pleach worker --cache is allowed",
                    self.cache.display(),
                    plain(&study.id)
                ))
            },
            CommandError::from,
        )
    }
}

/// Returns the study with these of its tiles, which are sorted, and with their slides.
fn with_tiles(study: &Study, tiles: &[usize]) -> Study {
    let mut study = study.clone();
    let is_kept: Vec<bool> = (0..study.tiles.len()).map(|tile| tiles.binary_search(&tile).is_ok()).collect();
    study.keep_tiles(&is_kept);
    if let Some(slides) = &mut study.slides {
        slides.files.retain(|slide| study.tiles.iter().any(|tile| tile.path == slide.path));
    }
    study
}
