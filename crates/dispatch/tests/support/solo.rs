//! A manager of one study.

use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::{InstanceId, PlanId};
use std::collections::BTreeSet;

/// The only study.
pub(crate) const STUDY: PlanId = PlanId::first_round(0);

/// Creates a manager of a plan whose `finished` instances have been reported before.
pub(crate) fn manager_of(plan: ExecutionPlan, finished: &BTreeSet<InstanceId>) -> Result<Manager, PlanError> {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan, finished)?;
    Ok(manager)
}
