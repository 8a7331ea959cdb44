//! Display of an upload or download, which the caller provides.

/// Follows the bytes of an upload or download.
pub trait TransferProgress {
    /// Sets the number of bytes to transfer.
    fn begin(&self, bytes: u64);

    /// Returns the number of transferred bytes.
    fn position(&self) -> u64;

    /// Adds transferred bytes.
    fn advance(&self, bytes: u64);

    /// Returns to an earlier position, because a file is transferred again.
    fn back_to(&self, position: u64);

    /// Ends the transfer.
    fn finish(&self);
}

/// Transfer without a display.
impl TransferProgress for () {
    fn begin(&self, _: u64) {}

    fn position(&self) -> u64 {
        0
    }

    fn advance(&self, _: u64) {}

    fn back_to(&self, _: u64) {}

    fn finish(&self) {}
}
