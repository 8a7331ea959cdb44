//! Certificates of a node and of an authority: content, validity, key, and modes of the files.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use pleach_actors::transport::certs::{
    Authority, CA_FILE, CA_KEY_FILE, Credentials, CredentialsDefect, NODE_FILE, NODE_KEY_FILE, TOKEN_KEY_FILE,
};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::Trust;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// 14 days before its end, a certificate should be replaced: workers renew theirs of 30 days at a start.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 86_400);

/// The bits of a mode that concern other users.
const OTHERS: u32 = 0o077;

pub(super) fn check(args: &DoctorArgs, items: &mut Items) {
    let Some(folder) = &args.certs else { return };
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let is_node = has(NODE_FILE) || has(NODE_KEY_FILE);
    if is_node {
        node(items, folder, SystemClock.now());
    }
    if has(CA_KEY_FILE) || has(TOKEN_KEY_FILE) {
        let subject = format!("--certs {}: authority", folder.display());
        match Authority::open(folder) {
            Ok(_) => items.ok(subject, "complete"),
            Err(error) => items.error(
                subject,
                error.to_string(),
                "restore the folder from a copy, or create another authority: pleach certs init",
            ),
        }
    } else if !is_node {
        trust(items, folder);
    }
    for name in [NODE_KEY_FILE, CA_KEY_FILE, TOKEN_KEY_FILE] {
        mode(items, &folder.join(name));
    }
}

/// Checks a folder with the authority's certificate alone, which a client with a token needs.
fn trust(items: &mut Items, folder: &Path) {
    let subject = format!("--certs {}", folder.display());
    match Trust::load(folder) {
        Ok(_) => items.ok(subject, format!("{CA_FILE} of an authority, for clients with a token")),
        Err(error) => items.error(
            subject,
            error.to_string(),
            "name the folder that pleach certs issue has written, or one with the authority's ca.pem",
        ),
    }
}

fn node(items: &mut Items, folder: &Path, now: Duration) {
    let subject = format!("--certs {}", folder.display());
    let credentials = match Credentials::load(folder) {
        Ok(credentials) => credentials,
        Err(error) => {
            let remedy = "copy both files again, or issue new ones into an empty folder: pleach certs issue";
            return items.error(subject, error.to_string(), remedy);
        }
    };
    let identity = credentials.identity();
    if let Err(defect) = credentials.verify(now) {
        return items.error(subject, format!("{identity}: {defect}"), remedy(defect));
    }
    let [end, of_authority] = credentials.expiry().map(|end| end.unwrap_or_default());
    let (end, of) =
        if of_authority < end { (of_authority, "authority's certificate") } else { (end, "certificate") };
    let left = end.saturating_sub(now);
    let found = format!(
        "{identity}, valid for {} days, signed by its authority, with its key",
        left.as_secs() / DAY.as_secs()
    );
    if left < EXPIRES_SOON {
        items.warning(
            subject,
            format!("{found}; the {of} expires soon"),
            "issue a new one into an empty folder: pleach certs issue",
        );
    } else {
        items.ok(subject, found);
    }
}

fn remedy(defect: CredentialsDefect) -> &'static str {
    match defect {
        CredentialsDefect::Key => "copy node.pem and node-key.pem of one node, both from its folder",
        CredentialsDefect::Foreign => "issue another by the cluster's authority: pleach certs issue",
        CredentialsDefect::Expired => {
            "issue a new one into an empty folder (pleach certs issue); a worker with a valid token gets one at its start"
        }
        CredentialsDefect::NotYetValid => {
            "set the clock of this machine; certificates are valid from 1 day before their creation"
        }
        CredentialsDefect::ExpiredAuthority => {
            "create another authority (pleach certs init) and issue all certificates again"
        }
    }
}

/// Reports a key that other users can read.
fn mode(items: &mut Items, path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    let mode = found.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        items.error(
            path.display().to_string(),
            format!("other users have access (mode {mode:04o})"),
            format!("chmod 600 {}; if others have read it, issue a new certificate", path.display()),
        );
    }
}
