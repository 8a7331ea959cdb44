//! `pleach replay`: shows a simulation's log event by event, up to the first violated rule.

use crate::cli::ReplayArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_simulation::log::Log;
use pleach_simulation::replay::{Replay, Step, event_in_words};
use pleach_simulation::scenario::Scenario;
use serde::Serialize;

/// Document of the replay.
#[derive(Debug, Serialize)]
struct Replayed<'a> {
    schedule: &'a Scenario,
    /// Events in the log.
    events: usize,
    steps: Vec<Step>,
    /// Rule that the last step violated.
    breach: Option<String>,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &ReplayArgs) -> CommandResult {
    let file = args.log.display();
    let text = std::fs::read_to_string(&args.log)
        .map_err(|cause| CommandError::Input(format!("{file}: failed to read: {cause}")))?;
    let log = Log::parse(&text).map_err(|cause| CommandError::Input(format!("{file}: {cause}")))?;
    let steps = Replay::new(&log).take(args.max_events.unwrap_or(usize::MAX));
    if args.json {
        let steps: Vec<Step> = steps.collect();
        let breach = steps.last().and_then(|step| step.breach.clone());
        return print_json(&Replayed { schedule: &log.schedule, events: log.events.len(), steps, breach });
    }
    let seed = log.schedule.seed;
    let (nodes, incidents) = (log.schedule.nodes.len(), log.schedule.incidents.len());
    print_line(&format!(
        "seed {seed}: {nodes} initial workers, {} studies, {incidents} incidents, {} events",
        log.schedule.studies.len(),
        log.events.len(),
    ));
    let mut applied = 0;
    for step in steps {
        applied = step.number;
        print_line(&format!("{:>6}  {:>12.6} s  {}", step.number, step.seconds, event_in_words(&step.event)));
        let follows = step.answer.iter().chain(&step.effects);
        follows.for_each(|line| print_line(&format!("{:>24}{line}", "")));
        if let Some(breach) = &step.breach {
            print_line(&format!("violated rule: {breach}"));
            return Ok(());
        }
    }
    print_line(&format!("the first {applied} events violate no rule"));
    Ok(())
}
