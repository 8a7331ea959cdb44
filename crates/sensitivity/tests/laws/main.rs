//! Laws of samplers, of their designs, of elementary effects and of indices, on random parameter spaces and responses.

mod designs;
mod distributions;
mod linear;
mod moat;
mod morris;
mod plans;
mod points;
mod recovery;
mod saltelli;
mod spaces;
mod vbd;
