//! `pleach pools`: lists the workers that a manager has started, and stops those that nothing owns.
//!
//! Pods of a scaled pool belong to their deployment. `--reap --all` scales it to 0.

use crate::cli::PoolsArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_planner::memory_limit;
use pleach_server::drivers::{Driver, DriverContext, ListedWorker, ScaleDriver};
use pleach_server::kubernetes::Namespace;
use pleach_server::pools::{DriverKind, Pools};
use pleach_server::service::provision::read_journal;
use pleach_server::service::state::record::{self, Record};
use pleach_server::service::state::{IDENTITY, LOCK, ManagerIdentity};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// 60 s for stopped workers to end: they drain for 30 s at most, and lists of schedulers lag.
const END_TIME: Duration = Duration::from_secs(60);

/// Interval between two lists of ending workers.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// State of a worker that a driver lists, or that the journal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ownership {
    /// The journal has it, and the driver lists it.
    Owned,
    /// The driver lists it, and the journal lacks it.
    Orphan,
    /// The journal has it, and the driver does not list it.
    Gone,
    /// The journal has it, and the driver lists nothing because it fails.
    Unknown,
}

/// Workers of all pools whose drivers answer, and one text for each driver or worker that fails.
#[derive(Default)]
struct Findings {
    workers: Vec<PoolWorker>,
    failures: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
struct PoolWorker {
    pool: String,
    name: String,
    handle: Option<String>,
    state: Ownership,
}

/// Drivers of a pool file.
struct Drivers {
    single: Vec<Driver>,
    /// Drivers of pools that a cluster scales. The deployment owns its pods, so none is an orphan.
    scaled: Vec<ScaleDriver>,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &PoolsArgs) -> CommandResult {
    let pools = Pools::read(&args.pools).map_err(CommandError::input)?;
    let is_running = is_running(&args.state)?;
    if args.all && is_running {
        return Err(CommandError::Input(format!(
            "--all: the manager of {} is running and would replace its workers; a manager that has ended is allowed",
            args.state.display()
        )));
    }
    let context = DriverContext {
        owner: owner(&args.state)?,
        state: args.state.clone(),
        listen: args.listen,
        host: memory_limit::host_name().unwrap_or_else(|| "localhost".to_owned()),
        // Unused: nothing is started.
        authority: Some(args.state.clone()),
    };
    let single = Driver::of_pools(&pools, &context).map_err(CommandError::input)?;
    let drivers = Drivers {
        single: single.into_iter().map(|(_, driver)| driver).collect(),
        scaled: scaled(args, &pools)?,
    };
    let mut findings = look(args, &drivers)?;
    if args.reap {
        findings = reap(args, &drivers, findings)?;
    }
    let Findings { workers, failures } = findings;
    if args.json {
        print_json(&workers)?;
    } else {
        workers.iter().for_each(print);
        if workers.is_empty() && failures.is_empty() {
            print_line("no workers of this manager");
        }
    }
    if !failures.is_empty() {
        return Err(CommandError::Refused(failures.into_iter().collect::<Vec<_>>().join("\nerror: ")));
    }
    let left = workers.iter().filter(|worker| is_target(args, worker)).count();
    match left {
        0 => Ok(()),
        left if args.reap => Err(CommandError::SomeFailed(format!("{left} workers are still running"))),
        left => Err(CommandError::SomeFailed(format!("{left} orphans; --reap stops them"))),
    }
}

fn print(worker: &PoolWorker) {
    let handle = worker.handle.as_deref().unwrap_or("no handle");
    let state = match worker.state {
        Ownership::Owned => "owned",
        Ownership::Orphan => "orphan",
        Ownership::Gone => "in the journal only",
        Ownership::Unknown => "in the journal, and its driver fails",
    };
    print_line(&format!("{}: {} ({handle}): {state}", worker.pool, worker.name));
}

/// Returns whether a worker is to be stopped.
fn is_target(args: &PoolsArgs, worker: &PoolWorker) -> bool {
    worker.state == Ownership::Orphan || (args.all && worker.state == Ownership::Owned)
}

/// Lists the workers of all pools and compares them with the journal. A driver that fails hides no other pool.
fn look(args: &PoolsArgs, drivers: &Drivers) -> CommandResult<Findings> {
    // The lists first: a running manager writes a name before it starts the worker, so a later journal has all of them.
    let (mut listed, mut failures, mut failed_pools) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for driver in &drivers.single {
        match driver.list() {
            Ok(workers) => listed.push((driver, workers)),
            Err(reason) => {
                failures.insert(failure(&driver.pool, &reason));
                failed_pools.insert(driver.pool.as_str());
            }
        }
    }
    let journal = read_journal(&args.state).map_err(CommandError::input)?;
    let mut workers = Vec::new();
    let mut names = BTreeSet::new();
    for (driver, listed) in listed {
        for ListedWorker { name, handle } in listed {
            let owned = journal.workers().get(&name);
            let state = match owned.and_then(|worker| worker.handle.as_ref()) {
                Some(own) if *own != handle => Ownership::Orphan,
                _ if owned.is_none() => Ownership::Orphan,
                _ => Ownership::Owned,
            };
            names.insert(name.clone());
            workers.push(PoolWorker { pool: driver.pool.clone(), name, handle: Some(handle), state });
        }
    }
    for (name, worker) in journal.workers().iter().filter(|(name, _)| !names.contains(*name)) {
        workers.push(PoolWorker {
            pool: worker.pool.clone(),
            name: name.clone(),
            handle: worker.handle.clone(),
            state: if failed_pools.contains(worker.pool.as_str()) {
                Ownership::Unknown
            } else {
                Ownership::Gone
            },
        });
    }
    for driver in &drivers.scaled {
        match driver.list() {
            Ok(listed) => workers.extend(listed.into_iter().map(|ListedWorker { name, handle }| {
                let (pool, handle) = (driver.pool.clone(), Some(handle));
                PoolWorker { pool, name, handle, state: Ownership::Owned }
            })),
            Err(reason) => _ = failures.insert(failure(&driver.pool, &reason)),
        }
    }
    Ok(Findings { workers, failures })
}

fn failure(pool: &str, reason: &str) -> String {
    format!("pool {pool}: {reason}")
}

/// Creates the drivers of pools that a cluster scales.
fn scaled(args: &PoolsArgs, pools: &Pools) -> CommandResult<Vec<ScaleDriver>> {
    let is_scaled = |kind: &DriverKind| matches!(kind, DriverKind::Kubernetes { .. });
    if !pools.0.iter().filter_map(|pool| pool.driver.as_ref()).any(|driver| is_scaled(&driver.kind)) {
        return Ok(Vec::new());
    }
    let namespace = Namespace::of_account(&args.service_account)
        .map_err(|error| CommandError::Input(format!("driver \"kubernetes\": {error}")))?;
    Ok(ScaleDriver::of_pools(pools, &namespace).into_iter().map(|(_, driver)| driver).collect())
}

/// Stops workers and waits for their end. Returns the workers that are left. A worker whose driver refuses to stop it is
/// not waited for.
fn reap(args: &PoolsArgs, drivers: &Drivers, found: Findings) -> CommandResult<Findings> {
    let begun = Instant::now();
    let Findings { mut workers, mut failures } = found;
    let mut refused: BTreeSet<String> = BTreeSet::new();
    let mut refused_pools: BTreeSet<&str> = BTreeSet::new();
    if args.all {
        for driver in &drivers.scaled {
            if let Err(reason) = driver.set(0) {
                failures.insert(failure(&driver.pool, &reason));
                refused_pools.insert(&driver.pool);
            }
        }
    }
    loop {
        let waits = |worker: &PoolWorker| {
            let is_refused = refused.contains(&worker.name) || refused_pools.contains(worker.pool.as_str());
            is_target(args, worker) && !is_refused
        };
        let targets: Vec<&PoolWorker> = workers.iter().filter(|worker| waits(worker)).collect();
        if targets.is_empty() || begun.elapsed() >= END_TIME {
            return Ok(Findings { workers, failures });
        }
        let mut failed = Vec::new();
        for worker in targets {
            let driver = drivers.single.iter().find(|driver| driver.pool == worker.pool);
            let (Some(driver), Some(handle)) = (driver, &worker.handle) else { continue };
            if let Err(reason) = driver.stop(&worker.name, handle) {
                failures.insert(format!("worker {}: {reason}", worker.name));
                failed.push(worker.name.clone());
            }
        }
        refused.extend(failed);
        std::thread::park_timeout(LOOK_EVERY);
        let now = look(args, drivers)?;
        workers = now.workers;
        failures.extend(now.failures);
    }
}

/// Returns whether a manager has the state directory open.
fn is_running(state: &Path) -> CommandResult<bool> {
    let path = state.join(LOCK);
    let file = File::open(&path).map_err(|error| {
        CommandError::Input(format!(
            "--state {}: {error}; the directory of a manager's --state is allowed",
            path.display()
        ))
    })?;
    Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns the number of the manager.
fn owner(state: &Path) -> CommandResult<u64> {
    let path = state.join(IDENTITY);
    match record::read::<ManagerIdentity>(&path) {
        Record::Sound(content) => Ok(content.value.number()),
        Record::Missing => Err(CommandError::Input(format!("{}: missing", path.display()))),
        Record::Corrupt(why) => Err(CommandError::Input(format!("{}: {why}", path.display()))),
        Record::Unreadable(why) => Err(CommandError::Input(format!("{}: {why}", path.display()))),
    }
}
