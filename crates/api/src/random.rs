//! Random numbers of the operating system.

use pleach_study::Defect;
use ring::rand::{SecureRandom, SystemRandom};

/// Returns random bytes.
///
/// # Errors
/// [`Defect`] if the operating system gives no random numbers.
pub fn bytes<const N: usize>() -> Result<[u8; N], Defect> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Defect::new("the operating system returns no random numbers"))?;
    Ok(bytes)
}

/// Returns a random number, unique in practice.
///
/// # Errors
/// [`Defect`] if the operating system gives no random numbers.
pub fn number() -> Result<u64, Defect> {
    bytes().map(u64::from_le_bytes)
}
