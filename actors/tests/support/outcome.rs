//! Expected outcome of a study on the toy workflow, for all ways of execution.

use crate::toy::expected;
use pleach_dispatch::InstanceId;
use pleach_dispatch::study::StudyOutcome;

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
