//! What is to happen in a simulation: the cluster, the network, the studies, and what goes wrong when.

use crate::workload::SyntheticWorkload;
use serde::{Deserialize, Serialize};

/// A whole simulation, but for what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Of latencies and losses.
    pub seed: u64,
    /// Nodes that are there from the beginning.
    pub nodes: Vec<NodeSpec>,
    /// Studies, with the milliseconds after which they are submitted.
    pub studies: Vec<(u64, SyntheticWorkload)>,
    /// What happens besides, with the milliseconds after which it does.
    pub incidents: Vec<(u64, Incident)>,
    /// How messages and regions travel.
    pub network: NetworkModel,
    /// Milliseconds between ticks of the manager.
    pub tick_ms: u64,
    /// What nobody has begun is cut anew when workers come or go.
    pub replan: bool,
    /// Seconds after which everything has to be over.
    pub limit_seconds: f64,
}

/// One worker process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Buckets that it runs at once.
    pub slots: u32,
    /// How many seconds' work it does in a second.
    pub speed: f64,
}

/// How messages and regions travel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkModel {
    /// Microseconds that a message takes at least.
    pub latency_us: u64,
    /// Mean of what it takes more, exponentially distributed.
    pub jitter_us: u64,
    /// Fraction of messages that have to be sent again; and again, until they arrive.
    pub loss: f64,
    /// Bytes a second between two workers.
    pub bytes_per_second: f64,
}

impl Default for NetworkModel {
    /// A cluster's: 100 µs, ten gigabits a second.
    fn default() -> Self {
        Self { latency_us: 100, jitter_us: 50, loss: 0.0, bytes_per_second: 1.25e9 }
    }
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incident {
    /// A node comes.
    Join(NodeSpec),
    /// A node, counted in the order in which they came, loses power.
    Crash {
        /// Which.
        node: usize,
    },
    /// A node cannot be reached, nor reach anybody, for a while.
    Partition {
        /// Which.
        node: usize,
        /// How long.
        milliseconds: u64,
    },
    /// A node learns when it has to end: at the end of its job, or of what a cloud gives it to leave.
    LeaseEnd {
        /// Which.
        node: usize,
        /// How long it has.
        milliseconds: u64,
    },
    /// A node is to leave.
    Drain {
        /// Which.
        node: usize,
    },
    /// The manager is killed, and starts again after a while.
    Restart {
        /// How long.
        milliseconds: u64,
    },
    /// A study is canceled.
    Cancel {
        /// Which, counted in the order of the schedule.
        study: usize,
    },
    /// From now on whoever begins this instance loses power.
    CrashingInstance {
        /// Of which study.
        study: usize,
        /// The instance.
        instance: u32,
    },
}
