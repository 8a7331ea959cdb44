//! `pleach submit`: submits a study to a manager, and optionally waits for its results.

use super::progress_bars::{StudyBar, TransferBar};
use super::{connect, line_on_stderr, table};
use crate::cli::{SubmitArgs, TimeArg};
use crate::command::load_costs;
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::operations;
use crate::terminal::{print_json, print_line, print_notice};
use pleach_api::schema::StudyState;
use pleach_api::submission::{PlanChoice, Submission, SubmissionOptions};
use pleach_client::submit::submit;
use pleach_client::{Client, InterruptibleWait, TransferProgress, download, follow, plain};
use pleach_dispatch::plan::GrantOrder;
use pleach_report::gallery::previews::Previews;
use pleach_study::{PreparedStudy, annotations};
use pleach_workflow::{Method, Registry};
use serde::Serialize;

#[derive(Serialize)]
struct Accepted<'a> {
    id: &'a str,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &SubmitArgs, registry: &Registry) -> CommandResult {
    let waits = args.wait || args.out.is_some();
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    let submission = read(args, registry)?;
    // Use stderr: scripts read the study's id from stdout.
    annotations::notes(&submission.study).iter().for_each(|line| line_on_stderr(line));
    // Listen only now: before the submission a signal may simply end the process.
    let mut interrupt = Interrupt::listen()?;
    client.waiting().listen_to(interrupt.take_stop_requested());
    let id = submit(&client, &submission, || TransferBar::new("sending files", args.json))?;
    if !waits {
        if args.json {
            return print_json(&Accepted { id: &id });
        }
        print_line(&plain(&id));
        return Ok(());
    }
    follow_to_results(&client, args, &id)
}

/// Reads a study and digests its input files.
fn read(args: &SubmitArgs, registry: &Registry) -> CommandResult<Submission> {
    let registry = &operations::pinned(&args.pin.pin, registry)?;
    let mut prepared = PreparedStudy::load(&args.study, args.parameter_sets.as_deref(), registry)?;
    Previews::find(&args.preview, &prepared.study.workflow)?;
    prepared.warnings().for_each(|warning| print_notice(&warning));
    load_costs(&mut prepared, args.plan.buckets, None)?;
    let is_table = args.parameter_sets.is_some() || matches!(prepared.study.method, Method::Table { .. });
    let plan = PlanChoice {
        strategy: args.plan.strategy(),
        reuse: args.plan.reuse.into(),
        max_bucket_size: args.plan.buckets.max_bucket_size,
        max_buckets: args.plan.buckets.max_buckets,
        overhead_seconds: args.plan.buckets.overhead.fixed_seconds(),
        order: GrantOrder::default(),
    };
    let deadline = args.deadline.map(deadline).transpose()?;
    let budget = args.budget.map(|budget| budget.0);
    let preview = args.preview.clone();
    let code = operations::code_of_study(&args.study, registry)?;
    Ok(Submission::new(&prepared, is_table, SubmissionOptions { plan, deadline, budget, preview, code })?)
}

/// A deadline in seconds since 1970.
fn deadline(until: TimeArg) -> CommandResult<u64> {
    let (now, deadline) = (now(), until.seconds(now()));
    if deadline <= now {
        return Err(CommandError::Input(format!(
            "--deadline: {} has passed; a future time is allowed",
            time::OffsetDateTime::from_unix_timestamp(deadline as i64)
                .ok()
                .and_then(|moment| moment.format(&time::format_description::well_known::Rfc3339).ok())
                .unwrap_or_else(|| deadline.to_string()),
        )));
    }
    Ok(deadline)
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(time::OffsetDateTime::now_utc().unix_timestamp()).unwrap_or(0)
}

fn follow_to_results(client: &Client, args: &SubmitArgs, id: &str) -> CommandResult {
    let study_id = plain(id);
    client.waiting().set_message(format!(
        "study {study_id} continues; pleach watch {study_id} follows it, pleach cancel {study_id} ends it"
    ));
    let mut bar = StudyBar::new(args.json);
    let ended = follow::to_its_end(client, id, |study| bar.show(study));
    bar.finish();
    let study = ended?;
    let mut files = None;
    if let Some(out) = args.out.as_deref().filter(|_| study.state == StudyState::Complete) {
        client.waiting().set_message(format!(
            "study {study_id} is complete; pleach results {study_id} fetches its results"
        ));
        let transfer = TransferBar::new("receiving results", args.json);
        let received = download::results(client, id, out, &transfer);
        transfer.finish();
        files = Some((received?, out));
    }
    if args.json {
        print_json(&study)?;
    } else if study.state == StudyState::Complete {
        let evaluations = format!("study {study_id} is complete: {} evaluations", study.evaluations_done);
        print_line(&match files {
            Some((number, out)) => format!("{evaluations}; {number} files of results in {}", out.display()),
            None => format!("{evaluations}; pleach results {study_id} fetches its results"),
        });
        table::cost(&study).iter().for_each(|line| print_line(line));
    }
    Ok(follow::verdict(&study)?)
}
