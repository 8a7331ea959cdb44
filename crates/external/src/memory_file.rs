//! Memory files: data regions as anonymous files, which another process maps.
//!
//! A file is sealed before it is sent, so that neither side can change it afterwards. A received file is read with copies
//! instead of a map: no length can then end this process with a signal.

mod kept_files;

pub(crate) use kept_files::KeptFiles;

use pleach_regions::{DataRegion, ElementType};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use thiserror::Error;

/// Errors of reading an output.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    #[error("{port}: the memory file is not sealed")]
    Unsealed { port: &'static str },
    #[error("{port}: {bytes} bytes and shape {shape:?} are no {element}")]
    Shape { port: &'static str, element: ElementType, shape: Vec<u64>, bytes: u64 },
    #[error("{port}: {bytes} bytes; {allowed} bytes are allowed")]
    TooLong { port: &'static str, bytes: u64, allowed: u64 },
    #[error("{port}: failed to read: {cause}")]
    Unreadable { port: &'static str, cause: io::Error },
}

/// Writes bytes to a sealed memory file.
pub(crate) fn sealed(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"region", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(content)?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file.into())
}

/// Reads the content of a memory file of an untrusted process, of at most `most` bytes.
pub(crate) fn content(port: &'static str, file: OwnedFd, most: u64) -> Result<Vec<u8>, OutputError> {
    let unreadable = |cause| OutputError::Unreadable { port, cause };
    let needed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    // A file of another kind has no seals.
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(needed)) {
        return Err(OutputError::Unsealed { port });
    }
    let mut file = File::from(file);
    let bytes = file.metadata().map_err(unreadable)?.len();
    check_length(port, bytes, most)?;
    let mut content = Vec::with_capacity(bytes as usize);
    file.rewind().map_err(unreadable)?;
    file.read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

/// Refuses an output of more than `most` bytes.
pub(crate) fn check_length(port: &'static str, bytes: u64, most: u64) -> Result<(), OutputError> {
    if bytes > most { Err(OutputError::TooLong { port, bytes, allowed: most }) } else { Ok(()) }
}

/// Creates a region from what an untrusted process has sent.
pub(crate) fn region(
    port: &'static str,
    element: ElementType,
    shape: &[u64],
    content: Vec<u8>,
) -> Result<DataRegion, OutputError> {
    let bytes = content.len() as u64;
    let wrong = || OutputError::Shape { port, element, shape: shape.to_vec(), bytes };
    DataRegion::from_content(element, shape, content).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Raster;

    #[test]
    fn region_is_the_one_written() {
        let region_in = DataRegion::Bgr8(Raster::filled(3, 2, 3, 7).unwrap());
        let file = sealed(&region_in.content()).unwrap();
        let read = content("tile", file.try_clone().unwrap(), 18).unwrap();
        assert_eq!(region("tile", ElementType::Bgr8, &region_in.shape(), read.clone()).unwrap(), region_in);
        let short = region("tile", ElementType::Bgr8, &[3, 3, 3], read).unwrap_err();
        assert_eq!(short.to_string(), "tile: 18 bytes and shape [3, 3, 3] are no bgr8");
        let long = content("tile", file, 17).unwrap_err();
        assert_eq!(long.to_string(), "tile: 18 bytes; 17 bytes are allowed");
    }

    #[test]
    fn file_without_seals_is_refused() {
        let file = memfd_create(c"open", MemfdFlags::ALLOW_SEALING).unwrap();
        let error = content("mask", file, 8).unwrap_err();
        assert_eq!(error.to_string(), "mask: the memory file is not sealed");
        let file = File::open("/dev/null").unwrap();
        assert!(matches!(content("mask", file.into(), 8), Err(OutputError::Unsealed { .. })));
    }
}
