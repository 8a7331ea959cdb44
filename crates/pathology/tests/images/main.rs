//! Files of images: tiles, references and annotations, read and written, and generated tissue.

mod annotations;
mod files;
mod references;
mod slide_tissue;
mod tissue;
