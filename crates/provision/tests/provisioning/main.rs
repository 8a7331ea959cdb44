//! The provisioner with simulated drivers, faults of drivers, and managers that are killed.

mod burst;
mod cloud;
mod faults;
mod kills;
mod random;
mod scaled;
mod world;
