//! `pleach`: parameter sensitivity studies of image-analysis workflows, merged into one reuse plan.
//!
//! This crate is the command line. It parses arguments, connects the crates, writes files and reports errors. No other
//! crate writes to the terminal or sets exit codes.
//!
//! A program with operations of its own gets the whole command line, manager and worker included, by one call of [`run`]:
//!
//! ```no_run
//! use pleach::regions::{DataRegion, ElementType, Table};
//! use pleach::workflow::{Argument, Operation, OperationError, Port, Value};
//!
//! /// The number of bytes of a tile.
//! struct Bytes;
//!
//! impl Operation for Bytes {
//!     fn name(&self) -> &'static str { "mine.bytes" }
//!     fn version(&self) -> u32 { 1 }
//!     fn arguments(&self) -> &[Argument] { &[] }
//!     fn inputs(&self) -> &[Port] { &[Port { name: "tile", element: ElementType::Bgr8 }] }
//!     fn outputs(&self) -> &[Port] { &[Port { name: "size", element: ElementType::Table }] }
//!     fn cost_seconds(&self, pixels: u64) -> f64 { pixels as f64 * 1e-9 }
//!     fn memory_bytes(&self, pixels: u64) -> u64 { ElementType::Table.bytes(pixels) }
//!     fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
//!         Ok(vec![DataRegion::Table(Table::new([("bytes", inputs[0].bytes() as f64)]))])
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     pleach::run(&pleach::builtin_operations().with(Bytes))
//! }
//! ```
//!
//! `examples/own-operation` is such a program, with its descriptors, a study and tests.

mod accelerators;
mod burst;
mod cli;
mod command;
mod exit;
mod interrupt;
mod live;
mod log;
mod operations;
mod progress_display;
mod spill;
mod terminal;
mod tiers;

pub use pleach_regions as regions;
pub use pleach_workflow as workflow;

use pleach_workflow::Registry;
use std::io::{self, Write};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

/// Runs the command line of this process with these operations, and returns its exit code.
///
/// All commands use them: a manager accepts studies of these operations only, and a worker executes them. Call it first in
/// `main`, since it installs a panic hook and reads the arguments of the process.
#[must_use]
pub fn run(operations: &Registry) -> ExitCode {
    // First: the child that tries the drivers of devices takes no arguments.
    if let Some(found) = pleach_accelerate::serve_probe() {
        let is_told = io::stdout().write_all(found.as_bytes()).is_ok();
        return if is_told { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    exit::install_panic_hook();
    match cli::parse() {
        Ok(command) => {
            let result = command::execute(command, operations);
            operations::end_processes();
            exit::report(result)
        }
        Err(cli::Parsed::Help { asked_for_nothing }) => ExitCode::from(if asked_for_nothing { 2 } else { 0 }),
        Err(cli::Parsed::Mistake(stop)) => exit::report(Err(stop)),
    }
}

/// Returns the operations of pleach itself. [`Registry::with`] adds others.
#[must_use]
pub fn builtin_operations() -> Registry {
    pleach_study::builtin::registry().extended(pleach_emulation::operations())
}
