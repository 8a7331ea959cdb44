//! `pleach simulate`: simulates a study on a base cluster and cloud pools under several policies. Prints a table or a
//! document and writes figures. [`replay`] shows the log of a simulated cluster.

pub(super) mod replay;

use crate::burst::{BurstFile, Deadline, SimulatedStudy};
use crate::cli::SimulateArgs;
use crate::exit::{CommandError, CommandResult as Ended};
use crate::terminal::{print_json, print_line};
use pleach_report::drawings::burst::{Picture, Pictures};
use pleach_report::raster;
use pleach_results::folder::publish;
use pleach_simulation::burst::{Outcome, Policy, PolicyKind, run};
use pleach_workflow::Registry;
use serde::Serialize;
use std::num::NonZeroU32;
use std::path::Path;

/// Maximum number of fixed worker counts for the front of cost and makespan. Counts double up to the pool's maximum.
const MAX_TRIED: usize = 12;

/// Name of the baseline: the base cluster alone.
const BASE_ALONE: &str = "base-alone";

/// Document of all outcomes.
#[derive(Debug, Serialize)]
struct Simulated<'a> {
    study: &'a str,
    evaluations: usize,
    tiles: usize,
    seed: u64,
    /// Deadline of the study in seconds, also if the file states a share of the base cluster's makespan. `None` without
    /// one.
    deadline_seconds: Option<f64>,
    budget: Option<f64>,
    pools: Vec<&'a str>,
    /// Outcomes of the base cluster alone, then of the policies of the file.
    policies: &'a [Outcome],
    /// Outcomes of fixed worker counts of the first pool.
    front: &'a [Outcome],
}

/// Runs the command.
pub(super) fn execute(args: &SimulateArgs, registry: &Registry) -> Ended {
    let mut file = BurstFile::read(&args.burst).map_err(CommandError::input)?;
    file.burst.seed = args.seed.unwrap_or(file.burst.seed);
    if let Some(out) = &args.out {
        check_folder(out)?;
    }
    let slots = NonZeroU32::new(file.burst.base.nodes.saturating_mul(file.burst.base.cores));
    let slots = slots.unwrap_or(NonZeroU32::MIN);
    let planned = SimulatedStudy::of(&file.study, slots, file.burst.seed, registry)?;
    file.speed_up(&planned.work);
    file.burst.bucket_overhead_seconds = planned.bucket_overhead_seconds;
    file.burst.planned_buckets = planned.max_buckets.filter(|_| planned.bucket_overhead_seconds > 0.0);
    let record = args.out.is_some();
    let simulate = |policy: &Policy, record: bool| {
        run(&file.burst, policy, planned.workload.clone(), record).map_err(|stop| {
            CommandError::Input(format!("{}: policy {}: {stop}", args.burst.display(), policy.name))
        })
    };
    let none = file.burst.sites.iter().map(|site| site.pool.min).collect();
    let mut alone = Policy {
        name: BASE_ALONE.to_owned(),
        rule: PolicyKind::Fixed(none),
        deadline_seconds: None,
        budget: None,
    };
    // Simulated first: a deadline of the file may be a multiple of its makespan.
    let mut base = simulate(&alone, record)?;
    let deadline = file.deadline.map(|deadline| match deadline {
        Deadline::Seconds(seconds) => seconds,
        Deadline::OfBase(part) => part * base.makespan_seconds,
    });
    alone.deadline_seconds = deadline;
    base.deadline_seconds = deadline;
    base.in_time = deadline.map(|deadline| base.makespan_seconds <= deadline);
    let mut outcomes = vec![base];
    for policy in &file.policies {
        let deadline_seconds = policy.deadline_seconds.or(deadline);
        outcomes.push(simulate(&Policy { deadline_seconds, ..policy.clone() }, record)?);
    }
    let front = if record || args.json { front(&file, &alone, &simulate)? } else { Vec::new() };
    let pools: Vec<&str> = file.burst.sites.iter().map(|site| site.pool.name.as_str()).collect();
    if let Some(out) = &args.out {
        let pictures = Pictures {
            study: &planned.name,
            pools: &pools,
            stages: &planned.stages,
            deadline,
            outcomes: &outcomes,
            front: &front,
        };
        draw(out, &pictures.all(&file.burst))?;
    }
    if args.json {
        return print_json(&Simulated {
            study: &planned.name,
            evaluations: planned.evaluations,
            tiles: planned.tiles,
            seed: file.burst.seed,
            deadline_seconds: deadline,
            budget: file.budget,
            pools,
            policies: &outcomes,
            front: &front,
        });
    }
    show(&file, &planned, deadline, &outcomes);
    Ok(())
}

/// Simulates fixed worker counts of the first pool.
fn front(
    file: &BurstFile,
    alone: &Policy,
    simulate: &dyn Fn(&Policy, bool) -> Ended<Outcome>,
) -> Ended<Vec<Outcome>> {
    let least: Vec<u32> = file.burst.sites.iter().map(|site| site.pool.min).collect();
    let most = file.burst.sites.first().map_or(0, |site| site.pool.max);
    let doubled = std::iter::successors(Some(1_u32), |workers| workers.checked_mul(2));
    let mut numbers: Vec<u32> =
        doubled.take(MAX_TRIED).take_while(|workers| *workers < most).chain([most]).collect();
    numbers.retain(|workers| *workers > least.first().copied().unwrap_or(0));
    let of = |workers: u32| {
        let mut fixed = least.clone();
        fixed[0] = workers;
        simulate(
            &Policy { name: format!("{workers}"), rule: PolicyKind::Fixed(fixed), ..alone.clone() },
            false,
        )
    };
    numbers.into_iter().map(of).collect()
}

/// Rejects an existing `out` that is not a folder, before the simulation.
fn check_folder(out: &Path) -> Ended {
    if out.exists() && !out.is_dir() {
        return Err(CommandError::Input(format!(
            "--out {}: not a folder; a folder is allowed",
            out.display()
        )));
    }
    Ok(())
}

fn draw(out: &Path, pictures: &[Picture]) -> Ended {
    std::fs::create_dir_all(out).map_err(|error| {
        CommandError::of_write(&error, format!("--out {}: {error}; a folder is allowed", out.display()))
    })?;
    for Picture { name, svg } in pictures {
        let png = raster::png(svg).map_err(CommandError::defect)?;
        for (ending, content) in [("svg", svg.as_bytes()), ("png", &png)] {
            let path = out.join(format!("{name}.{ending}"));
            publish(&path, content).map_err(|error| {
                CommandError::writing(format_args!("--out {}: failed to write", path.display()), &error)
            })?;
        }
    }
    Ok(())
}

fn kinds(cores: u32, accelerators: u32) -> String {
    match accelerators {
        0 => format!("{cores} cores"),
        1 => format!("{cores} cores and 1 accelerator"),
        _ => format!("{cores} cores and {accelerators} accelerators"),
    }
}

fn show(file: &BurstFile, planned: &SimulatedStudy, deadline: Option<f64>, outcomes: &[Outcome]) {
    let base = file.burst.base;
    print_line(&format!(
        "{}: {} evaluations on {} tiles; {} base nodes of {}; seed {}",
        planned.name,
        planned.evaluations,
        planned.tiles,
        base.nodes,
        kinds(base.cores, file.accelerators.0),
        file.burst.seed
    ));
    if let Some(deadline) = deadline {
        print_line(&format!("deadline: {deadline:.0} s"));
    }
    if let Some(budget) = file.budget {
        print_line(&format!("budget: {budget:.2}"));
    }
    print_line("");
    let header =
        ["policy", "makespan, s", "in time", "cost", "busy", "reuse", "lost, s", "interrupted", "workers"];
    let row = |outcome: &Outcome| {
        [
            outcome.policy.clone(),
            format!("{:.0}", outcome.makespan_seconds),
            outcome
                .in_time
                .map_or_else(|| "-".to_owned(), |in_time| if in_time { "yes" } else { "no" }.to_owned()),
            format!("{:.2}", outcome.cost),
            format!("{:.1} %", 100.0 * outcome.utilization),
            format!("{:.1} %", 100.0 * outcome.reuse_kept),
            format!("{:.0}", outcome.lost_seconds),
            outcome.interruptions.to_string(),
            format!("{}/{}", outcome.max_workers, outcome.requested),
        ]
    };
    let rows: Vec<[String; 9]> =
        std::iter::once(header.map(str::to_owned)).chain(outcomes.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in &rows {
        // Names are left-aligned, numbers right-aligned.
        let cell = |(column, cell): (usize, &String)| match column {
            0 => format!("{cell:<width$}", width = widths[0]),
            column => format!("{cell:>width$}", width = widths[column]),
        };
        print_line(&row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  "));
    }
    let notes: Vec<String> = outcomes.iter().flat_map(notes).collect();
    if !notes.is_empty() {
        print_line("");
        notes.iter().for_each(|note| print_line(note));
    }
}

/// Returns notes on infeasible deadlines and budgets, with feasible alternatives.
fn notes(outcome: &Outcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((deadline, seconds)) = outcome.deadline_seconds.zip(outcome.fastest_seconds) {
        let cost = outcome.fastest_cost.unwrap_or(0.0);
        notes.push(format!(
            "{}: the deadline of {deadline:.0} s cannot be met: the fastest possible is about {seconds:.0} s, for {cost:.2}",
            outcome.policy
        ));
    }
    if let Some((budget, needed)) = outcome.budget.zip(outcome.needed_cost) {
        notes.push(format!(
            "{}: the budget of {budget:.2} is too low for the deadline, which needs about {needed:.2}",
            outcome.policy
        ));
    }
    notes
}
