//! Writes tiles and masks as PNG with atomic publish.

use super::encode::rgb;
use super::{ImageFileError, png};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use pleach_regions::Raster;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a mask as a PNG with 1 bit per pixel, 1 where the mask is not 0. Replaces an existing file.
///
/// # Errors
/// Returns [`ImageFileError::Channels`] unless the mask has one channel, or [`ImageFileError::Unwritable`].
pub fn write_mask(path: &Path, mask: &Raster) -> Result<(), ImageFileError> {
    replace(path, mask, 1, |file| png::write_bits(file, mask.width_px(), mask.height_px(), mask.data()))
}

/// Writes a gray plane as a PNG with 8 bits per pixel. Replaces an existing file.
///
/// # Errors
/// Returns [`ImageFileError::Channels`] unless the plane has one channel, or [`ImageFileError::Unwritable`].
pub fn write_gray(path: &Path, plane: &Raster) -> Result<(), ImageFileError> {
    replace(path, plane, 1, |file| encode(file, plane, plane.data(), ExtendedColorType::L8))
}

/// Writes a color image as a PNG with 24 bits per pixel. Replaces an existing file.
///
/// # Errors
/// Returns [`ImageFileError::Channels`] unless the image has three channels, or [`ImageFileError::Unwritable`].
pub fn write_bgr(path: &Path, image: &Raster) -> Result<(), ImageFileError> {
    replace(path, image, 3, |file| encode(file, image, &rgb(image), ExtendedColorType::Rgb8))
}

/// Writes a label map (0 background, 1.. one object each) as a PNG with 16 bits per pixel, row-major and `width_px`
/// wide. Replaces an existing file.
///
/// # Errors
/// Returns [`ImageFileError::Unwritable`], also if `labels` does not consist of complete rows.
pub fn write_labels(path: &Path, width_px: u32, labels: &[u16]) -> Result<(), ImageFileError> {
    let height_px = (labels.len() / width_px.max(1) as usize) as u32;
    // The encoder expects 16-bit values in the machine's byte order, and rejects lengths that differ from the shape's.
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

/// Writes a temporary file in the same folder, syncs it and renames it to `path`: readers see the old file or the new
/// one, also after a crash.
fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ImageFileError> {
    replace_with(path, |file| {
        let mut buffered = BufWriter::new(file);
        write(&mut buffered)?;
        buffered.flush()
    })
}

/// As [`replace_file`], for writers that seek. Returns the result of `write`.
pub(crate) fn replace_with<T>(
    path: &Path,
    write: impl FnOnce(&File) -> io::Result<T>,
) -> Result<T, ImageFileError> {
    let attempt = || -> io::Result<T> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pleach-").suffix(".part");
        // Temporary files are private by default. This one becomes a result that other users may read.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let part = builder.tempfile_in(folder)?;
        let written = write(part.as_file())?;
        // Sync before the rename: the file name must never refer to incomplete content.
        part.as_file().sync_all()?;
        part.persist(path)?;
        // The rename survives a crash only after the folder is synced.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(written)
    };
    attempt().map_err(|cause| ImageFileError::Unwritable { path: path.to_owned(), cause })
}
