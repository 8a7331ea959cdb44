//! `pleach certs init|issue|token`: creates a cluster's authority, certificates for its nodes, and tokens to join with.

use crate::cli::{CertsCommand, IssueArgs, TokenArgs};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_actors::transport::certs::{Authority, CertsError, MAX_DAYS, NODE_FILE, NODE_KEY_FILE, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::identity::NodeIdentity;
use pleach_actors::transport::token::{Fingerprint, Ttl, fingerprint, hex};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Made<'a> {
    dir: &'a Path,
    fingerprint: String,
    days: u32,
}

#[derive(Serialize)]
struct Issued<'a> {
    name: &'a str,
    role: &'a str,
    certificate: PathBuf,
    key: PathBuf,
    ends: u64,
}

#[derive(Serialize)]
struct Token {
    token: String,
    ends: u64,
    once: bool,
}

/// Runs the command.
pub(in crate::command) fn execute(command: &CertsCommand) -> CommandResult {
    match command {
        CertsCommand::Init { dir, json } => init(dir, *json),
        CertsCommand::Issue(args) => issue(args),
        CertsCommand::Token(args) => token(args),
    }
}

fn init(dir: &Path, json: bool) -> CommandResult {
    let authority = Authority::init(dir, SystemClock.now()).map_err(stop)?;
    let fingerprint = hex(&of(&authority));
    if json {
        return print_json(&Made { dir, fingerprint, days: MAX_DAYS });
    }
    print_line(&format!(
        "{}: certificate authority for {MAX_DAYS} days, SHA-256 {fingerprint}",
        dir.display()
    ));
    Ok(())
}

fn issue(args: &IssueArgs) -> CommandResult {
    let authority = Authority::open(&args.dir).map_err(stop)?;
    let identity = NodeIdentity { name: args.name.clone(), role: args.role };
    let validity = Validity::days(args.days, SystemClock.now())
        .map_err(|error| CommandError::Input(format!("--days {error}")))?;
    let out = args.out.clone().unwrap_or_else(|| args.dir.join(args.name.as_str()));
    authority.issue(&identity, validity, &out).map_err(stop)?;
    if args.json {
        return print_json(&Issued {
            name: args.name.as_str(),
            role: args.role.as_str(),
            certificate: out.join(NODE_FILE),
            key: out.join(NODE_KEY_FILE),
            ends: validity.end().as_secs(),
        });
    }
    print_line(&format!("{}: certificate and key of {identity}, for {} days", out.display(), args.days));
    Ok(())
}

fn token(args: &TokenArgs) -> CommandResult {
    let authority = Authority::open(&args.dir).map_err(stop)?;
    let ttl = Ttl::new(args.ttl.0).map_err(|error| CommandError::Input(format!("--ttl: {error}")))?;
    let token =
        authority.token_key().make(of(&authority), SystemClock.now(), ttl, args.single_use).map_err(stop)?;
    if args.json {
        return print_json(&Token { token: token.to_string(), ends: token.ends(), once: args.single_use });
    }
    // Scripts read the token, so print only that.
    print_line(&token.to_string());
    Ok(())
}

fn of(authority: &Authority) -> Fingerprint {
    fingerprint(authority.certificate())
}

/// Converts an error into an input error if the user can correct it, and else into an internal error.
fn stop(error: CertsError) -> CommandError {
    match error {
        CertsError::File { .. } => CommandError::caused(&error, error.to_string()),
        CertsError::Exists(_)
        | CertsError::Content { .. }
        | CertsError::Identity { .. }
        | CertsError::Days { .. } => CommandError::input(error),
        CertsError::Make(_) | CertsError::Request(_) | CertsError::Random => CommandError::defect(error),
    }
}
