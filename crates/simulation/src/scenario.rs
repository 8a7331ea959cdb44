//! Scenario of a simulation: the cluster, the network, the studies, and the incidents.

use crate::workload::SyntheticWorkload;
use serde::{Deserialize, Serialize};

/// The complete input of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Seed of latencies and losses.
    pub seed: u64,
    /// Initial nodes.
    pub nodes: Vec<NodeSpec>,
    /// Studies, with their submission times in milliseconds.
    pub studies: Vec<(u64, SyntheticWorkload)>,
    /// Incidents, with their times in milliseconds.
    pub incidents: Vec<(u64, Incident)>,
    /// The network.
    pub network: NetworkModel,
    /// Milliseconds between ticks of the manager.
    pub tick_ms: u64,
    /// Whether unstarted buckets are rebuilt when workers join or leave.
    pub replan: bool,
    /// Maximum of simulated seconds.
    pub limit_seconds: f64,
}

/// One worker process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Buckets that it runs at once.
    pub slots: u32,
    /// Seconds of work that it does in 1 s.
    pub speed: f64,
}

/// Model of the network for messages and regions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkModel {
    /// Minimum latency of a message in microseconds.
    pub latency_us: u64,
    /// Mean of the additional latency, exponentially distributed.
    pub jitter_us: u64,
    /// Fraction of transmissions that are lost. A message is sent again until it arrives.
    pub loss: f64,
    /// Bytes per second between two workers.
    pub bytes_per_second: f64,
}

impl Default for NetworkModel {
    /// A cluster's network: 100 µs, 10 Gbit/s.
    fn default() -> Self {
        Self { latency_us: 100, jitter_us: 50, loss: 0.0, bytes_per_second: 1.25e9 }
    }
}

/// An incident.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incident {
    /// A node joins.
    Join(NodeSpec),
    /// A node loses power. Nodes are numbered in the order of their arrival.
    Crash {
        /// The node.
        node: usize,
    },
    /// A node is disconnected for a while.
    Partition {
        /// The node.
        node: usize,
        /// Duration.
        milliseconds: u64,
    },
    /// A node gets a time limit: the end of its job, or of a cloud's notice to leave.
    LeaseEnd {
        /// The node.
        node: usize,
        /// Time until then.
        milliseconds: u64,
    },
    /// A node drains.
    Drain {
        /// The node.
        node: usize,
    },
    /// The manager is killed and restarts after a while.
    Restart {
        /// Duration of the outage.
        milliseconds: u64,
    },
    /// A study is canceled.
    Cancel {
        /// Index of the study in the scenario.
        study: usize,
    },
    /// From now on, every worker that starts this instance loses power.
    CrashingInstance {
        /// Index of the study in the scenario.
        study: usize,
        /// The instance.
        instance: u32,
    },
}
