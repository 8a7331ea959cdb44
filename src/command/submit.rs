//! `pleach submit`: submits a study to a manager, and optionally waits for its results.

use super::load_costs;
use crate::api::schema::StudyState;
use crate::cli::{SubmitArgs, TimeArg};
use crate::client::progress_bars::{TransferBar, line_on_stderr, plain};
use crate::client::{Client, Waiting, download, follow, upload};
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::service::submission::{PlanChoice, Submission, SubmissionOptions};
use crate::study::{PreparedStudy, annotations};
use crate::terminal::{print_json, print_line, print_notice};
use pleach_actors::transport::token::hex;
use pleach_workflow::Method;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;

/// Maximum upload rounds. One round is enough unless the manager loses files meanwhile.
const ROUNDS: usize = 3;

#[derive(Serialize)]
struct Accepted<'a> {
    id: &'a str,
}

/// Runs the command.
pub(super) fn execute(args: &SubmitArgs) -> CommandResult {
    let waits = args.wait || args.out.is_some();
    let client =
        Client::new(&args.manager.options(), super::manager_token().as_deref(), Waiting::until_killed()?)?;
    let submission = read(args)?;
    // Use stderr: scripts read the study's id from stdout.
    annotations::told(&submission.study).iter().for_each(|line| line_on_stderr(line));
    // Listen only now: before the submission a signal may simply end the process.
    let mut interrupt = Interrupt::listen()?;
    client.waiting().listen_to(&mut interrupt);
    let id = submit(&client, &submission, args.json)?;
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
fn read(args: &SubmitArgs) -> CommandResult<Submission> {
    let mut prepared = PreparedStudy::load(&args.study, args.parameter_sets.as_deref())?;
    prepared.warnings().for_each(|warning| print_notice(&warning));
    load_costs(&mut prepared, args.plan.buckets, None)?;
    let is_table = args.parameter_sets.is_some() || matches!(prepared.study.method, Method::Table { .. });
    let plan = PlanChoice {
        strategy: args.plan.strategy.into(),
        reuse: args.plan.reuse.into(),
        max_bucket_size: args.plan.buckets.max_bucket_size,
        max_buckets: args.plan.buckets.max_buckets,
    };
    let deadline = args.deadline.map(deadline).transpose()?;
    let budget = args.budget.map(|budget| budget.0);
    Submission::new(&prepared, is_table, SubmissionOptions { plan, deadline, budget })
}

/// A deadline in seconds since 1970.
fn deadline(until: TimeArg) -> CommandResult<u64> {
    let (now, deadline) = (now(), until.seconds(now()));
    if deadline <= now {
        return Err(CommandError::Input(format!(
            "--deadline: {} is over; a time to come is allowed",
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

/// Submits a study with all its files. Returns its id.
pub(crate) fn submit(client: &Client, submission: &Submission, is_quiet: bool) -> CommandResult<String> {
    let key = new_key()?;
    let mut submitted = client.submit(submission, &key)?;
    let id = submitted.id.clone();
    for _ in 0..ROUNDS {
        if submitted.missing.is_empty() {
            return Ok(id);
        }
        let told = plain(&id);
        client.waiting().goes_on(format!(
            "study {told} waits for files that it reads; pleach submit sends them, pleach cancel {told} ends it"
        ));
        let transfer = TransferBar::new("sending files", is_quiet);
        let sent = upload::missing(client, &submission.files(), &submitted.missing, &transfer);
        transfer.finish();
        sent?;
        // The same key identifies the same study. The manager returns the files that are still missing.
        submitted = client.submit(submission, &key)?;
    }
    if submitted.missing.is_empty() {
        return Ok(id);
    }
    Err(CommandError::Refused(format!(
        "study {}: the manager still lacks {} files that it was sent",
        plain(&id),
        submitted.missing.len()
    )))
}

/// Returns a random idempotency key. It identifies a study that is submitted twice after a lost answer.
fn new_key() -> CommandResult<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| CommandError::defect("the system gives no random numbers"))?;
    Ok(hex(&bytes))
}

fn follow_to_results(client: &Client, args: &SubmitArgs, id: &str) -> CommandResult {
    let told = plain(id);
    client.waiting().goes_on(format!(
        "study {told} goes on; pleach watch {told} follows it, pleach cancel {told} ends it"
    ));
    let study = follow::to_its_end(client, id, args.json)?;
    let mut files = None;
    if let Some(out) = args.out.as_deref().filter(|_| study.state == StudyState::Complete) {
        client
            .waiting()
            .goes_on(format!("study {told} is complete; pleach results {told} brings its results"));
        let transfer = TransferBar::new("receiving results", args.json);
        let received = download::results(client, id, out, &transfer);
        transfer.finish();
        files = Some((received?, out));
    }
    if args.json {
        print_json(&study)?;
    } else if study.state == StudyState::Complete {
        let evaluations = format!("study {told} is complete: {} evaluations", study.evaluations_done);
        print_line(&match files {
            Some((number, out)) => format!("{evaluations}; {number} files of results in {}", out.display()),
            None => format!("{evaluations}; pleach results {told} brings its results"),
        });
    }
    follow::verdict(&study)
}
