//! The manager against simulated workers that join, request buckets, finish, fail, leave, and report late.

mod census;
#[path = "../support/cluster.rs"]
mod cluster;
mod elastic;
mod examples;
#[path = "../support/failures.rs"]
mod failures;
mod histories;
#[path = "../support/plans.rs"]
mod plans;
mod ranges;
#[path = "../support/regions.rs"]
mod regions;
mod replanned;
mod replicas;
#[path = "../support/shapes.rs"]
mod shapes;
mod short;
#[path = "../support/solo.rs"]
mod solo;
mod spare;
mod suspected;
mod tiers;
mod tile_users;
mod uneven;
