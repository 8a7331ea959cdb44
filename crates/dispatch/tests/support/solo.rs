//! A manager of one study.

use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::{InstanceId, PlanId};
use std::collections::BTreeSet;

/// The one there is.
pub(crate) const STUDY: PlanId = PlanId::whole(0);

/// A manager of what is left of a plan when `finished` instances have reported before.
pub(crate) fn manager_of(plan: ExecutionPlan, finished: &BTreeSet<InstanceId>) -> Result<Manager, PlanError> {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan, finished)?;
    Ok(manager)
}
