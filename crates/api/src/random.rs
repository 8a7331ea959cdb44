//! Random numbers of the operating system.

use pleach_study::Defect;
use ring::rand::{SecureRandom, SystemRandom};

/// Returns a random number, unique in practice.
///
/// # Errors
/// [`Defect`] if the operating system gives no random numbers.
pub fn number() -> Result<u64, Defect> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Defect::new("the system gives no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}
