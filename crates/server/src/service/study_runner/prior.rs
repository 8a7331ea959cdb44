//! Results of earlier studies in the task cache that workers write.

use crate::service::studies::StudyContext;
use pleach_api::submission::PlanChoice;
use pleach_cache::{Cache, PriorResults, StudyLabel};
use pleach_planner::PlanOptions;
use pleach_results::cache_walk::{self, CacheFolderError};
use pleach_study::PreparedStudy;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tracing::warn;

/// Returns the results of earlier studies, for a study whose tasks are keyed by content. Opens or refreshes the cache for
/// each study, because workers write it meanwhile and may create it.
pub(super) fn prior_results(
    shared: &StudyContext,
    id: u32,
    choice: PlanChoice,
    study: &PreparedStudy,
) -> PriorResults {
    let options = PlanOptions::new(choice.strategy, choice.reuse);
    let folder = shared.task_cache.as_ref().filter(|_| options.reuse_name() == Some("value"));
    let user = shared.user_of(id).unwrap_or_default();
    let label = Some(Arc::new(StudyLabel { study: study.study.name.clone(), id: Some(id), user }));
    let without_cache = PriorResults { label, ..PriorResults::default() };
    let is_there = |folder: &Path| cache_walk::is_bucket(folder) || folder.exists();
    let Some(folder) = folder.filter(|folder| is_there(folder)) else { return without_cache };
    match open(shared, folder) {
        Ok(cache) => {
            let identities = Arc::new(cache_walk::identities(study));
            PriorResults { cache: Some(cache), identities, ..without_cache }
        }
        Err(error) => {
            // The study needs no cache. Workers look tasks up themselves.
            warn!(study = id, "study {id} starts without the results of earlier studies: {error}");
            without_cache
        }
    }
}

/// Opens the cache for a study. One in a bucket stays open, because opening it reads all of its traces.
fn open(shared: &StudyContext, location: &Path) -> Result<Arc<Cache>, CacheFolderError> {
    if !cache_walk::is_bucket(location) {
        return cache_walk::open_to_read(location).map(Arc::new);
    }
    let mut kept = shared.bucket_cache.lock();
    if let Some(cache) = &*kept {
        cache.refresh(SystemTime::now());
        cache.take_reports().into_iter().for_each(|report| warn!("--cache: {report}"));
        return Ok(Arc::clone(cache));
    }
    let cache = Arc::new(cache_walk::open_to_read(location)?);
    *kept = Some(Arc::clone(&cache));
    Ok(cache)
}
