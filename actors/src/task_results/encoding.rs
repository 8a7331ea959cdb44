//! Encoding of idle task results on the threads that run tasks, so that a budget of memory holds many times as many.

use super::TaskResults;
use parking_lot::Mutex;
use pleach_regions::{EncodedRegion, RegionToEncode};
use std::sync::Arc;

/// Maximum of idle decoded results, as a part of the memory that results may take. Recent results are the most likely to be
/// reused, and decoded ones are found without a task. The rest of the memory is for encoded ones.
const DECODED_PART: u64 = 16;

/// 128 MiB: maximum of idle decoded results in any memory. Memory that is touched for the first time costs more than encoding
/// and decoding (`docs/adr/0006-recycled-pages.md`), so results beyond the recent ones are encoded even if memory is left.
const MAX_DECODED_BYTES: u64 = 128 << 20;

/// Maximum of regions that are being encoded, as a part of the budget. They are not counted if the cache evicts them meanwhile.
const ENCODING_PART: u64 = 32;

/// 64 MiB: maximum of regions that are being encoded, in any budget. One third of the memory that a process may use beyond its
/// admitted bytes.
const MAX_ENCODING_BYTES: u64 = 64 << 20;

/// Bytes of the regions that one job encodes: half a millisecond of a thread that a task may wait for.
const JOB_BYTES: u64 = 1 << 20;

/// Returns the maximum of idle decoded results, if all results may take `capacity` bytes.
fn max_decoded_bytes(capacity: u64) -> u64 {
    (capacity / DECODED_PART).min(MAX_DECODED_BYTES)
}

impl TaskResults {
    /// Returns the bytes to evict results to, if all results may take `capacity` bytes.
    ///
    /// With encoded results, twice the maximum of decoded ones stays free for results that have not been encoded yet. Without
    /// it, each of these would evict many encoded ones.
    pub(crate) fn eviction_target(&self, capacity: u64) -> u64 {
        if self.shelf.encoded_bytes() == 0 {
            return capacity;
        }
        let reserved = 2 * max_decoded_bytes(capacity);
        capacity.min((capacity - reserved).saturating_add(self.shelf.reducible_bytes()))
    }

    /// Returns the results to encode, in jobs.
    pub(crate) fn start_encoding(&mut self, capacity: u64, budget: u64) -> Vec<Vec<RegionToEncode>> {
        let max_bytes = (budget / ENCODING_PART).min(MAX_ENCODING_BYTES);
        let mut jobs: Vec<Vec<RegionToEncode>> = Vec::new();
        let mut job_bytes = 0;
        for region in self.shelf.start_encoding(max_decoded_bytes(capacity), max_bytes) {
            let bytes = region.region.bytes();
            match jobs.last_mut().filter(|_| job_bytes + bytes <= JOB_BYTES) {
                Some(job) => job.push(region),
                None => {
                    jobs.push(vec![region]);
                    job_bytes = 0;
                }
            }
            job_bytes += bytes;
        }
        jobs
    }
}

/// Encodes results on `pool`.
pub(crate) fn spawn_encoding(
    results: &Arc<Mutex<TaskResults>>,
    pool: &rayon::ThreadPool,
    jobs: Vec<Vec<RegionToEncode>>,
) {
    for job in jobs {
        let results = Arc::clone(results);
        pool.spawn(move || {
            // Encoded without the lock, which tasks take when they start and end.
            let encoded: Vec<_> = job.iter().map(|one| EncodedRegion::new(&one.region)).collect();
            let mut results = results.lock();
            for (one, encoded) in job.iter().zip(encoded) {
                results.shelf.finish_encoding(one, encoded);
            }
            // Unlocked before the decoded regions are freed.
            drop(results);
        });
    }
}
