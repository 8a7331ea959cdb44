//! Display of watched studies on stdout: live on a terminal, else as occasional lines.

use super::progress_bars::{LINE_EVERY, frame, progress};
use super::table;
use crate::live::{LiveArea, Stream};
use crate::terminal::print_line;
use pleach_api::schema::{StudyState, StudyStatus, WorkerStatus};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// Display of watched studies.
pub(in crate::command) enum WatchedStudies {
    /// A bar for each study, and the workers below.
    Live(LiveDisplay),
    /// A line for each study when its state changes, and at intervals.
    Lines(Lines),
}

impl WatchedStudies {
    /// Creates a live display if stdout is a terminal.
    pub(in crate::command) fn new() -> Self {
        match LiveArea::new(Stream::Stdout) {
            Some(area) => Self::Live(LiveDisplay { area, studies: Vec::new() }),
            None => Self::Lines(Lines::default()),
        }
    }

    /// Shows the studies, by id, and all workers.
    pub(in crate::command) fn show(
        &mut self,
        studies: &BTreeMap<String, StudyStatus>,
        workers: &[WorkerStatus],
    ) {
        match self {
            Self::Live(live) => live.show(studies, workers),
            Self::Lines(lines) => lines.show(studies),
        }
    }

    /// Ends the display. Live studies remain on the screen.
    pub(in crate::command) fn finish(&mut self) {
        if let Self::Live(live) = self {
            live.finish();
        }
    }
}

/// Last line of each study.
#[derive(Default)]
pub(in crate::command) struct Lines(HashMap<String, (Instant, StudyState)>);

impl Lines {
    fn show(&mut self, studies: &BTreeMap<String, StudyStatus>) {
        for study in studies.values() {
            let last_line = self.0.get(&study.id).copied();
            let is_due =
                !study.state.is_over() && last_line.is_some_and(|(last, _)| last.elapsed() >= LINE_EVERY);
            if is_due || last_line.is_none_or(|(_, state)| state != study.state) {
                self.0.insert(study.id.clone(), (Instant::now(), study.state));
                print_line(&progress(study));
            }
        }
    }
}

/// Live display on a terminal.
pub(in crate::command) struct LiveDisplay {
    area: LiveArea,
    /// Latest status of each study, sorted by id.
    studies: Vec<StudyStatus>,
}

impl LiveDisplay {
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
