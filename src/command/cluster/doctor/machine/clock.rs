//! Clock: a plausible date, and the difference to a manager's clock.

use crate::cli::{DoctorArgs, ManagerArgs};
use crate::command::cluster::items::Items;
use crate::command::manager_token;
use pleach_client::{Client, InterruptibleWait};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// 2026-01-01: no release is older.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

/// 2100-01-01: no certificate is valid beyond 10 years.
const LATEST: Duration = Duration::from_secs(4_102_444_800);

/// 5 s between two clocks. Deadlines and time limits of jobs are compared across machines.
const OFFSET_SECONDS: f64 = 5.0;

/// 1 day between two clocks: new certificates are valid from 1 day before their creation.
const MAX_OFFSET_SECONDS: f64 = 86_400.0;

pub(super) fn check(args: &DoctorArgs, items: &mut Items) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(items, now, &zone());
    let Some(manager) = &args.manager else { return };
    let subject = format!("manager {manager}");
    let Some(certs) = &args.certs else {
        return items.warning(
            subject,
            "not asked, without --certs",
            "name the folder of a client's certificate by --certs",
        );
    };
    let (token_file, timeout) = (args.token_file.clone(), args.timeout);
    let connection = ManagerArgs { manager: manager.clone(), certs: certs.clone(), token_file, timeout };
    let client = InterruptibleWait::until_killed().map_err(|defect| defect.to_string()).and_then(|waiting| {
        let client = Client::new(&connection.options(), manager_token().as_deref(), waiting);
        client.map_err(|error| error.to_string())
    });
    let client = match client {
        Ok(client) => client,
        Err(error) => return items.error(subject, error, "correct the option"),
    };
    match client.clock_offset_seconds() {
        Ok(offset) => compare(items, &subject, offset),
        Err(error) => items.error(
            subject,
            error.to_string(),
            "start the manager, open its TCP port in firewalls, or name the certificate of a client of its cluster",
        ),
    }
}

/// Returns the time zone: `TZ`, or the target of `/etc/localtime`.
fn zone() -> String {
    let variable = std::env::var("TZ").ok().filter(|zone| !zone.is_empty());
    let link = || fs::read_link("/etc/localtime").ok().map(|path| path.display().to_string());
    let zone = variable.or_else(link).unwrap_or_else(|| "UTC".to_owned());
    zone.rsplit_once("zoneinfo/").map_or(zone.as_str(), |(_, name)| name).to_owned()
}

fn date(items: &mut Items, now: Duration, zone: &str) {
    let time = OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(now.as_secs() as i64);
    let time = time.format(&Rfc3339).unwrap_or_default();
    if (EARLIEST..LATEST).contains(&now) {
        items.ok("clock", format!("{time}, time zone {zone}"));
    } else {
        items.error(
            "clock",
            format!("{time} cannot be right"),
            "set the clock: certificates and deadlines depend on it",
        );
    }
}

fn compare(items: &mut Items, subject: &str, offset: f64) {
    let remedy = "synchronize both clocks (timedatectl set-ntp true)";
    let side = if offset > 0.0 { "ahead of" } else { "behind" };
    let found = format!("accepts the credentials; its clock is {:.0} s {side} this one", offset.abs());
    if offset.abs() > MAX_OFFSET_SECONDS {
        items.error(subject, found, remedy);
    } else if offset.abs() > OFFSET_SECONDS {
        items.warning(subject, found, remedy);
    } else {
        items.ok(subject, "accepts the credentials; its clock agrees with this one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cluster::items::Severity;

    #[test]
    fn implausible_dates_are_errors() {
        let mut items = Items::default();
        for seconds in [0, 1_767_225_599, 4_102_444_800] {
            date(&mut items, Duration::from_secs(seconds), "UTC");
        }
        assert_eq!(items.count(Severity::Error), 3);
        date(&mut items, EARLIEST, "UTC");
        assert_eq!(items.count(Severity::Ok), 1);
    }

    #[test]
    fn difference_of_clocks_is_weighed() {
        let mut items = Items::default();
        for offset in [4.9, -4.9, 5.1, -100.0, 86_401.0, -90_000.0] {
            compare(&mut items, "manager", offset);
        }
        let counts = [Severity::Ok, Severity::Warning, Severity::Error].map(|severity| items.count(severity));
        assert_eq!(counts, [2, 2, 2]);
    }
}
