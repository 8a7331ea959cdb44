//! Workers with accelerators: schedule policies against published and simulated figures, and their rules.

#[path = "../support/clock.rs"]
mod clock;
mod properties;
mod reference;
mod rules;
#[path = "../support/shapes.rs"]
mod shapes;
mod tables;
mod transfers;
