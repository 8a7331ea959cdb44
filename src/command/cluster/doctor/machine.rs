//! Checks a machine: libraries, Python, ports, certificates, clock, disks, limits and processor.
//!
//! Checks change nothing. Files that the disk check writes have no name or lose it at once.

mod certificates;
mod clock;
mod disks;
mod libraries;
mod limits;
mod ports;
mod processor;
mod python;

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;

/// All checks, in the order of the output.
const CHECKS: [fn(&DoctorArgs, &mut Items); 8] = [
    libraries::check,
    python::check,
    processor::check,
    limits::check,
    disks::check,
    ports::check,
    certificates::check,
    clock::check,
];

/// Runs all checks.
pub(super) fn check(args: &DoctorArgs) -> Items {
    let mut items = Items::default();
    CHECKS.iter().for_each(|check| check(args, &mut items));
    items
}
