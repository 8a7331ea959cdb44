//! Replicas of other workers' regions: they are admitted only beside all bytes that this worker may need.

use super::Worker;

impl Worker {
    /// Admits a replica of another worker's region. Returns false unless it fits beside all bytes that this
    /// worker needs, or may need to start a bucket. The replica counts as held from now on, until
    /// [`handle_copy_finished`](Self::handle_copy_finished).
    pub fn handle_copy(&mut self, bytes: u64) -> bool {
        self.memory.begin_copy(self.needed_bytes(), bytes)
    }

    /// Ends the fetch of a replica, which counts as stored if it succeeded.
    pub fn handle_copy_finished(&mut self, bytes: u64) {
        self.memory.end_copy(bytes);
        self.balance();
    }
}
