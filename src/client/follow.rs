//! Follows studies until they end.

use super::Client;
use super::progress_bars::{LINE_EVERY, StudyBar, frame, plain, progress};
use super::table;
use crate::api::schema::{StudyState, StudyStatus, WorkerStatus};
use crate::exit::{CommandError, CommandResult};
use crate::live::{LiveArea, Stream};
use crate::terminal::print_line;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Interval between requests: frequent enough for a reader, and negligible load on the manager.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Follows a study until it ends, and shows its progress on stderr unless `is_quiet`.
///
/// # Errors
/// Returns the errors of [`Client::study`], and [`CommandError::Interrupted`], which does not cancel the study.
pub(crate) fn to_its_end(client: &Client, id: &str, is_quiet: bool) -> CommandResult<StudyStatus> {
    let mut followed = StudyBar::new(is_quiet);
    let end = loop {
        match client.study(id) {
            Err(stop) => break Err(stop),
            Ok(study) if study.state.is_over() => break Ok(study),
            Ok(study) => followed.show(&study),
        }
        if let Err(stop) = client.waiting().pause(LOOK_EVERY) {
            break Err(stop);
        }
    };
    followed.finish();
    end
}

/// Converts the end of a study into the result of the command that waited for it.
///
/// # Errors
/// Returns [`CommandError::SomeFailed`] if some runs failed, and [`CommandError::Refused`] if the study has no results.
pub(crate) fn verdict(study: &StudyStatus) -> CommandResult {
    let id = plain(&study.id);
    let told = study.message.as_deref().map(|message| format!(": {}", plain(message))).unwrap_or_default();
    match study.state {
        StudyState::Failed => Err(CommandError::Refused(format!("study {id} failed{told}"))),
        StudyState::Canceled => Err(CommandError::Refused(format!("study {id} was canceled{told}"))),
        _ if study.failed > 0 => Err(CommandError::SomeFailed(format!(
            "{} runs of study {id} failed; failed.csv among its results lists them",
            study.failed
        ))),
        _ => Ok(()),
    }
}

/// Shows one study, or all studies that are not over, on stdout until they end: live on a terminal, else as occasional
/// lines. Returns the last status of each study.
///
/// # Errors
/// Returns the errors of [`to_its_end`].
pub(crate) fn watch(client: &Client, id: Option<&str>) -> CommandResult<Vec<StudyStatus>> {
    let mut view: Box<dyn View> = match LiveArea::new(Stream::Stdout) {
        Some(area) => Box::new(Live { area, studies: Vec::new() }),
        None => Box::new(Lines::default()),
    };
    let mut watched: BTreeMap<String, StudyStatus> = BTreeMap::new();
    let end = loop {
        let looked = look(client, id, &mut watched, view.as_mut());
        match looked {
            Err(stop) => break Err(stop),
            Ok(true) => break Ok(()),
            Ok(false) => {}
        }
        if let Err(stop) = client.waiting().pause(LOOK_EVERY) {
            break Err(stop);
        }
    };
    view.finish();
    end.map(|()| watched.into_values().collect())
}

/// Queries and shows the status once. Returns whether all watched studies have ended.
fn look(
    client: &Client,
    id: Option<&str>,
    watched: &mut BTreeMap<String, StudyStatus>,
    view: &mut dyn View,
) -> CommandResult<bool> {
    let studies = match id {
        Some(id) => vec![client.study(id)?],
        None => client.studies()?,
    };
    for study in studies {
        // Skip studies that had ended before the watch began.
        if id.is_some() || !study.state.is_over() || watched.contains_key(&study.id) {
            watched.insert(study.id.clone(), study);
        }
    }
    view.show(watched, &client.workers()?);
    Ok(watched.values().all(|study| study.state.is_over()))
}

trait View {
    fn show(&mut self, studies: &BTreeMap<String, StudyStatus>, workers: &[WorkerStatus]);

    fn finish(&mut self) {}
}

/// Prints a line for each study when its state changes, and at intervals.
#[derive(Default)]
struct Lines(HashMap<String, (Instant, StudyState)>);

impl View for Lines {
    fn show(&mut self, studies: &BTreeMap<String, StudyStatus>, _: &[WorkerStatus]) {
        for study in studies.values() {
            let told = self.0.get(&study.id).copied();
            let is_due = !study.state.is_over() && told.is_some_and(|(last, _)| last.elapsed() >= LINE_EVERY);
            if is_due || told.is_none_or(|(_, state)| state != study.state) {
                self.0.insert(study.id.clone(), (Instant::now(), study.state));
                print_line(&progress(study));
            }
        }
    }
}

/// Shows a bar for each study, and the workers below.
struct Live {
    area: LiveArea,
    /// Latest status of each study, sorted by id.
    studies: Vec<StudyStatus>,
}

impl View for Live {
    fn show(&mut self, studies: &BTreeMap<String, StudyStatus>, workers: &[WorkerStatus]) {
        self.studies = studies.values().cloned().collect();
        self.area.show(|width| {
            let bars = self.studies.iter().flat_map(|study| frame(study, width));
            bars.chain(table::workers(workers).lines().map(str::to_owned)).collect()
        });
    }

    /// Leaves the studies on the screen and removes the workers.
    fn finish(&mut self) {
        self.area.leave(|width| self.studies.iter().flat_map(|study| frame(study, width)).collect());
    }
}
