//! `pleach run`: a study from its file to its report.

use super::way::{BucketLimits, Way};
use super::{meter, weigh, workers};
use crate::analysis::Collected;
use crate::below::{self, Tiers};
use crate::cli::RunArgs;
use crate::costs;
use crate::execution::{self, Here};
use crate::exit::{Outcome, Stop};
use crate::gallery::previews::Previews;
use crate::interrupt::Interrupt;
use crate::journal;
use crate::machine::{self, default_memory_bytes};
use crate::output::folder::Folder;
use crate::output::record::Plan;
use crate::output::{print_json, print_line};
use crate::past;
use crate::progress::Shown;
use crate::results::{self, Written};
use crate::session::{self, Found, Session};
use crate::size::{MemorySize, human};
use crate::study::Prepared;
use crate::summary;
use crate::weave::{self, Least, Loom, Woven};
use pleach_actors::stage::Past;
use pleach_actors::worker::Resources;
use pleach_dispatch::costs::Costs;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &RunArgs) -> Outcome {
    let start = Instant::now();
    let mut interrupt = Interrupt::listen()?;
    let mut prepared = Prepared::load(&args.study, args.table.as_deref())?;
    prepared.check_runnable()?;
    let previews = Previews::asked(&args.preview, &prepared.study.workflow)?;
    let planning = Instant::now();
    let workers = workers(args.workers);
    let way = Way::new(args.way.strategy, args.way.reuse);
    if args.cache.cache.is_some() && way.reuse_name() != Some("value") {
        return Err(Stop::Input(
            "--cache: results are found by what their inputs hold; --reuse value with naive, sca, rtma or trtma is allowed"
                .to_owned(),
        ));
    }
    let cache = past::open(&args.cache)?;
    weigh(&mut prepared, args.way.buckets, args.cache.cache.as_deref())?;
    let tiers = below::open(&args.below)?;
    let below_bytes = tiers.as_ref().map_or(0, Tiers::bytes);
    let Planned { way, limits, mut woven, memory_bytes } =
        plan_within_memory(args, &prepared, way, workers, below_bytes)?;
    let plan = Plan {
        strategy: way.strategy_name(),
        reuse: way.reuse_name(),
        figures: woven.figures.clone(),
        planning_seconds: Some(planning.elapsed().as_secs_f64()),
        workers: workers.get(),
        max_bucket_size: way.max_bucket_size(limits),
        max_buckets: way.max_buckets(limits),
    };
    pleach_pages::set_limit_bytes(memory_bytes);

    let identities = if cache.is_some() { past::identities(&prepared) } else { HashMap::new() };
    let past = Past { cache, identities: Arc::new(identities) };

    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&prepared.study.name));
    let session = match session::begin(&out, &prepared, args.resume)? {
        Found::Complete(folder) => return already_complete(args, &folder),
        Found::Open(session) => session,
    };
    let folder = &session.folder;
    say_what_is_known(args, &session);
    results::write_plan(&prepared, &plan, folder)?;

    let resources = Resources { slots: workers, memory_bytes, active_paths: args.active_paths, meter };
    let shown = if args.quiet || args.json { Shown::Nothing } else { Shown::Fitting };
    let below = tiers.map(|tiers| tiers.below);
    let mut here =
        Here { prepared: &prepared, past: &past, below: below.clone(), resources, interrupt: &mut interrupt };
    let executed = execution::execute(&prepared, &mut woven, &session, &past, &mut here, shown, |_| {})?;
    let costs_lost = keep_costs(args, &prepared, &executed.costs);
    let finished = &executed.finished;
    let collected = Collected::new(&prepared, &woven, &finished.outcome);
    if finished.outcome.stopped {
        let known = collected.runs.len() - collected.failed();
        return Err(Stop::Interrupted(format!(
            "{known} of {} responses are in {}; --resume continues the study",
            collected.runs.len(),
            out.join(journal::NAME).display(),
        )));
    }

    let done = results::Done {
        prepared: &prepared,
        plan: &plan,
        executed: &executed,
        past: &past,
        below: below.as_deref(),
        costs_lost,
        start,
    };
    let Written { run, analysis, gallery } = results::write(&done, &collected, &previews, folder)?;
    session.end(collected.failed() == 0)?;

    if args.json {
        print_json(&run)?;
    } else if !args.quiet {
        summary::print(&run, &analysis, folder.path(), Some(memory_bytes));
        run.cache.iter().flat_map(|cache| &cache.reports).for_each(|report| {
            print_line(&format!("--cache: {report}"));
        });
        gallery.told(&previews, folder).iter().for_each(|told| print_line(told));
    }
    // A defect of the bookkeeping, not of the results: said once they are safe.
    if finished.left_bytes > 0 {
        return Err(Stop::Defect(format!("{} bytes of regions were never let go of", finished.left_bytes)));
    }
    status(&collected, folder)
}

/// Keeps what was learned for later studies, in their cache; says why it could not.
fn keep_costs(args: &RunArgs, prepared: &Prepared, learned: &Costs) -> Option<String> {
    let folder = args.cache.cache.as_deref().filter(|_| *learned != prepared.costs)?;
    let lost = costs::keep(folder, learned).err()?;
    Some(format!("what operations cost is not kept for later plans: {lost}"))
}

/// A plan that fits the memory.
struct Planned {
    way: Way,
    limits: BucketLimits,
    woven: Woven,
    /// The memory to keep within.
    memory_bytes: u64,
}

/// A plan, if the study can be executed within the memory at all. What is shared beyond a tree is held for longer: where
/// that would be too much, a tree it is.
fn plan_within_memory(
    args: &RunArgs,
    prepared: &Prepared,
    way: Way,
    workers: NonZeroU32,
    below_bytes: u64,
) -> Outcome<Planned> {
    let memory_bytes = args.memory.map_or_else(default_memory_bytes, MemorySize::bytes);
    let plan = |way: Way| {
        let loom = Loom::set_up(prepared.material(), way.merging()).map_err(Stop::input)?;
        let limits =
            BucketLimits::choose(args.way.buckets, &loom, workers, memory_bytes).map_err(Stop::input)?;
        let mut woven = weave::weave(loom, way.level(limits), workers.get()).map_err(Stop::input)?;
        let least = weave::rehearse(&mut woven, &prepared.registry, below_bytes).map_err(Stop::defect)?;
        Ok::<_, Stop>((Planned { way, limits, woven, memory_bytes }, least))
    };
    let (planned, least) = plan(way)?;
    if least.bytes <= memory_bytes {
        return Ok(planned);
    }
    // A cache is of use to values only.
    let Some(tree) = way.as_tree().filter(|_| args.cache.cache.is_none()) else {
        return Err(too_little(args, prepared, memory_bytes, least));
    };
    let (planned, of_tree) = plan(tree)?;
    if of_tree.bytes > memory_bytes {
        return Err(too_little(args, prepared, memory_bytes, of_tree));
    }
    if !args.quiet && !args.json {
        print_line(&format!(
            "--memory {}: tasks are shared as in trees (--reuse tree), since --reuse {} takes {} MB",
            human(memory_bytes),
            way.reuse_name().unwrap_or_default(),
            least.bytes.div_ceil(1_000_000),
        ));
    }
    Ok(planned)
}

fn too_little(args: &RunArgs, prepared: &Prepared, budget: u64, least: Least) -> Stop {
    let Least { bytes, stage, tile } = least;
    // Rounded up, so that what is named is enough.
    let megabytes = bytes.div_ceil(1_000_000);
    let given = match args.memory {
        Some(_) => format!("--memory {}", human(budget)),
        None => format!("--memory {} (60 % of {})", human(budget), machine::limit()),
    };
    Stop::Input(format!(
        "{given}: the {} of {} needs {megabytes} MB at once; {megabytes}MB or more is allowed",
        prepared.study.workflow.stages[stage].name,
        prepared.study.tiles[tile].path.display(),
    ))
}

/// All results are there: says so, as a run of the study would.
fn already_complete(args: &RunArgs, folder: &Folder) -> Outcome {
    if args.json {
        let fail = |error| {
            Stop::Input(format!("--out {}: failed to read run.json: {error}", folder.path().display()))
        };
        let text = std::fs::read_to_string(folder.path().join("run.json")).map_err(fail)?;
        print_json(&serde_json::from_str::<serde_json::Value>(&text).map_err(Stop::defect)?)?;
    } else if !args.quiet {
        print_line(&format!(
            "nothing to resume: {} holds all results of this study",
            folder.path().display()
        ));
    }
    Ok(())
}

fn say_what_is_known(args: &RunArgs, session: &Session) {
    if args.quiet || args.json || (session.known.is_empty() && session.cut_bytes == 0) {
        return;
    }
    print_line(&format!("resumed: {} responses are known", session.known.len()));
    if session.cut_bytes > 0 {
        print_line(&format!(
            "the last {} bytes of the journal were cut short or damaged; what they said is computed again",
            session.cut_bytes
        ));
    }
}

/// The end of the command: 3 when runs failed.
fn status(collected: &Collected, folder: &Folder) -> Outcome {
    let Some(first) = collected.runs.iter().find_map(|run| run.result.as_ref().err()) else { return Ok(()) };
    let file = folder.path().join("failed.csv");
    Err(Stop::SomeFailed(format!(
        "{} of {} runs failed, listed in {}; the first: {}, {}: {}",
        collected.failed(),
        collected.runs.len(),
        file.display(),
        first.stage,
        first.at,
        first.cause,
    )))
}
