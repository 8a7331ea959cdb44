//! Stage: execution of buckets, their memory, look-ups and splits.

#[path = "../support/buckets.rs"]
mod buckets;
mod execution;
#[path = "../support/failures.rs"]
mod failures;
mod forecast;
mod key_policy;
mod look_ups;
#[path = "../support/shapes.rs"]
mod shapes;
#[path = "../support/shell.rs"]
mod shell;
mod split;
