//! Free list: idle blocks, the count of live bytes, and the blocks to evict above the limit.
//!
//! This module dereferences no address and makes no system call.

/// An idle block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
}

// SAFETY: no thread uses an idle block's memory, and any thread may reuse it.
unsafe impl Send for Block {}

/// Maximum number of idle blocks: 10 times as many as a study of small tiles keeps, and at 2 words each cheap to search.
/// Beyond it, the longest idle block is freed.
const SLOTS: usize = 1024;

const _: () = assert!(SLOTS > 0, "an evicted block has a slot before");

const NONE: Block = Block { start: std::ptr::null_mut(), bytes: 0 };

/// Live bytes, and idle blocks with the longest idle first.
pub(crate) struct FreeList {
    blocks: [Block; SLOTS],
    count: usize,
    idle_bytes: u64,
    live_bytes: u64,
    pub(crate) limit_bytes: u64,
}

impl FreeList {
    pub(crate) const fn new(limit_bytes: u64) -> Self {
        Self { blocks: [NONE; SLOTS], count: 0, idle_bytes: 0, live_bytes: 0, limit_bytes }
    }

    pub(crate) fn idle_bytes(&self) -> u64 {
        self.idle_bytes
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Takes the latest idle block of exactly `bytes`, since its content may still be in a CPU cache, and counts it as live.
    /// `None` if there is no such block.
    pub(crate) fn reuse(&mut self, bytes: usize) -> Option<*mut u8> {
        let index = self.blocks[..self.count].iter().rposition(|block| block.bytes == bytes)?;
        let block = self.remove(index);
        self.live_bytes += bytes as u64;
        Some(block.start)
    }

    /// Counts `bytes` as live before the caller maps them. The caller first unmaps the blocks that [`Self::surplus`]
    /// returns.
    pub(crate) fn grow(&mut self, bytes: usize) {
        // Wraps, so that huge requests of several threads fail in the mapping and not by an overflow here.
        self.live_bytes = self.live_bytes.wrapping_add(bytes as u64);
    }

    /// Counts `bytes` as no longer live after they were unmapped.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.live_bytes = self.live_bytes.wrapping_sub(bytes as u64);
    }

    /// Adds a live block to the idle blocks. Returns false if the list is full or over the limit.
    pub(crate) fn add(&mut self, block: Block) -> bool {
        let room = self.count < SLOTS && !self.is_over();
        if room {
            self.blocks[self.count] = block;
            self.count += 1;
            self.idle_bytes += block.bytes as u64;
            self.live_bytes -= block.bytes as u64;
        }
        room
    }

    /// Takes the longest idle block if live and idle bytes exceed `limit_bytes` or no slot is free.
    pub(crate) fn surplus(&mut self) -> Option<Block> {
        let full = self.count == SLOTS || self.is_over();
        (full && self.count > 0).then(|| self.remove(0))
    }

    /// Takes the longest idle block. `None` if no block is idle.
    pub(crate) fn oldest(&mut self) -> Option<Block> {
        (self.count > 0).then(|| self.remove(0))
    }

    fn is_over(&self) -> bool {
        self.live_bytes.wrapping_add(self.idle_bytes) > self.limit_bytes
    }

    fn remove(&mut self, index: usize) -> Block {
        let block = self.blocks[index];
        // Shifts the rest instead of swapping with the last block: the order is the idle time.
        self.blocks.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.idle_bytes -= block.bytes as u64;
        block
    }
}
