//! What manager and worker processes have in common.

use crate::exit::{Outcome, Stop};
use crate::output::print_line;
use ring::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// One line for the operator, with the time.
pub(super) fn say(text: &str) {
    let now = OffsetDateTime::now_utc();
    let now = now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default();
    print_line(&format!("{now} {text}"));
}

/// A number that nobody else has.
pub(crate) fn random() -> Outcome<u64> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Stop::defect("the system gives no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}
