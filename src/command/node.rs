//! What manager and worker processes have in common.

use crate::exit::{CommandError, CommandResult};
use ring::rand::{SecureRandom, SystemRandom};

/// A number that nobody else has.
pub(crate) fn random() -> CommandResult<u64> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| CommandError::defect("the system gives no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}
