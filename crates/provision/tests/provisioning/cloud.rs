//! Simulated drivers: workers that boot, connect, drain and end, with faults.

use crate::random::Random;
use pleach_provision::{ConnectedWorker, DriverAnswer};
use std::collections::BTreeSet;

/// Time limit of a driver's call, as in the manager.
const CALL_SECONDS: f64 = 60.0;

/// Probabilities of faults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A start is refused.
    pub(crate) refuse: f64,
    /// A start does not answer. The worker starts in half of the cases.
    pub(crate) hang: f64,
    /// A start answers with garbage. The worker starts in half of the cases.
    pub(crate) garbage: f64,
    /// A start answers with a handle and starts nothing.
    pub(crate) nothing: f64,
    /// A start starts two workers.
    pub(crate) twice: f64,
    /// A list, or a stop, fails.
    pub(crate) fail: f64,
    /// A worker never connects.
    pub(crate) stuck: f64,
    /// A worker is lost, per second.
    pub(crate) lose: f64,
    /// Seconds by which lists lag behind.
    pub(crate) lag_seconds: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct CloudWorker {
    pub(crate) pool: usize,
    pub(crate) name: String,
    handle: String,
    created_seconds: f64,
    connects_seconds: f64,
    /// End of its drain.
    drained_seconds: Option<f64>,
    /// End of the process or machine.
    ends_seconds: f64,
}

#[derive(Clone, Debug)]
enum Action {
    Create {
        pool: usize,
        name: String,
        handle: String,
    },
    End {
        handle: String,
    },
    /// Takes the snapshot of a list, which is answered at this time.
    Snapshot {
        pool: usize,
        answer_seconds: f64,
    },
}

/// Workers of all pools, and calls in progress.
#[derive(Debug)]
pub(crate) struct Cloud {
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    pub(crate) startup_seconds: Vec<f64>,
    pub(crate) workers: Vec<CloudWorker>,
    /// Names of all starts so far.
    pub(crate) started: BTreeSet<String>,
    actions: Vec<(f64, Action)>,
    answers: Vec<(f64, DriverAnswer)>,
    count: u64,
    /// A pool that refuses all starts.
    pub(crate) refusing: Option<usize>,
    /// Worker seconds so far, which are paid.
    pub(crate) paid_seconds: f64,
}

impl Cloud {
    pub(crate) fn new(seed: u64, faults: Faults, startup_seconds: Vec<f64>) -> Self {
        Self {
            faults,
            random: Random(seed),
            startup_seconds,
            workers: Vec::new(),
            started: BTreeSet::new(),
            actions: Vec::new(),
            answers: Vec::new(),
            count: 0,
            refusing: None,
            paid_seconds: 0.0,
        }
    }

    fn handle(&mut self) -> String {
        self.count += 1;
        format!("h{}", self.count)
    }

    pub(crate) fn start(&mut self, now: f64, pool: usize, name: &str) {
        assert!(self.started.insert(name.to_owned()), "{name} is started twice");
        let faults = self.faults;
        let takes = self.random.between(0.1, 5.0);
        let handle = self.handle();
        let mut draw = self.random.unit();
        let mut is = |probability: f64| {
            draw -= probability;
            draw < 0.0
        };
        let (refuse, hang, garbage) = (is(faults.refuse), is(faults.hang), is(faults.garbage));
        let (nothing, twice) = (is(faults.nothing), is(faults.twice));
        let name = name.to_owned();
        let create = Action::Create { pool, name: name.clone(), handle: handle.clone() };
        if refuse || self.refusing == Some(pool) {
            let reason = "quota reached".to_owned();
            self.answers.push((now + takes, DriverAnswer::NotStarted { name, reason }));
        } else if hang || garbage {
            let answer = if hang { CALL_SECONDS } else { takes };
            if self.random.happens(0.5) {
                self.actions.push((now + self.random.between(0.0, answer), create));
            }
            let reason = "no answer".to_owned();
            self.answers.push((now + answer, DriverAnswer::StartUnknown { name, reason }));
        } else {
            if !nothing {
                self.actions.push((now + self.random.between(0.0, takes), create));
            }
            if twice && !nothing {
                let handle = self.handle();
                let second = Action::Create { pool, name: name.clone(), handle };
                self.actions.push((now + self.random.between(0.0, takes), second));
            }
            self.answers.push((now + takes, DriverAnswer::Started { name, handle }));
        }
    }

    pub(crate) fn stop(&mut self, now: f64, name: &str, handle: &str) {
        let takes = self.random.between(0.1, 3.0);
        let (name, handle) = (name.to_owned(), handle.to_owned());
        let fails = self.random.happens(self.faults.fail);
        if !fails || self.random.happens(0.5) {
            let end = now + takes + self.random.between(0.0, 30.0);
            self.actions.push((end, Action::End { handle: handle.clone() }));
        }
        let answer = match fails {
            true => DriverAnswer::NotStopped { name, handle, reason: "credentials expired".to_owned() },
            false => DriverAnswer::Stopped { name, handle },
        };
        self.answers.push((now + takes, answer));
    }

    pub(crate) fn list(&mut self, now: f64, pool: usize) {
        let takes = self.random.between(0.1, 3.0);
        if self.random.happens(self.faults.fail) {
            let reason = "credentials expired".to_owned();
            self.answers.push((now + takes, DriverAnswer::NotListed { pool, reason }));
        } else {
            let at = now + self.random.between(0.0, takes);
            self.actions.push((at, Action::Snapshot { pool, answer_seconds: now + takes }));
        }
    }

    pub(crate) fn drain(&mut self, now: f64, name: &str) {
        let takes = self.random.between(0.0, 60.0);
        for worker in self.workers.iter_mut().filter(|worker| worker.name == name) {
            worker.drained_seconds.get_or_insert(now + takes);
        }
    }

    /// The manager was killed: its calls are executed or not, and are not answered.
    pub(crate) fn drop_calls(&mut self) {
        self.answers.clear();
        let mut kept = Vec::new();
        for (at, action) in std::mem::take(&mut self.actions) {
            let is_kept = match action {
                Action::Snapshot { .. } => false,
                Action::End { .. } => true,
                Action::Create { .. } => self.random.happens(0.5),
            };
            if is_kept {
                kept.push((at, action));
            }
        }
        self.actions = kept;
    }

    /// Passes time up to `now`. Returns the answers that have arrived.
    pub(crate) fn advance(&mut self, before: f64, now: f64) -> Vec<DriverAnswer> {
        self.paid_seconds += (now - before) * self.workers.len() as f64;
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.actions).into_iter().partition(|(at, _)| *at <= now);
        self.actions = later;
        let mut due = due;
        due.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, action) in due {
            self.perform(at, action);
        }
        let lose = self.faults.lose * (now - before);
        for index in (0..self.workers.len()).rev() {
            let ends = self.workers[index].ends_seconds <= now;
            if ends || (lose > 0.0 && self.random.happens(lose)) {
                self.workers.swap_remove(index);
            }
        }
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.answers).into_iter().partition(|(at, _)| *at <= now);
        self.answers = later;
        due.sort_by(|a, b| a.0.total_cmp(&b.0));
        due.into_iter().map(|(_, answer)| answer).collect()
    }

    fn perform(&mut self, at: f64, action: Action) {
        match action {
            Action::Create { pool, name, handle } => {
                let boots = self.startup_seconds[pool] * self.random.between(0.5, 1.5);
                let is_stuck = self.random.happens(self.faults.stuck);
                self.workers.push(CloudWorker {
                    pool,
                    name,
                    handle,
                    created_seconds: at,
                    connects_seconds: if is_stuck { f64::INFINITY } else { at + boots },
                    drained_seconds: None,
                    ends_seconds: f64::INFINITY,
                });
            }
            Action::End { handle } => self.workers.retain(|worker| worker.handle != handle),
            Action::Snapshot { pool, answer_seconds } => {
                let lag = self.faults.lag_seconds;
                let seen = |worker: &&CloudWorker| worker.pool == pool && worker.created_seconds + lag <= at;
                let workers = self.workers.iter().filter(seen);
                let workers = workers.map(|worker| (worker.name.clone(), worker.handle.clone())).collect();
                self.answers.push((answer_seconds, DriverAnswer::Listed { pool, workers }));
            }
        }
    }

    /// The workers that are connected to the manager. Of two workers with one name, the manager refuses the second.
    pub(crate) fn connected(&self, now: f64) -> Vec<ConnectedWorker> {
        let mut names = BTreeSet::new();
        let on = |worker: &&CloudWorker| {
            worker.connects_seconds <= now && worker.drained_seconds.is_none_or(|drained| drained > now)
        };
        let workers = self.workers.iter().filter(on).filter(|worker| names.insert(worker.name.clone()));
        let connected = workers.map(|worker| ConnectedWorker {
            name: worker.name.clone(),
            pool: Some(worker.pool),
            is_draining: worker.drained_seconds.is_some(),
        });
        connected.collect()
    }

    /// Ends a random worker without notice. Returns whether there was one.
    pub(crate) fn kill_one(&mut self) -> bool {
        if self.workers.is_empty() {
            return false;
        }
        let index = self.random.word() as usize % self.workers.len();
        self.workers.swap_remove(index);
        true
    }
}
