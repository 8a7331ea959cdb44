//! Executes clusterings by emulated tasks, on the workers of a manager or on processes of this machine.
//!
//! [`local_cluster`] starts these processes, and [`submission`] executes one clustering as a study of one evaluation. The
//! makespan is the manager's: from the start of the plan to the report of the last stage.

mod local_cluster;
mod submission;

use super::candidates::{Settings, Simulated};
use super::evaluation::Evaluation;
use super::executed::{Executed, ExecutionRecord};
use crate::cli::{ClusterArgs, ExecutionArgs};
use crate::command::client::connect;
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use local_cluster::LocalCluster;
use pleach_api::schema::{WorkerState, WorkerStatus};
use pleach_client::InterruptibleWait;
use pleach_emulation::{EmulatedWorkflow, JobDelays, emulated_workflow};
use pleach_workflow::Registry;
use submission::Submitter;

/// Rejects options that an execution cannot follow, before the simulation.
pub(super) fn check(args: &ClusterArgs) -> CommandResult {
    let execution = &args.execution;
    if !execution.execute {
        return Ok(());
    }
    let platform = &args.platform;
    for (option, seconds) in [("--engine", platform.engine), ("--post", platform.post)] {
        if seconds > 0.0 {
            return Err(CommandError::Input(format!(
                "{option} {seconds}: --execute has no place for a delay that occupies no worker; 0 is allowed"
            )));
        }
    }
    let is_local = connection(execution)?.is_none();
    if is_local && platform.workers.get() > local_cluster::MAX_WORKERS {
        return Err(CommandError::Input(format!(
            "--workers {}: --execute without --manager starts a process for each; at most {} are allowed",
            platform.workers,
            local_cluster::MAX_WORKERS
        )));
    }
    Ok(())
}

/// Executes all clusterings of the workflows, and adds their records.
pub(super) fn execute(
    args: &ExecutionArgs,
    evaluations: &mut [Evaluation],
    settings: &Settings,
    registry: &Registry,
) -> CommandResult {
    // Before processes start: a clustering may exceed a limit.
    for evaluation in evaluations.iter() {
        let mut all = evaluation.simulated.iter();
        all.try_for_each(|simulated| emulated(evaluation, simulated, settings, 0).map(drop))?;
    }
    let mut interrupt = Interrupt::listen()?;
    let waiting = InterruptibleWait::until_killed()?;
    waiting.listen_to(interrupt.take_stop_requested());
    let workers = settings.platform.workers().get();
    let mut local = None;
    let client = match connection(args)? {
        Some(manager) => {
            let client = connect(&manager, waiting)?;
            check_workers(workers, &client.workers()?)?;
            client
        }
        None => local.insert(LocalCluster::start(workers, &waiting)?).connect(waiting)?,
    };
    let submitter = Submitter::new(&client, registry)?;
    for evaluation in evaluations {
        for simulated in &evaluation.simulated {
            let run = |_| execute_once(&submitter, evaluation, simulated, settings);
            let records = (0..args.replicates).map(run).collect::<CommandResult<_>>()?;
            evaluation.executed.push(Executed { records });
        }
    }
    Ok(())
}

fn connection(args: &ExecutionArgs) -> CommandResult<Option<crate::cli::ManagerArgs>> {
    args.connection().map_err(CommandError::Input)
}

fn execute_once(
    submitter: &Submitter<'_>,
    evaluation: &Evaluation,
    simulated: &Simulated,
    settings: &Settings,
) -> CommandResult<ExecutionRecord> {
    submitter.execute(emulated(evaluation, simulated, settings, pleach_api::random::number()?)?)
}

/// Returns the workflow of an execution, with the drawn delays of the simulation.
fn emulated(
    evaluation: &Evaluation,
    simulated: &Simulated,
    settings: &Settings,
    execution: u64,
) -> CommandResult<EmulatedWorkflow> {
    let delays = simulated.execution.jobs.iter();
    let delays: Vec<JobDelays> =
        delays.map(|job| JobDelays { queue: job.queue, clustering: job.clustering }).collect();
    let bandwidth = settings.platform.bytes_per_second();
    let (workflow, clustering) = (&evaluation.workflow, &simulated.clustering);
    emulated_workflow(workflow, clustering, &delays, bandwidth, execution).map_err(|error| {
        let file = evaluation.file.display();
        CommandError::Input(format!("{file}: --execute: {}: {error}", simulated.candidate.in_words()))
    })
}

/// Checks that the manager has the workers of the simulation: the same number, and one slot each.
fn check_workers(wanted: usize, workers: &[WorkerStatus]) -> CommandResult {
    let active: Vec<&WorkerStatus> =
        workers.iter().filter(|worker| worker.state == WorkerState::Active).collect();
    let allowed = format!("{wanted} idle workers of 1 core are needed, or another --workers");
    if active.len() != wanted {
        return Err(CommandError::Input(format!(
            "--workers {wanted}: the manager has {} active workers; {allowed}",
            active.len()
        )));
    }
    let unsuitable = active.iter().find(|worker| worker.cores != 1 || worker.running > 0);
    match unsuitable {
        Some(worker) => Err(CommandError::Input(format!(
            "--workers {wanted}: worker {} has {} cores and executes {} tasks; {allowed}",
            pleach_client::plain(&worker.name),
            worker.cores,
            worker.running
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(cores: u32, running: u32, state: WorkerState) -> WorkerStatus {
        WorkerStatus {
            name: "w".to_owned(),
            state,
            cores,
            accelerators: 0,
            closed_accelerators: 0,
            running,
            bytes: 0,
            memory_bytes: 1,
            address: String::new(),
            missing_operations: Vec::new(),
            time_limit: None,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn other_workers_than_those_of_the_simulation_are_refused() {
        let one = || worker(1, 0, WorkerState::Active);
        assert!(check_workers(2, &[one(), one(), worker(4, 0, WorkerState::Draining)]).is_ok());
        for (workers, cause) in [
            (vec![], "the manager has 0 active workers"),
            (vec![one()], "the manager has 1 active workers"),
            (vec![one(), worker(2, 0, WorkerState::Active)], "worker w has 2 cores and executes 0 tasks"),
            (vec![worker(1, 3, WorkerState::Active), one()], "worker w has 1 cores and executes 3 tasks"),
        ] {
            let refused = check_workers(2, &workers);
            assert!(
                matches!(&refused, Err(CommandError::Input(text)) if text.contains(cause)),
                "{refused:?}"
            );
        }
    }
}
