//! Synthetic slides: blocks join without seams, outlines are those of the pixels, and the file holds its levels.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_pathology::image_io::{self, PyramidFormat};
use pleach_pathology::tissue::slide::{GLASS, Parallel, SlideTissue, TissueRow, write_slide};
use pleach_regions::ElementType;

struct OneThread;

impl Parallel for OneThread {
    fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
        (0..count).map(of).collect()
    }
}

const SIZE_PX: [u32; 2] = [2_100, 1_700];

/// Reads the first level of a slide without loss: B, G, R.
fn pixels(seed: u64, size_px: [u32; 2]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slide.tif");
    let slide = SlideTissue::new(seed, size_px);
    write_slide(&slide, (&path, None), PyramidFormat::Deflate, &OneThread, |_| {}).unwrap();
    let region = image_io::read_bgr(&path).unwrap();
    region.raster(ElementType::Bgr8).unwrap().data().to_vec()
}

/// Differences between neighboring pixels across a line, in gray levels, over pairs with tissue.
fn steps(pixels: &[u8], width: usize, column: usize) -> f64 {
    let pairs = pixels.chunks_exact(3 * width).filter_map(|row| {
        let at = |x: usize| &row[3 * x..][..3];
        let (left, right) = (at(column - 1), at(column));
        (left != GLASS && right != GLASS)
            .then(|| (0..3).map(|c| f64::from(left[c].abs_diff(right[c]))).sum::<f64>())
    });
    let all: Vec<f64> = pairs.collect();
    assert!(all.len() > 300, "{}", all.len());
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn blocks_join_without_seams() {
    let pixels = pixels(3, SIZE_PX);
    let width = SIZE_PX[0] as usize;
    // Across borders of blocks as within blocks.
    let border = [512, 1536].map(|column| steps(&pixels, width, column));
    let inner = [460, 570, 1480, 1590].map(|column| steps(&pixels, width, column));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    assert!((mean(&border) / mean(&inner) - 1.0).abs() < 0.15, "{border:?} {inner:?}");
}

/// Tissue covers a part of the slide, and glass has one color.
#[test]
fn slide_has_islands_on_glass() {
    let pixels = pixels(4, SIZE_PX);
    let glass = pixels.as_chunks::<3>().0.iter().filter(|pixel| **pixel == GLASS).count();
    let share = glass as f64 / (pixels.len() / 3) as f64;
    assert!((0.6..0.9).contains(&share), "{share}");
}

#[test]
fn outlines_are_dark_and_do_not_overlap() {
    let slide = SlideTissue::new(3, SIZE_PX);
    let pixels = pixels(3, SIZE_PX);
    let [width, height] = SIZE_PX.map(|side| side as usize);
    let (mut owner, mut state, mut count) = (vec![0_u32; width * height], TissueRow::default(), 0);
    let [columns, rows] = slide.blocks();
    for row in 0..rows {
        slide.enter(&mut state, row, &OneThread);
        for outline in (0..columns).flat_map(|column| slide.outlines(&state, column, row)) {
            count += 1;
            // Even-odd rule along each row of pixels.
            let ys = outline.iter().map(|corner| corner[1]);
            for y in ys.clone().min().unwrap()..ys.max().unwrap() {
                let edges = outline.iter().zip(outline.iter().cycle().skip(1));
                let mut crossings: Vec<i32> = edges
                    .filter(|(a, b)| a[0] == b[0] && (a[1].min(b[1])..a[1].max(b[1])).contains(&y))
                    .map(|(a, _)| a[0])
                    .collect();
                crossings.sort_unstable();
                for pair in crossings.chunks_exact(2) {
                    for x in pair[0]..pair[1] {
                        let pixel = &mut owner[y as usize * width + x as usize];
                        assert_eq!(*pixel, 0, "{x} {y}");
                        *pixel = count;
                    }
                }
            }
        }
    }
    let red = |is_in: &dyn Fn(u32) -> bool| {
        let reds = pixels.as_chunks::<3>().0.iter().zip(&owner);
        let reds: Vec<f64> = reds
            .filter(|(pixel, owner)| **pixel != GLASS && is_in(**owner))
            .map(|(pixel, _)| f64::from(pixel[2]))
            .collect();
        reds.iter().sum::<f64>() / reds.len() as f64
    };
    // 0.9 megapixels of tissue with 450 nuclei a megapixel.
    assert!((200..600).contains(&count), "{count}");
    let (nuclei, stroma) = (red(&|owner| owner > 0), red(&|owner| owner == 0));
    assert!(nuclei + 40.0 < stroma, "{nuclei} {stroma}");
}
