//! Writing tiles and masks as PNG: whole or not at all.

use super::encode::rgb;
use super::{ImageFileError, png};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use pleach_regions::Raster;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a mask as a PNG of 1 bit a pixel, 1 where the mask is not 0. A file of that name is replaced.
///
/// # Errors
/// [`ImageFileError::Channels`] unless it has one channel; [`ImageFileError::Unwritable`].
pub fn write_mask(path: &Path, mask: &Raster) -> Result<(), ImageFileError> {
    replace(path, mask, 1, |file| png::write_bits(file, mask.width_px(), mask.height_px(), mask.data()))
}

/// Writes a gray plane as a PNG of 8 bits a pixel. A file of that name is replaced.
///
/// # Errors
/// [`ImageFileError::Channels`] unless it has one channel; [`ImageFileError::Unwritable`].
pub fn write_gray(path: &Path, plane: &Raster) -> Result<(), ImageFileError> {
    replace(path, plane, 1, |file| encode(file, plane, plane.data(), ExtendedColorType::L8))
}

/// Writes a color image as a PNG of 24 bits a pixel. A file of that name is replaced.
///
/// # Errors
/// [`ImageFileError::Channels`] unless it has three channels; [`ImageFileError::Unwritable`].
pub fn write_bgr(path: &Path, image: &Raster) -> Result<(), ImageFileError> {
    replace(path, image, 3, |file| encode(file, image, &rgb(image), ExtendedColorType::Rgb8))
}

/// Writes an instance label map (0 background, 1.. one object each) as a PNG of 16 bits a pixel, row-major and
/// `width_px` wide. A file of that name is replaced.
///
/// # Errors
/// [`ImageFileError::Unwritable`], also when `labels` holds no whole rows.
pub fn write_labels(path: &Path, width_px: u32, labels: &[u16]) -> Result<(), ImageFileError> {
    let height_px = (labels.len() / width_px.max(1) as usize) as u32;
    // The encoder takes 16-bit values in the machine's byte order and refuses any other length than the shape's.
    let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_ne_bytes()).collect();
    replace_file(path, |file| encode_shape(file, width_px, height_px, &bytes, ExtendedColorType::L16))
}

pub(super) fn encode(
    file: &mut dyn Write,
    raster: &Raster,
    data: &[u8],
    color: ExtendedColorType,
) -> io::Result<()> {
    encode_shape(file, raster.width_px(), raster.height_px(), data, color)
}

pub(super) fn encode_shape(
    file: &mut dyn Write,
    width_px: u32,
    height_px: u32,
    data: &[u8],
    color: ExtendedColorType,
) -> io::Result<()> {
    let expected = u64::from(width_px) * u64::from(height_px) * u64::from(color.bits_per_pixel() / 8);
    if expected != data.len() as u64 {
        return Err(io::Error::other(format!(
            "{} bytes do not fill {width_px} x {height_px} px",
            data.len()
        )));
    }
    let written = PngEncoder::new(file).write_image(data, width_px, height_px, color);
    written.map_err(|error| match error {
        ImageError::IoError(error) => error,
        other => io::Error::other(other),
    })
}

fn replace(
    path: &Path,
    raster: &Raster,
    wanted: u8,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ImageFileError> {
    if raster.channels() != wanted {
        return Err(ImageFileError::Channels { path: path.to_owned(), wanted, found: raster.channels() });
    }
    replace_file(path, write)
}

/// Writes beside `path`, syncs, renames: a reader sees the old file or the new one, and so does whoever comes after a
/// crash.
fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ImageFileError> {
    let attempt = || -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pleach-").suffix(".part");
        // Temporary files are private by default; this one becomes a result for others.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let part = builder.tempfile_in(folder)?;
        let mut buffered = BufWriter::new(part.as_file());
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        part.as_file().sync_all()?;
        part.persist(path)?;
        // The name itself is safe only once the folder is.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    attempt().map_err(|cause| ImageFileError::Unwritable { path: path.to_owned(), cause })
}
