//! Laws of designs, of elementary effects and of indices, on random parameter spaces and random responses.

mod distributions;
mod linear;
mod moat;
mod morris;
mod saltelli;
mod spaces;
mod vbd;
