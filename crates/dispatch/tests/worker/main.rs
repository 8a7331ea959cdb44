//! Worker: slots, admission, memory, costs, eviction and the number of workers.

mod admission;
mod costs;
mod end;
mod estimates;
mod memory;
#[path = "../support/node.rs"]
mod node;
mod processes;
mod rehearsal;
mod scaling;
#[path = "../support/shapes.rs"]
mod shapes;
mod slots;
#[path = "../support/solo.rs"]
mod solo;
mod storage;
#[path = "../support/studies.rs"]
mod studies;
mod tail;
