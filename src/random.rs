//! Random numbers of the operating system.

use crate::exit::{CommandError, CommandResult};
use ring::rand::{SecureRandom, SystemRandom};

/// Returns a random number, unique in practice.
pub(crate) fn number() -> CommandResult<u64> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| CommandError::defect("the system gives no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}
