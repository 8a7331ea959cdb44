//! Laws of samplers, of their designs and of elementary effects, on random parameter spaces.

mod designs;
mod moat;
mod morris;
mod plans;
mod points;
mod saltelli;
mod spaces;
