//! Requests of studies, and the expected outcome of one on the toy workflow, for all ways of execution.

use crate::toy::expected;
use pleach_actors::manager::StudyRequest;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_dispatch::study::{Study, StudyOutcome};
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Tiles, and the parameter sets to run on them.
pub(crate) type Sets = Vec<(usize, [i64; 5])>;

/// Checks that nothing failed, every instance finished, and all results are correct.
pub(crate) fn check(sets: &Sets, outcome: &StudyOutcome) {
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.finished, 2 * sets.len());
    for (id, (_, set)) in sets.iter().enumerate() {
        let result = outcome.results.get(InstanceId((sets.len() + id) as u32)).expect("results")[0].get("x");
        assert_eq!(result, Some(expected(1.0, set)));
    }
}

/// Returns the request to execute a plan, whose inputs the workers have.
pub(crate) fn request(plan: ExecutionPlan, done: oneshot::Sender<StudyOutcome>) -> StudyRequest {
    StudyRequest {
        study: Study::new(plan).expect("a valid plan"),
        inputs: HashMap::new(),
        code: Vec::new(),
        observer: Box::new(|_| {}),
        replanner: None,
        retains_results: false,
        label: None,
        done,
    }
}
