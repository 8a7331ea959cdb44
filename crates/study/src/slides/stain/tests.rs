//! Tests of fits on generated slides.

use super::*;
use crate::{PreparedStudy, builtin};
use pleach_pathology::image_io::PyramidFormat;
use pleach_pathology::tissue::slide::{MICRONS_PER_PX, Parallel, SlideTissue, write_slide};
use pleach_workflow::SlideTile;
use std::collections::HashSet;
use std::fs;
use tempfile::TempDir;

struct OneThread;

impl Parallel for OneThread {
    fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
        (0..count).map(of).collect()
    }
}

fn tile(core: [u32; 4]) -> StudyTile {
    let slide = Some(SlideTile { magnification: None, core, window: core });
    StudyTile { name: String::new(), path: "s.svs".into(), slide, block: None, fit: None }
}

#[test]
fn blocks_cover_each_core_once() {
    let tiles = [tile([0, 0, 300, 200]), tile([300, 0, 100, 200]), tile([0, 200, 300, 64])];
    let blocks = Blocks::new(&tiles, 64);
    let mut seen = HashSet::new();
    for block in blocks.sample(usize::MAX) {
        for y in block.y_px..block.y_px + block.height_px {
            (block.x_px..block.x_px + block.width_px).for_each(|x| assert!(seen.insert((x, y))));
        }
    }
    assert_eq!(seen.len(), 300 * 200 + 100 * 200 + 300 * 64);
    let some: Vec<_> = blocks.sample(7).collect();
    assert_eq!((some.len(), some[0]), (7, blocks.block(0)));
    assert!(some.iter().all(|block| blocks.sample(usize::MAX).any(|of| of == *block)));
    assert_eq!(Blocks::new(&[], 64).sample(7).count(), 0);
}

/// Writes slides and a target image to a folder.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, seed) in [("a", 1), ("b", 2)] {
        let path = folder.path().join(format!("{name}.tif"));
        let slide = SlideTissue::new(seed, [1_400, 1_100]);
        write_slide(&slide, (&path, None), PyramidFormat::Jpeg(85), &OneThread, |_| {}).unwrap();
    }
    write_target(&folder, 5);
    folder
}

fn write_target(folder: &TempDir, seed: u64) {
    let tissue = pleach_pathology::tissue::generate(seed, 0, 128).unwrap();
    image_io::write_bgr(&folder.path().join("target.png"), &tissue.image).unwrap();
}

/// Prepares a study of both slides with a line in its inputs.
fn prepared(folder: &TempDir, line: &str) -> Result<PreparedStudy, PrepareError> {
    let file = folder.path().join("study.toml");
    let text = format!(
        "[study]\nname = \"s\"\nworkflow = \"nuclei\"\n[input]\nslides = [\"*.tif\"]\ntile = 256\nhalo = 16\n{line}\n\
         [method]\nkind = \"moat\"\ntrajectories = 2\n[response]\nmetric = \"dice\"\n"
    );
    fs::write(&file, text).unwrap();
    PreparedStudy::load(&file, None, &builtin::registry())
}

/// Number of workflow inputs of the tiles, and the distinct keys of the last one, in order.
fn fit_keys(prepared: &PreparedStudy) -> Vec<String> {
    let mut keys: Vec<String> =
        prepared.tiles.iter().map(|tile| format!("{:?}", tile.inputs.last().unwrap())).collect();
    keys.dedup();
    keys
}

#[test]
fn tiles_of_a_slide_have_one_fit_by_default() {
    let folder = folder();
    let fitted = prepared(&folder, "").unwrap();
    let names: Vec<&str> = fitted.study.workflow.inputs.iter().map(|input| &*input.region).collect();
    assert_eq!(names, ["tile", "core", "stain"]);
    assert!(fitted.tiles.len() > 6);
    // One region for all tiles of a slide.
    assert_eq!(fit_keys(&fitted).len(), 2);
    let normalization = fitted.study.normalization.clone().unwrap();
    assert_eq!(normalization.scope, FitScope::Slide);
    let source = |fit: usize| normalization.fits[fit].source.unwrap();
    assert_ne!(source(0), source(1));
    // The study reads the whole slide in blocks: its fit is that of all pixels of its tiles.
    let slide = Slide::open(&folder.path().join("a.tif")).unwrap();
    let scale = slide.scale(None).unwrap();
    let mut counts = ColorCounts::default();
    for tile in fitted.study.tiles.iter().filter(|tile| tile.fit == Some(0)) {
        let [x_px, y_px, width_px, height_px] = tile.slide.as_ref().unwrap().core;
        let core = PixelRectangle { x_px, y_px, width_px, height_px };
        counts.add(slide.read(&scale, core).unwrap().data());
    }
    assert_eq!(counts.statistics(), Some(source(0)));
    // A second preparation gives the same keys.
    assert_eq!(fit_keys(&prepared(&folder, "").unwrap()), fit_keys(&fitted));
    // Its own statistics for each tile: no fitted values.
    let own = prepared(&folder, "normalize = { fit = \"tile\" }").unwrap();
    assert_eq!((own.study.workflow.inputs.len(), &own.study.normalization), (2, &None));
    assert_ne!(own.digest, fitted.digest);
}

#[test]
fn edited_target_changes_keys() {
    let folder = folder();
    let line = "normalize = { target = \"target.png\" }";
    let (plain, first) = (prepared(&folder, "").unwrap(), prepared(&folder, line).unwrap());
    let fits = &first.study.normalization.as_ref().unwrap().fits;
    let image = image_io::read_bgr(&folder.path().join("target.png")).unwrap();
    let mut counts = ColorCounts::default();
    counts.add(image.raster(ElementType::Bgr8).unwrap().data());
    assert!(fits.iter().all(|fit| fit.target == counts.statistics() && fit.source.is_some()));
    write_target(&folder, 6);
    let second = prepared(&folder, line).unwrap();
    for (one, other) in [(&plain, &first), (&first, &second)] {
        assert!(fit_keys(one).iter().all(|key| !fit_keys(other).contains(key)));
        assert_ne!(one.digest, other.digest);
    }
    // The target alone: every tile keeps its own statistics.
    let by_tile = prepared(&folder, "normalize = { fit = \"tile\", target = \"target.png\" }").unwrap();
    assert_eq!(fit_keys(&by_tile).len(), 1);
    assert_eq!(by_tile.study.normalization.unwrap().fits[0].source, None);
}

#[test]
fn mistakes_in_a_normalization_are_named() {
    let folder = folder();
    image_io::write_gray(
        &folder.path().join("blank.png"),
        &pleach_regions::Raster::filled(9, 9, 1, 255).unwrap(),
    )
    .unwrap();
    for (line, expected) in [
        (
            "normalize = { fit = \"image\" }",
            "input.normalize.fit: \"image\" is not allowed; allowed: \"tile\", \"slide\"",
        ),
        (
            "normalize = { target = \"none.png\" }",
            "none.png: no such file; an image (PNG, JPEG or TIFF) is allowed",
        ),
        ("normalize = { targte = \"a\" }", "input.normalize.targte: unknown; known are fit, target"),
        ("normalize = { target = \"study.toml\" }", "input.normalize.target: "),
        (
            "normalize = { target = \"blank.png\" }",
            "blank.png: no tissue; an image with stained tissue is allowed",
        ),
        ("normalize = 1", "input.normalize: 1 has the wrong type; allowed: true or false"),
    ] {
        let error = prepared(&folder, line).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("study.toml: "), "{line}: {error}");
    }
}

/// OpenSlide reads the resolution and the levels that were written.
#[test]
fn written_slide_opens_with_its_resolution_and_levels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slide.tif");
    let size_px = [5_001, 1_802];
    for format in [PyramidFormat::Deflate, PyramidFormat::Jpeg(90)] {
        let tissue = SlideTissue::new(7, size_px);
        write_slide(&tissue, (&path, None), format, &OneThread, |_| {}).unwrap();
        let slide = Slide::open(&path).unwrap();
        let microns = slide.resolution().unwrap().microns_per_px();
        assert!((microns / MICRONS_PER_PX - 1.0).abs() < 1e-6, "{microns}");
        assert_eq!(slide.magnification(), Some(40.0));
        let levels: Vec<[u32; 2]> =
            slide.levels().iter().map(|level| [level.width_px, level.height_px]).collect();
        assert_eq!(levels, [[5_001, 1_802], [1_250, 450], [312, 112]]);
        // A coarse level is the mean of the first, up to the loss of both encodings.
        let all = |scale: &Scale| PixelRectangle {
            x_px: 0,
            y_px: 0,
            width_px: scale.width_px,
            height_px: scale.height_px,
        };
        let scales = [40.0, 10.0].map(|at| slide.scale(Some(at)).unwrap());
        assert_eq!(scales[1].level, 1);
        let [fine, coarse] = scales.map(|scale| slide.read(&scale, all(&scale)).unwrap());
        let reduced = image_io::reduce(fine.data(), 5_001, 1_250);
        let differences = coarse.data().iter().zip(&reduced).map(|(a, b)| f64::from(a.abs_diff(*b)));
        let mean = differences.sum::<f64>() / coarse.data().len() as f64;
        assert!(mean <= if format == PyramidFormat::Deflate { 0.0 } else { 2.0 }, "{format:?}: {mean}");
    }
}

/// Statistics by the pixels that are read, on the slide of the test data. A half of the blocks is a sample, and a quarter of
/// the magnification a level of a pyramid.
#[test]
fn sample_of_blocks_has_the_statistics_of_the_slide() {
    let Some(data) = crate::slides::tests::data("sample_of_blocks_has_the_statistics_of_the_slide") else {
        return;
    };
    let path = data.join("wsi/CMU-1-Small-Region.svs");
    let slide = Slide::open(&path).unwrap();
    let own = slide.magnification().unwrap();
    let statistics = |factor: f64, take: &dyn Fn(usize) -> bool| {
        let scale = slide.scale(Some(own / factor)).unwrap();
        let mut whole = tile([0, 0, scale.width_px, scale.height_px]);
        whole.path.clone_from(&path);
        let (mut counts, blocks) = (ColorCounts::default(), Blocks::new(&[whole], BLOCK_PX));
        for number in (0..blocks.count).filter(|number| take(*number)) {
            counts.add(slide.read(&scale, blocks.block(number)).unwrap().data());
        }
        let found = counts.statistics().unwrap();
        found.mean.into_iter().chain(found.deviation).map(Real::get).collect::<Vec<f64>>()
    };
    let all = statistics(1.0, &|_| true);
    // In deviations of the tissue, and as a ratio of deviations.
    let distance = |of: &[f64]| {
        let means = (0..3).map(|axis| (of[axis] - all[axis]).abs() / all[3 + axis]).fold(0.0, f64::max);
        let ratio = (3..6).map(|axis| (of[axis] / all[axis] - 1.0).abs()).fold(0.0, f64::max);
        [means, ratio]
    };
    let report = |name: &str, of: &[f64]| {
        println!("{name}: {of:.4?}, distance of means and of deviations {:.3?}", distance(of));
        distance(of)
    };
    report("all pixels", &all);
    let half = report("every second block", &statistics(1.0, &|number| number % 2 == 0));
    report("every eighth block", &statistics(1.0, &|number| number % 8 == 0));
    let coarse = report("a quarter of the magnification", &statistics(4.0, &|_| true));
    assert!(half.iter().all(|distance| *distance < 0.1), "{half:?}");
    assert!(coarse[1] > half[1], "averaging changes deviations: {coarse:?} {half:?}");
}
