//! A MIRAX slide of an image: a text file with the structure, an index, and data files.
//!
//! It contains only the parts that OpenSlide reads (its notes on the format: openslide.org/formats/mirax): one level of PNG
//! pieces at their nominal positions, so pixels equal those of the image.

use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use std::fs;
use std::path::Path;

/// Number of data files.
const DATA_FILES: usize = 2;

/// Writes `path` (`….mrxs`) and the folder beside it. Pixels are R, G, B, row by row. Both sides are multiples of
/// `piece_px`.
pub(crate) fn write_mirax(path: &Path, pixels: &[u8], width_px: usize, piece_px: usize, magnification: u32) {
    let folder = path.with_extension("");
    fs::create_dir_all(&folder).expect("a folder made");
    fs::write(path, "MIRAX").expect("a file written");
    let rows = pixels.len() / 3 / width_px / piece_px;
    let columns = width_px / piece_px;
    let mut data = vec![Vec::new(); DATA_FILES];
    let mut entries = Vec::new();
    for piece in 0..columns * rows {
        let (left, top) = (piece % columns * piece_px, piece / columns * piece_px);
        let row = |row: usize| &pixels[((top + row) * width_px + left) * 3..][..piece_px * 3];
        let part: Vec<u8> = (0..piece_px).flat_map(row).copied().collect();
        let (side, file) = (piece_px as u32, piece % DATA_FILES);
        let start = data[file].len();
        let encoder = PngEncoder::new(&mut data[file]);
        encoder.write_image(&part, side, side, ExtendedColorType::Rgb8).expect("an image encoded");
        entries.extend([piece, start, data[file].len() - start, file]);
    }
    for (number, data) in data.iter().enumerate() {
        fs::write(folder.join(format!("Data{number:04}.dat")), data).expect("a file written");
    }
    let microns = 10.0 / f64::from(magnification);
    let text = format!(
        "\u{feff}[GENERAL]\nSLIDE_ID = SYNTHETIC\nSLIDE_VERSION = 01.02\nIMAGENUMBER_X = {columns}\nIMAGENUMBER_Y = {rows}\n\
         OBJECTIVE_MAGNIFICATION = {magnification}\nCameraImageDivisionsPerSide = 1\n\
         [HIERARCHICAL]\nHIER_COUNT = 1\nHIER_0_NAME = Slide zoom level\nHIER_0_COUNT = 1\n\
         HIER_0_VAL_0_SECTION = LEVEL_0\nNONHIER_COUNT = 0\nINDEXFILE = Index.dat\n\
         [DATAFILE]\nFILE_COUNT = {DATA_FILES}\nFILE_0 = Data0000.dat\nFILE_1 = Data0001.dat\n\
         [LEVEL_0]\nOVERLAP_X = 0\nOVERLAP_Y = 0\nMICROMETER_PER_PIXEL_X = {microns}\nMICROMETER_PER_PIXEL_Y = {microns}\n\
         IMAGE_FORMAT = PNG\nIMAGE_FILL_COLOR_BGR = 16777215\nDIGITIZER_WIDTH = {piece_px}\n\
         DIGITIZER_HEIGHT = {piece_px}\nIMAGE_CONCAT_FACTOR = 0\n"
    );
    fs::write(folder.join("Slidedat.ini"), text).expect("a file written");
    // Version and slide id, offsets of hierarchical and other records, the single level, and one page with all pieces.
    let mut index = b"01.02SYNTHETIC".to_vec();
    let start = index.len();
    let page = [entries.len() / 4, 0].into_iter().chain(entries);
    let numbers = [start + 8, 0, start + 12, 0, start + 20].into_iter().chain(page);
    index.extend(numbers.flat_map(|number| (number as i32).to_le_bytes()));
    fs::write(folder.join("Index.dat"), index).expect("a file written");
}
