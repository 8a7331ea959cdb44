//! Laws of the Morris and the Saltelli design and of elementary effects, on random parameter spaces.

mod moat;
mod morris;
mod saltelli;
mod spaces;
