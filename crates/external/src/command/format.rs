//! Files of ports: data regions written for a command, and read from it.
//!
//! A command may leave any file. Reading one ends with an error that names port and file, and uses a limited amount of memory.

use super::{image_file, npy, table};
use crate::failure::Failure;
use crate::manifest::{ExternalPort, FileFormat};
use pleach_regions::DataRegion;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns the name of a port's file.
pub(super) fn file_name(port: &ExternalPort, format: FileFormat) -> String {
    format!("{}.{}", port.port.name, format.extension())
}

/// Writes an input.
pub(super) fn write(
    port: &ExternalPort,
    format: FileFormat,
    region: &DataRegion,
    file: &Path,
) -> Result<(), Failure> {
    let content = match format {
        FileFormat::Png | FileFormat::Tiff => image_file::encode(format, region),
        FileFormat::Npy => Ok(npy::encode(port, region)),
        FileFormat::Csv => table::encode(region),
    };
    let content =
        content.map_err(|mistake| Failure::Input(format!("input {}: {mistake}", port.port.name)))?;
    std::fs::write(file, content)
        .map_err(|error| Failure::System(format!("{}: failed to write: {error}", file.display())))
}

/// Reads an output with at most `most` bytes. An image must have this size.
pub(super) fn read(
    port: &ExternalPort,
    format: FileFormat,
    file: &Path,
    size_px: Option<(u32, u32)>,
    most: u64,
) -> Result<DataRegion, Failure> {
    let read = || {
        let content = content(file, format, most)?;
        let element = port.port.element;
        let region = match format {
            FileFormat::Png | FileFormat::Tiff => image_file::decode(format, element, &content, most),
            FileFormat::Npy => npy::decode(port, &content),
            FileFormat::Csv => table::decode(element, &content),
        }?;
        check_size(&region, size_px)?;
        Ok(region)
    };
    read().map_err(|mistake: String| {
        Failure::Protocol(format!("output {}: {}: {mistake}", port.port.name, file_name(port, format)))
    })
}

/// Returns the content of a regular file.
fn content(file: &Path, format: FileFormat, most: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("missing; a {} file is required", format.extension()),
        _ => format!("failed to read: {error}"),
    };
    // Checked before opening: opening a pipe waits for a writer.
    let found = std::fs::metadata(file).map_err(unreadable)?;
    if !found.is_file() {
        return Err(format!("no regular file; a {} file is required", format.extension()));
    }
    let mut content = Vec::new();
    let read = File::open(file).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut content));
    read.map_err(unreadable)?;
    if content.len() as u64 > most {
        return Err(format!("{} bytes; {most} bytes are allowed (memory.limit)", found.len()));
    }
    Ok(content)
}

/// Rejects an image of another size than that of the inputs.
fn check_size(region: &DataRegion, size_px: Option<(u32, u32)>) -> Result<(), String> {
    let is_image = !matches!(region, DataRegion::Array(_));
    match (region.size_px().filter(|_| is_image), size_px) {
        (Some(found), Some(wanted)) if found != wanted => {
            let (width, height) = found;
            Err(format!(
                "{width} x {height} px; the size of the inputs, {} x {} px, is allowed",
                wanted.0, wanted.1
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the size of the first image. `None` without an image.
pub(super) fn size_px(inputs: &[&DataRegion]) -> Option<(u32, u32)> {
    let images = inputs.iter().filter(|input| !matches!(input, DataRegion::Array(_)));
    images.filter_map(|input| input.size_px()).next()
}

/// Rejects the values of a mask other than 0 and 255.
pub(super) fn check_mask(values: &[u8]) -> Result<(), String> {
    match values.iter().find(|value| !matches!(value, 0 | 255)) {
        Some(value) => Err(format!("value {value}; 0 and 255 are allowed in a mask")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DenseArray, ElementType, Raster};
    use pleach_workflow::Port;

    fn port(element: ElementType) -> ExternalPort {
        ExternalPort { port: Port { name: "mask", element }, is_rgb: false, is_volume: false, format: None }
    }

    #[test]
    fn only_regular_files_of_limited_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let read = |file: &Path, most| {
            read(&port(ElementType::Scalar), FileFormat::Csv, file, None, most)
                .map_err(|error| error.to_string())
        };
        let prefix = "invalid answer of the process: output mask: mask.csv:";
        let missing = read(&folder.path().join("mask.csv"), 9).unwrap_err();
        assert_eq!(missing, format!("{prefix} missing; a csv file is required"));
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read(&pipe, 9).unwrap_err(), format!("{prefix} no regular file; a csv file is required"));
        let long = folder.path().join("long");
        std::fs::write(&long, "1000000000").unwrap();
        let error = read(&long, 9).unwrap_err();
        assert_eq!(error, format!("{prefix} 10 bytes; 9 bytes are allowed (memory.limit)"));
        assert_eq!(read(&long, 10), Ok(DataRegion::Scalar(1e9)));
    }

    #[test]
    fn images_have_the_size_of_the_inputs() {
        let mask = |width| DataRegion::Mask(Raster::filled(width, 2, 1, 0).unwrap());
        let array = DataRegion::Array(DenseArray::new(&[7, 7], 1, vec![0_u8; 49].into()).unwrap());
        let size = size_px(&[&DataRegion::Scalar(1.0), &array, &mask(3)]);
        assert_eq!(size, Some((3, 2)));
        assert!(check_size(&mask(3), size).is_ok() && check_size(&array, size).is_ok());
        assert!(check_size(&mask(4), None).is_ok());
        let error = check_size(&mask(4), size).unwrap_err();
        assert_eq!(error, "4 x 2 px; the size of the inputs, 3 x 2 px, is allowed");
    }
}
