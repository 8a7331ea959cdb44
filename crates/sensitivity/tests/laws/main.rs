//! Laws of the Morris design and of elementary effects, on random parameter spaces.

mod moat;
mod morris;
mod spaces;
