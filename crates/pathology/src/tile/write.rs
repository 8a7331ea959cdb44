//! Writing tiles and masks as PNG: whole or not at all.

use super::{TileError, png};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use pleach_regions::Raster;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a mask as a PNG of 1 bit a pixel, 1 where the mask is not 0. A file of that name is replaced.
///
/// # Errors
/// [`TileError::Channels`] unless it has one channel; [`TileError::Unwritable`].
pub fn write_mask(path: &Path, mask: &Raster) -> Result<(), TileError> {
    replace(path, mask, 1, |file| png::write_bits(file, mask.width_px(), mask.height_px(), mask.data()))
}

/// Writes a grey plane as a PNG of 8 bits a pixel. A file of that name is replaced.
///
/// # Errors
/// [`TileError::Channels`] unless it has one channel; [`TileError::Unwritable`].
pub fn write_gray(path: &Path, plane: &Raster) -> Result<(), TileError> {
    replace(path, plane, 1, |file| encode(file, plane, plane.data(), ExtendedColorType::L8))
}

/// Writes a colour image as a PNG of 24 bits a pixel. A file of that name is replaced.
///
/// # Errors
/// [`TileError::Channels`] unless it has three channels; [`TileError::Unwritable`].
pub fn write_bgr(path: &Path, image: &Raster) -> Result<(), TileError> {
    replace(path, image, 3, |file| {
        let (pixels, _) = image.data().as_chunks::<3>();
        let rgb: Vec<u8> = pixels.iter().flat_map(|&[b, g, r]| [r, g, b]).collect();
        encode(file, image, &rgb, ExtendedColorType::Rgb8)
    })
}

fn encode(file: &mut dyn Write, raster: &Raster, data: &[u8], colour: ExtendedColorType) -> io::Result<()> {
    let written = PngEncoder::new(file).write_image(data, raster.width_px(), raster.height_px(), colour);
    written.map_err(|error| match error {
        ImageError::IoError(error) => error,
        other => io::Error::other(other),
    })
}

/// Writes beside `path`, syncs, renames: a reader sees the old file or the new one, and so does whoever comes after a
/// crash.
fn replace(
    path: &Path,
    raster: &Raster,
    wanted: u8,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), TileError> {
    if raster.channels() != wanted {
        return Err(TileError::Channels { path: path.to_owned(), wanted, found: raster.channels() });
    }
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
    attempt().map_err(|cause| TileError::Unwritable { path: path.to_owned(), cause })
}
