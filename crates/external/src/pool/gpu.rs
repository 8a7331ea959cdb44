//! Lock of the GPU: one task at a time among all workers of a machine that see the same devices.

use parking_lot::{Mutex, MutexGuard};
use rustix::process::getuid;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// Variables that select the devices of a process. Workers with other values use other devices.
const DEVICES: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];

/// Lock of the GPU.
#[derive(Debug, Default)]
pub(super) struct GpuLock {
    /// Held before the file: tasks of this process wait here, in order.
    own: Mutex<()>,
    has_warned: AtomicBool,
}

/// The GPU, for one task. The lock on the file ends when it closes, also with a killed process.
pub(super) struct HeldGpu<'a> {
    _file: Option<File>,
    _own: MutexGuard<'a, ()>,
}

impl GpuLock {
    /// Waits for the GPU. Where the file cannot be locked, the lock is that of this process only.
    pub(super) fn lock(&self) -> HeldGpu<'_> {
        let own = self.own.lock();
        let file = locked();
        if let Err(error) = &file
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            warn!(%error, file = %file_of_lock().display(), "failed to lock the GPU; other workers may use it at the same time");
        }
        HeldGpu { _file: file.ok(), _own: own }
    }
}

/// Locks the file of the devices, creating it if missing.
fn locked() -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(file_of_lock())?;
    file.lock()?;
    Ok(file)
}

/// Returns the file, of this user: in a shared folder, files of another user cannot be opened.
fn file_of_lock() -> PathBuf {
    let visible = DEVICES.iter().filter_map(std::env::var_os).collect::<Vec<_>>();
    let devices = visible.iter().map(|devices| devices.to_string_lossy()).collect::<Vec<_>>().join("+");
    let named = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let devices: String = devices.chars().map(named).take(100).collect();
    std::env::temp_dir().join(format!("pleach-gpu-{}-{devices}.lock", getuid().as_raw()))
}
