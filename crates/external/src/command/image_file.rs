//! Images, masks and label maps as PNG and TIFF. Colors are in the order of the format, red first.

use crate::manifest::FileFormat;
use image::{ColorType, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader, Limits};
use pleach_regions::{DataRegion, ElementType, LabelMap, Raster};
use std::io::Cursor;

/// Returns a region as file.
pub(super) fn encode(format: FileFormat, region: &DataRegion) -> Result<Vec<u8>, String> {
    let (size, content, color) = match region {
        DataRegion::Bgr8(raster) => {
            let mut content = raster.data().to_vec();
            content.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
            ((raster.width_px(), raster.height_px()), content, ExtendedColorType::Rgb8)
        }
        DataRegion::Gray8(raster) | DataRegion::Mask(raster) => {
            ((raster.width_px(), raster.height_px()), raster.data().to_vec(), ExtendedColorType::L8)
        }
        DataRegion::Labels(map) => ((map.width_px(), map.height_px()), words(map)?, ExtendedColorType::L16),
        other => return Err(format!("a region of type {}; images are allowed", other.element())),
    };
    let mut file = Cursor::new(Vec::new());
    image::write_buffer_with_format(&mut file, &content, size.0, size.1, color, kind(format))
        .map_err(|error| error.to_string())?;
    Ok(file.into_inner())
}

/// Returns labels of 16 bits, in the machine's byte order.
fn words(map: &LabelMap) -> Result<Vec<u8>, String> {
    let mut content = Vec::with_capacity(2 * map.labels().len());
    for label in map.labels() {
        let word = u16::try_from(*label).map_err(|_| {
            let most = u16::MAX;
            format!("label {label}; up to {most} is allowed in png and tiff (format = \"npy\" has no limit)")
        })?;
        content.extend(word.to_ne_bytes());
    }
    Ok(content)
}

/// Reads a file, with at most `most` bytes of pixels. Returns the mistake with the allowed values.
pub(super) fn decode(
    format: FileFormat,
    element: ElementType,
    file: &[u8],
    most: u64,
) -> Result<DataRegion, String> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(most);
    let mut reader = ImageReader::with_format(Cursor::new(file), kind(format));
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let ((width_px, height_px), color) = (decoder.dimensions(), decoder.color_type());
    let (fits, allowed) = match element {
        ElementType::Bgr8 => (color == ColorType::Rgb8, "3 channels of 8 bits"),
        ElementType::Labels => {
            (matches!(color, ColorType::L8 | ColorType::L16), "one channel of 8 or 16 bits")
        }
        _ => (color == ColorType::L8, "one channel of 8 bits"),
    };
    // Inks are converted to other colors, which no profile confirms.
    let is_ink =
        matches!(decoder.original_color_type(), ExtendedColorType::Cmyk8 | ExtendedColorType::Cmyk16);
    if !fits || is_ink {
        let (channels, bytes) = (color.channel_count(), color.bytes_per_pixel());
        let bits = 8 * bytes / channels.max(1);
        let inks = if is_ink { " (CMYK)" } else { "" };
        return Err(format!(
            "channels: {channels}, of {bits} bits{inks}; {allowed} is allowed for {element}"
        ));
    }
    let bytes = decoder.total_bytes();
    if bytes > most {
        return Err(format!("{width_px} x {height_px} px, {bytes} bytes; {most} bytes are allowed"));
    }
    let mut content = vec![0; bytes as usize];
    decoder.read_image(&mut content).map_err(|error| error.to_string())?;
    if element == ElementType::Bgr8 {
        content.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
    }
    let raster = |channels, content| Raster::new(width_px, height_px, channels, content);
    let region = match element {
        ElementType::Bgr8 => raster(3, content).map(DataRegion::Bgr8),
        ElementType::Labels => {
            let labels: Vec<u32> = if color == ColorType::L8 {
                content.into_iter().map(u32::from).collect()
            } else {
                content.chunks_exact(2).map(|word| u16::from_ne_bytes([word[0], word[1]]).into()).collect()
            };
            LabelMap::new(width_px, height_px, labels).map(DataRegion::Labels)
        }
        ElementType::Mask => {
            super::format::check_mask(&content)?;
            raster(1, content).map(DataRegion::Mask)
        }
        _ => raster(1, content).map(DataRegion::Gray8),
    };
    region.map_err(|error| error.to_string())
}

fn kind(format: FileFormat) -> ImageFormat {
    if format == FileFormat::Tiff { ImageFormat::Tiff } else { ImageFormat::Png }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MiB: more than any image here.
    const MOST: u64 = 1 << 20;

    #[test]
    fn regions_come_back() {
        let gray = Raster::new(3, 2, 1, vec![0, 1, 2, 127, 128, 255]).unwrap();
        let labels = LabelMap::new(2, 2, vec![0, 1, 256, 65_535]).unwrap();
        for region in [
            DataRegion::Bgr8(Raster::new(2, 1, 3, vec![1, 2, 3, 4, 5, 6]).unwrap()),
            DataRegion::Gray8(gray),
            DataRegion::Mask(Raster::new(2, 1, 1, vec![0, 255]).unwrap()),
            DataRegion::Labels(labels),
        ] {
            for format in [FileFormat::Png, FileFormat::Tiff] {
                let file = encode(format, &region).unwrap();
                assert_eq!(decode(format, region.element(), &file, MOST).unwrap(), region, "{format:?}");
            }
        }
    }

    #[test]
    fn colors_are_those_of_the_format() {
        let region = DataRegion::Bgr8(Raster::new(1, 1, 3, vec![1, 2, 3]).unwrap());
        let file = encode(FileFormat::Png, &region).unwrap();
        assert_eq!(image::load_from_memory(&file).unwrap().to_rgb8().into_raw(), [3, 2, 1]);
    }

    #[test]
    fn labels_of_8_bits_and_bilevel_masks_are_read() {
        let file = encode(FileFormat::Png, &DataRegion::Gray8(Raster::new(2, 1, 1, vec![0, 7]).unwrap()));
        let labels = decode(FileFormat::Png, ElementType::Labels, &file.unwrap(), MOST).unwrap();
        assert_eq!(labels, DataRegion::Labels(LabelMap::new(2, 1, vec![0, 7]).unwrap()));
        // One row of 0, 1 with 1 bit a pixel.
        let bits =
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x01\x01\0\0\0\0\xdcYB'\0\0\0\nIDATx\x9ccp\0\0\0\
            B\0A)7\xf4\xef\0\0\0\0IEND\xaeB`\x82";
        let mask = decode(FileFormat::Png, ElementType::Mask, bits, MOST);
        assert_eq!(mask, Ok(DataRegion::Mask(Raster::new(2, 1, 1, vec![0, 255]).unwrap())));
    }

    #[test]
    fn other_images_are_refused() {
        let long = DataRegion::Labels(LabelMap::new(2, 1, vec![0, 65_536]).unwrap());
        for format in [FileFormat::Png, FileFormat::Tiff] {
            let error = encode(format, &long).unwrap_err();
            assert!(error.starts_with("label 65536; up to 65535 is allowed in png and tiff"), "{error}");
        }
        let gray = DataRegion::Gray8(Raster::new(2, 1, 1, vec![0, 7]).unwrap());
        let file = encode(FileFormat::Png, &gray).unwrap();
        let error = |element, file: &[u8], most| decode(FileFormat::Png, element, file, most).unwrap_err();
        let color = error(ElementType::Bgr8, &file, MOST);
        assert_eq!(color, "channels: 1, of 8 bits; 3 channels of 8 bits is allowed for bgr8");
        let values = error(ElementType::Mask, &file, MOST);
        assert_eq!(values, "value 7; 0 and 255 are allowed in a mask");
        assert!(!error(ElementType::Gray8, &file[..file.len() / 2], MOST).is_empty());
        assert!(!error(ElementType::Gray8, b"", MOST).is_empty());
        // Little more than 100 bytes of PNG.
        let wide = DataRegion::Gray8(Raster::filled(1000, 100, 1, 0).unwrap());
        let file = encode(FileFormat::Png, &wide).unwrap();
        let long = error(ElementType::Gray8, &file, 99_999);
        assert_eq!(long, "1000 x 100 px, 100000 bytes; 99999 bytes are allowed");
    }
}
