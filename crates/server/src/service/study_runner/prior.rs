//! Results of earlier studies in the task cache that workers write.

use crate::service::studies::StudyContext;
use pleach_api::submission::PlanChoice;
use pleach_cache::{PriorResults, StudyLabel};
use pleach_planner::PlanOptions;
use pleach_results::cache_walk;
use pleach_study::PreparedStudy;
use std::sync::Arc;
use tracing::warn;

/// Returns the results of earlier studies, for a study whose tasks are keyed by content. Opens the cache for each study,
/// because workers write it meanwhile and may create it.
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
    let Some(folder) = folder.filter(|folder| folder.exists()) else { return without_cache };
    match cache_walk::open_to_read(folder) {
        Ok(cache) => {
            let identities = Arc::new(cache_walk::identities(study));
            PriorResults { cache: Some(Arc::new(cache)), identities, ..without_cache }
        }
        Err(error) => {
            // The study needs no cache. Workers look tasks up themselves.
            warn!(study = id, "study {id} starts without the results of earlier studies: {error}");
            without_cache
        }
    }
}
