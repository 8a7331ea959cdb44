//! Workers with accelerators: schedule policies against published and simulated figures, and their rules.

#[path = "../support/clock.rs"]
mod clock;
#[path = "../support/shapes.rs"]
mod shapes;
mod reference;
mod tables;
