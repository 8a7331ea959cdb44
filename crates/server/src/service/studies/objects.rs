//! Queries over the objects of a study, which the storage of workers answers.

use super::StudyContext;
use super::control::manager_ends;
use crate::http::control::ControlError;
use crate::service::retained::RetainedOutputs;
use pleach_actors::manager::{DropRegions, QueryRegions};
use pleach_api::schema::{StudyState, StudyStatus};
use pleach_regions::SpatialQuery;
use pleach_study::spatial::{LocatedObjects, ObjectQuery, ObjectSearch};
use std::sync::Arc;

/// Regions in one request to the workers: their answers are in memory at once, up to 200 kB each.
const REGIONS_AT_ONCE: usize = 64;

impl StudyContext {
    /// Answers a query from the regions that workers hold.
    pub(super) async fn find_objects(
        &self,
        id: u32,
        study: &StudyStatus,
        query: &ObjectQuery,
    ) -> Result<LocatedObjects, ControlError> {
        let retained = self.retained_of(id, study)?;
        let refused = |text: String| ControlError::Study(format!("study {id}: {text}"));
        let (stage, output) = (&query.stage, &query.output);
        let Some(of) = retained.output(stage, output) else {
            let known: Vec<String> = retained.names().collect();
            return Err(refused(format!(
                "stage {stage:?}, output {output:?}: not retained; allowed: {}",
                known.join(", ")
            )));
        };
        if !retained.evaluations.contains(&query.evaluation) {
            let (first, last) = (retained.evaluations.start, retained.evaluations.end - 1);
            return Err(refused(format!("evaluation: {}; {first} to {last} are allowed", query.evaluation)));
        }
        let (mut search, queries) = ObjectSearch::begin(&retained.places, query, of.is_whole)
            .map_err(|error| refused(error.to_string()))?;
        for queries in queries.chunks(REGIONS_AT_ONCE) {
            // Every evaluation and tile has a region, as checked above.
            let region = |(tile, of_tile): &(usize, SpatialQuery)| {
                Some((retained.key(of, query.evaluation, *tile)?, of_tile.clone()))
            };
            let regions = queries.iter().filter_map(region).collect();
            let mut found = self.manager.send(QueryRegions(regions)).await.map_err(manager_ends)?;
            search.add_moved(found.moved_bytes);
            for (number, (tile, _)) in (0..).zip(queries) {
                let Some(answer) = found.answers.remove(&number) else {
                    search.add_missing(*tile);
                    continue;
                };
                let objects = answer.found.map_err(|error| refused(error.to_string()))?;
                search.add(*tile, objects, answer.region_bytes);
            }
        }
        Ok(search.finish())
    }

    fn retained_of(&self, id: u32, study: &StudyStatus) -> Result<Arc<RetainedOutputs>, ControlError> {
        if let Some(retained) = self.retained.get(id) {
            return Ok(retained);
        }
        let entries = self.studies.lock();
        let is_wanted =
            entries.get(&id).is_some_and(|entry| !entry.kept.submission.study.retained.is_empty());
        let cause = match study.state {
            _ if !is_wanted => {
                "retains no regions; submit it with retain = [\"STAGE.OUTPUT\"] in [study] of its study file"
                    .to_owned()
            }
            StudyState::Waiting | StudyState::Queued => format!("is {}; it can be queried once it runs", study.state),
            StudyState::Canceled => "is canceled: its regions are dropped".to_owned(),
            StudyState::Running => "is being planned; it can be queried once it runs".to_owned(),
            StudyState::Complete | StudyState::Failed => {
                "has ended before the manager's last start, which does not know its regions; submit it again, or query its \
                 task cache with pleach query STUDY.toml --cache"
                    .to_owned()
            }
        };
        Err(ControlError::Conflict(format!("study {id} {cause}")))
    }

    /// Ends the retention of a study's regions.
    pub(super) fn drop_regions(&self, id: u32) {
        self.retained.remove(id);
        // After a restart of the manager, workers may have regions that it does not know.
        self.manager.do_send(DropRegions(id));
    }
}
