//! A manager with a provisioner and its journal, beside simulated drivers. The manager can be killed at any effect.

use crate::cloud::{Cloud, Faults};
use pleach_provision::{
    FORMAT_LINE, ProvisionEffect, ProvisionInput, ProvisionJournal, ProvisionPool, ProvisionRemark,
    Provisioner,
};

/// Interval between two steps, as in the manager.
pub(crate) const STEP_SECONDS: f64 = 2.0;

pub(crate) fn pool(name: &str, max: u32, startup_seconds: f64) -> ProvisionPool {
    ProvisionPool {
        name: name.to_owned(),
        prefix: format!("{name}-"),
        min: 0,
        max,
        startup_seconds,
        idle_seconds: 60.0,
        list_lag_seconds: 30.0,
    }
}

pub(crate) struct World {
    pub(crate) pools: Vec<ProvisionPool>,
    pub(crate) cloud: Cloud,
    pub(crate) provisioner: Provisioner,
    /// Bytes on disk.
    pub(crate) journal: Vec<u8>,
    /// Content of the bytes.
    journaled: ProvisionJournal,
    pub(crate) now: f64,
    starts: u32,
    /// Effects until the manager is killed.
    pub(crate) kill_after: Option<u64>,
    /// End of the manager's outage.
    down_until: Option<f64>,
    pub(crate) kills: u32,
    pub(crate) effects: u64,
    pub(crate) remarks: Vec<ProvisionRemark>,
    /// The greatest number of workers of each pool at once.
    pub(crate) most: Vec<usize>,
    /// Whether workers without an entry of the journal fail the test.
    pub(crate) is_strict: bool,
    /// Workers that have announced their end.
    pub(crate) left: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, pools: Vec<ProvisionPool>, faults: Faults) -> Self {
        let startup = pools.iter().map(|pool| pool.startup_seconds).collect();
        let (provisioner, _) = Provisioner::new(pools.clone(), &ProvisionJournal::default(), "m-1", 0.0);
        Self {
            most: vec![0; pools.len()],
            pools,
            cloud: Cloud::new(seed, faults, startup),
            provisioner,
            journal: FORMAT_LINE.as_bytes().to_vec(),
            journaled: ProvisionJournal::default(),
            now: 0.0,
            starts: 1,
            kill_after: None,
            down_until: None,
            kills: 0,
            effects: 0,
            remarks: Vec::new(),
            is_strict: true,
            left: Vec::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.down_until.is_none()
    }

    /// Passes the time of a step.
    pub(crate) fn step(&mut self, desired: &[u32], has_studies: bool) {
        let before = self.now;
        self.now += STEP_SECONDS;
        let answers = self.cloud.advance(before, self.now);
        if self.down_until.is_some_and(|until| self.now >= until) {
            self.restart();
        }
        if self.is_up() {
            for answer in answers {
                let effects = self.provisioner.answer(self.now, answer);
                if !self.execute(effects) {
                    break;
                }
            }
        }
        if self.is_up() {
            let connected = self.cloud.connected(self.now);
            let effects = self.provisioner.step(&ProvisionInput {
                now_seconds: self.now,
                desired,
                // The order does not matter here: any order is allowed.
                removal_order: &connected.iter().map(|worker| worker.name.clone()).collect::<Vec<_>>(),
                connected: &connected,
                left: &self.left,
                has_studies,
            });
            self.execute(effects);
        }
        self.check();
    }

    fn now_ms(&self) -> u64 {
        (self.now * 1e3) as u64
    }

    /// Executes effects. Returns whether the manager lives.
    pub(crate) fn execute(&mut self, effects: Vec<ProvisionEffect>) -> bool {
        for effect in effects {
            self.effects += 1;
            if self.kill_after.is_some_and(|left| left == 0) {
                self.kill(&effect);
                return false;
            }
            self.kill_after = self.kill_after.map(|left| left - 1);
            match effect {
                ProvisionEffect::Write(record) => {
                    self.journal.extend(record.line(self.now_ms()).as_bytes());
                    self.journaled.apply(record, Some(self.now_ms()));
                }
                ProvisionEffect::Start { pool, name } => self.cloud.start(self.now, pool, &name),
                ProvisionEffect::Stop { name, handle, .. } => self.cloud.stop(self.now, &name, &handle),
                ProvisionEffect::Drain { name } => self.cloud.drain(self.now, &name),
                ProvisionEffect::List { pool } => self.cloud.list(self.now, pool),
                ProvisionEffect::Remark(remark) => self.remarks.push(remark),
            }
        }
        true
    }

    /// Kills the manager at an effect, which is executed in part or not at all.
    fn kill(&mut self, effect: &ProvisionEffect) {
        if let ProvisionEffect::Write(record) = effect {
            let line = record.line(self.now_ms());
            let torn = self.cloud.random.word() as usize % line.len();
            self.journal.extend(&line.as_bytes()[..torn]);
        }
        self.kill_after = None;
        self.kills += 1;
        self.cloud.drop_calls();
        self.down_until = Some(self.now + self.cloud.random.between(1.0, 90.0));
    }

    fn restart(&mut self) {
        self.down_until = None;
        self.starts += 1;
        let journal = ProvisionJournal::parse(&self.journal).expect("a journal");
        assert_eq!(journal.corrupt_lines, 0);
        self.journaled = journal.clone();
        // As the manager does: a torn line must not be continued.
        self.journal = journal.text().into_bytes();
        let incarnation = format!("m-{}", self.starts);
        let (provisioner, remarks) = Provisioner::new(self.pools.clone(), &journal, &incarnation, self.now);
        assert_eq!(remarks, []);
        self.provisioner = provisioner;
    }

    fn check(&mut self) {
        let journal = &self.journaled;
        for worker in &self.cloud.workers {
            assert!(
                !self.is_strict || journal.workers().contains_key(&worker.name),
                "{} runs at {} and no journal has it",
                worker.name,
                self.now
            );
        }
        for (pool, most) in self.most.iter_mut().enumerate() {
            let count = self.cloud.workers.iter().filter(|worker| worker.pool == pool).count();
            *most = (*most).max(count);
            let max = self.pools[pool].max as usize;
            assert!(self.cloud.faults.twice > 0.0 || count <= max, "{count} workers of at most {max}");
        }
    }

    /// Passes time without studies until nothing is left.
    pub(crate) fn wind_down(&mut self) {
        let begun = self.now;
        // An hour of lost answers and failing stops.
        while !(self.cloud.workers.is_empty() && self.provisioner.is_empty() && self.is_up()) {
            assert!(self.now - begun < 3600.0, "left: {:?}", self.cloud.workers);
            self.step(&[], false);
        }
        // Late actions of lost calls.
        for _ in 0..200 {
            self.step(&[], false);
        }
        assert!(self.cloud.workers.is_empty(), "{:?}", self.cloud.workers);
        assert!(ProvisionJournal::parse(&self.journal).expect("a journal").workers().is_empty());
    }
}
