//! Sources and arguments of kernels.

use crate::Buffer;

/// Source of kernels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Name in errors.
    pub(crate) name: &'static str,
    /// OpenCL C 1.2.
    pub(crate) source: &'static str,
    /// Definitions of macros, as `-DNAME=VALUE …`.
    pub(crate) definitions: &'static str,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "opencl"), expect(dead_code, reason = "no device takes it"))]
pub(crate) enum Argument<'a> {
    /// `global T *`
    Buffer(&'a Buffer),
    /// `uint`
    Uint(u32),
}
