//! Studies of slides: their tiles equal those of images, objects on borders count once, and results do not depend on the
//! execution.

use crate::data::data;
use crate::masks::{compare, components};
use crate::mirax::write_mirax;
use crate::pleach::pleach;
use crate::pyramid::{AT_20, Pyramid, write_image};
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{findings, run, segment};
use std::path::Path;

/// R, G, B pixels and the width.
type Image = (Vec<u8>, usize);

/// Width and height in pixels of the slide in most tests: 3 × 2 tiles of 128 px, and a strip of glass at the right.
const SIZE_PX: [usize; 2] = [330, 250];

/// Columns with tissue, in pixels.
const TISSUE_PX: usize = 250;

/// The slide as an image.
fn slide_image(study: &Study) -> Image {
    let (folder, size) = (study.folder(), "256");
    pleach(folder, &["tissue", "--out", "whole", "--size", size, "--count", "1", "--seed", "8"]).done();
    let tissue = image::open(study.path("whole/tissue_01.png")).expect("a tile").into_rgb8();
    let pixel = |n: usize| {
        let (x, y) = (n % SIZE_PX[0], n / SIZE_PX[0]);
        if x < TISSUE_PX { tissue.get_pixel(x as u32, y as u32).0 } else { [244, 243, 245] }
    };
    ((0..SIZE_PX[0] * SIZE_PX[1]).flat_map(pixel).collect(), SIZE_PX[0])
}

/// A study of a slide with these additional lines, and the slide as an image.
fn of_slide(lines: &str, edits: &[(&str, &str)]) -> (Study, Image) {
    let study = Study::of_tissue(64);
    let image = slide_image(&study);
    study.write("slides/none.txt", "");
    write_image(&study.path("slides/s.svs"), &image.0, image.1, AT_20);
    edit(&study, lines, edits);
    (study, image)
}

fn edit(study: &Study, lines: &str, edits: &[(&str, &str)]) {
    // Tiles are compared with images of them, which are fitted to themselves.
    let by_tile = ("normalize = true", "normalize = { fit = \"tile\" }");
    edit_inputs(study, lines, &[&[by_tile], edits].concat());
}

fn edit_inputs(study: &Study, lines: &str, edits: &[(&str, &str)]) {
    let slides = format!("slides = [\"slides/*.svs\"]\n{lines}");
    study.edit(&[&[("tiles = [\"tiles/*.png\"]", slides.as_str())], edits].concat());
}

/// Left, top, width and height.
type Sides = [usize; 4];

fn write_part(study: &Study, name: &str, (pixels, width): &Image, [x, y, columns, rows]: Sides) {
    let row = |row: usize| &pixels[((y + row) * width + x) * 3..][..columns * 3];
    let part: Vec<u8> = (0..rows).flat_map(row).copied().collect();
    let part = image::RgbImage::from_raw(columns as u32, rows as u32, part).expect("an image");
    std::fs::create_dir_all(study.path(name).parent().expect("a folder")).expect("a folder made");
    part.save(study.path(name)).expect("an image written");
}

/// Cores and windows, in order.
fn cut([width, height]: [usize; 2], tile: usize, halo: usize) -> Vec<(Sides, Sides)> {
    let mut tiles = Vec::new();
    for top in (0..height).step_by(tile) {
        for left in (0..width).step_by(tile) {
            let (right, bottom) = ((left + tile).min(width), (top + tile).min(height));
            let (x, y) = (left.saturating_sub(halo), top.saturating_sub(halo));
            let window = [x, y, (right + halo).min(width) - x, (bottom + halo).min(height) - y];
            tiles.push(([left, top, right - left, bottom - top], window));
        }
    }
    tiles
}

/// Responses without the names of the tiles.
fn responses(study: &Study, out: &str) -> Vec<Row> {
    let mut rows = rows(&study.path(out).join("responses.csv"));
    rows.iter_mut().for_each(|row| drop(row.remove("tile")));
    rows
}

fn executed(study: &Study, out: &str) -> u64 {
    json(&study.path(out).join("run.json"))["tasks_executed"].as_u64().expect("a number")
}

#[test]
fn tiles_of_a_slide_are_what_images_of_them_are() {
    let (study, image) = of_slide("tile = 128\nhalo = 0\nskip_background = false", &[]);
    let of_slides = findings(&study, "slides", &["--workers", "2"]);
    for (number, (core, window)) in cut(SIZE_PX, 128, 0).into_iter().enumerate() {
        assert_eq!(core, window);
        write_part(&study, &format!("parts/{number}.png"), &image, core);
    }
    study.edit(&[("tiles/*.png", "parts/*.png")]);
    let of_images = findings(&study, "images", &["--workers", "2"]);
    assert_eq!(responses(&study, "slides"), responses(&study, "images"));
    // Samples and indices do not depend on tile names.
    assert_eq!((&of_slides[0], &of_slides[3..]), (&of_images[0], &of_images[3..]));
    let names: Vec<String> = rows(&study.path("slides/responses.csv"))
        .into_iter()
        .take(6)
        .map(|mut row| row.remove("tile").expect("a tile"))
        .collect();
    assert_eq!(names, ["s/0_0", "s/128_0", "s/256_0", "s/0_128", "s/128_128", "s/256_128"]);
}

/// By default all tiles of a slide have one fit, on any number of workers. A second run of the study reads the cache, and an
/// edited target runs again.
#[test]
fn fit_of_a_slide_is_an_input_of_its_tiles() {
    let lines = "tile = 128\nhalo = 16\nskip_background = false";
    let (study, _) = of_slide(lines, &[]);
    run(&study, "by-tile", &["--workers", "1"]);
    edit_inputs(&study, lines, &[]);
    let fitted = findings(&study, "one", &["--strategy", "none", "--workers", "1"]);
    assert_eq!(findings(&study, "two", &["--workers", "2"]), fitted);
    assert_ne!(responses(&study, "by-tile"), responses(&study, "one"));
    let target = ("normalize = true", "normalize = { target = \"tiles/tissue_01.png\" }");
    edit_inputs(&study, lines, &[target]);
    let cached = |out: &str| {
        run(&study, out, &["--cache", "cache", "--workers", "2"]);
        executed(&study, out)
    };
    assert!(cached("first") > 0);
    assert_eq!(cached("again"), 0);
    assert_ne!(responses(&study, "first"), responses(&study, "one"));
    std::fs::copy(study.path("tiles/tissue_02.png"), study.path("tiles/tissue_01.png")).expect("copied");
    assert!(cached("edited") > 0);
}

/// The part of a mask within the tile's core.
fn core_of(mask: &[bool], core: Sides, window: Sides) -> Vec<bool> {
    let (left, top) = (core[0] - window[0], core[1] - window[1]);
    (0..core[3]).flat_map(|row| mask[(top + row) * window[2] + left..][..core[2]].to_vec()).collect()
}

/// Number of components whose centroid, the mean of their pixel centers, is in the core.
fn owned(mask: &[bool], core: Sides, window: Sides) -> usize {
    let labels = components(mask, window[2]);
    let count = labels.iter().copied().max().unwrap_or(0);
    let is_owned = |label: &u32| {
        let pixels = labels.iter().enumerate().filter(|(_, found)| *found == label).map(|(pixel, _)| pixel);
        let centers: Vec<[f64; 2]> =
            pixels.map(|pixel| [pixel % window[2], pixel / window[2]].map(|at| at as f64 + 0.5)).collect();
        (0..2).all(|axis| {
            let mean = centers.iter().map(|center| center[axis]).sum::<f64>() / centers.len() as f64;
            let at = mean + window[axis] as f64 - core[axis] as f64;
            (0.0..core[axis + 2] as f64).contains(&at)
        })
    };
    (1..=count).filter(is_owned).count()
}

#[test]
fn tiles_count_only_objects_of_their_core() {
    let lines = "tile = 128\nhalo = 24\nskip_background = false";
    let (study, image) = of_slide(lines, &[]);
    let pixels = findings(&study, "pixels", &["--strategy", "none", "--workers", "1"]);
    for (out, options) in [
        ("value", &["--workers", "2"][..]),
        ("tree", &["--strategy", "rtma", "--reuse", "tree"]),
        ("stage", &["--strategy", "stage"]),
    ] {
        assert_eq!(findings(&study, out, options), pixels, "{out}");
    }
    edit(&study, lines, &[("\"dice\"", "\"nuclei\"")]);
    let objects = findings(&study, "objects", &["--strategy", "none"]);
    assert_eq!(findings(&study, "objects-reused", &["--workers", "2"]), objects);

    let tiles = cut(SIZE_PX, 128, 24);
    let samples = rows(&study.path("pixels/samples.csv"));
    let (pixels, objects) = (responses(&study, "pixels"), responses(&study, "objects"));
    let (mut on_borders, mut found_any) = (0, 0);
    for (number, (core, window)) in tiles.iter().copied().enumerate() {
        let name = format!("parts/{number}.png");
        write_part(&study, &name, &image, window);
        let reference = segment(&study, &name, &Row::new(), &["--normalize"]);
        for evaluation in [1, 9, 20, 32] {
            let mask = segment(&study, &name, &samples[evaluation - 1], &["--normalize"]);
            let place = (evaluation - 1) * tiles.len() + number;
            let mut found = pixels[place].clone();
            found.remove("evaluation");
            assert_eq!(found, compare(&core_of(&mask, core, window), &core_of(&reference, core, window)));
            let count = owned(&mask, core, window);
            assert_eq!(
                objects[place]["nuclei"],
                count.to_string(),
                "evaluation {evaluation} of tile {number}"
            );
            let whole = components(&mask, window[2]).into_iter().max().unwrap_or(0) as usize;
            (on_borders, found_any) = (on_borders + whole - count, found_any + count);
        }
    }
    assert!(on_borders > 0 && found_any > 0, "{on_borders} {found_any}");
}

/// Pixels of the core and objects owned by it, measured in the same runs.
#[test]
fn metrics_of_two_tables_with_halo_equal_each_alone() {
    let lines = "tile = 128\nhalo = 24\nskip_background = false";
    let (study, _) = of_slide(lines, &[]);
    let mut parts = Vec::new();
    for (out, metric) in [("dice", "\"dice\""), ("nuclei", "\"nuclei\"")] {
        edit(&study, lines, &[("\"dice\"", metric)]);
        run(&study, out, &[]);
        parts.push(rows(&study.path(out).join("responses.csv")));
    }
    edit(&study, lines, &[("\"dice\"", "[\"dice\", \"nuclei\"]")]);
    run(&study, "both", &["--workers", "2"]);
    let both = rows(&study.path("both/responses.csv"));
    assert_eq!(both.len(), 32 * 6);
    for ((row, dice), nuclei) in both.iter().zip(&parts[0]).zip(&parts[1]) {
        let mut alone = dice.clone();
        alone.extend(nuclei.clone());
        assert_eq!(*row, alone);
    }
    let runs = findings(&study, "replicated", &["--strategy", "none"]);
    assert_eq!(findings(&study, "both", &["--overwrite"]), runs);
}

#[test]
fn background_is_left_out_and_shown() {
    let lines = "tile = 64\nhalo = 16\nmagnification = 20";
    let (study, _) = of_slide(lines, &[]);
    let listed = json_plan(&study);
    // Four of six columns show tissue, the last of them only at its left side.
    assert_eq!(listed["plans"][0]["runs"], 32 * 16);
    run(&study, "out", &["--workers", "2"]);
    let page = text(&study.path("out/report.html"));
    for expected in
        ["<h2>Slides</h2>", "330 × 250 px at 20x, 16 tiles of 64 px, 8 excluded", "class=\"skipped\""]
    {
        assert!(page.contains(expected), "{expected}");
    }
    // The required fraction exceeds the tissue in the last of these columns.
    edit(&study, &format!("{lines}\ntissue = {{ min_fraction = 0.99, saturation = 10 }}"), &[]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 32 * 12);
    edit(&study, &format!("{lines}\nskip_background = false"), &[]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 32 * 24);
    // Half the magnification has a quarter of the tiles.
    edit(&study, "tile = 64\nmagnification = 10\nskip_background = false", &[]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 32 * 6);
    // A tile larger than the slide is clipped.
    edit(&study, "", &[]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 32);
}

/// The last column of tissue ends within its tiles. A table of two rows: with `reference = "defaults"` nothing else is needed.
#[test]
fn tiles_weigh_as_much_as_their_tissue() {
    let method = ("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"table\"\nfile = \"sets.csv\"");
    let weights = ("metric = \"dice\"", "metric = \"dice\"\nweights = \"tissue\"");
    let (study, _) = of_slide("tile = 128\nhalo = 0", &[method, weights]);
    study.write("sets.csv", "G1\n60\n70\n");
    run(&study, "out", &[]);
    let record = json(&study.path("out/run.json"));
    assert_eq!(record["weights"]["by"], "tissue");
    let pixels: Vec<f64> = serde_json::from_value(record["weights"]["pixels"].clone()).expect("numbers");
    // Two columns of two rows. The second row has 122 of 128 px.
    let [a, b, c, d] = <[f64; 4]>::try_from(pixels).expect("a weight for each tile");
    assert!(a > b && c > d && a > c && b > d && d > 0.0, "{a} {b} {c} {d}");
    assert!(a <= 128.0 * 128.0 && b <= 128.0 * 124.0, "{a} {b}");
}

fn json_plan(study: &Study) -> serde_json::Value {
    let printed = pleach(study.folder(), &["plan", "study.toml", "--json"]).done();
    serde_json::from_str(&printed).expect("one JSON document")
}

/// The cache key of a tile is the content of the slide, the position and the magnification.
#[test]
fn a_slide_of_another_name_is_in_the_cache() {
    let lines = "tile = 128\nhalo = 8";
    let (study, (mut pixels, width)) = of_slide(lines, &[]);
    let cached = |out: &str| {
        run(&study, out, &["--cache", "cache"]);
        executed(&study, out)
    };
    assert!(cached("first") > 0);
    std::fs::rename(study.path("slides/s.svs"), study.path("slides/other.svs")).expect("renamed");
    assert_eq!(cached("renamed"), 0);
    assert_eq!(responses(&study, "first"), responses(&study, "renamed"));
    // Another halo makes other windows, so tasks run again.
    edit(&study, "tile = 128\nhalo = 9", &[]);
    assert!(cached("wider") > 0);
    edit(&study, lines, &[]);
    pixels[0] ^= 1;
    write_image(&study.path("slides/other.svs"), &pixels, width, AT_20);
    assert!(cached("changed") > 0);
}

/// A corrupt piece of the slide fails only the tiles that contain it.
#[test]
fn a_damaged_piece_fails_its_tiles() {
    let lines = "tile = 128\nhalo = 0\nskip_background = false";
    let (study, _) = of_slide(lines, &[]);
    run(&study, "whole", &[]);
    let mut slide = std::fs::read(study.path("slides/s.svs")).expect("the slide");
    // The first compressed piece follows a header of 16 bytes.
    slide[16..64].fill(0xff);
    study.write("slides/s.svs", slide);
    let options = ["run", "study.toml", "--out", "damaged", "--quiet"];
    let answer = pleach(study.folder(), &options);
    assert_eq!(answer.code, 3, "{answer:?}");
    let failed = rows(&study.path("damaged/failed.csv"));
    assert_eq!(failed.len(), 32);
    for row in &failed {
        assert_eq!(row["tile"], "s/0_0");
        assert!(row.values().any(|value| value.contains("s.svs: corrupt or unsupported slide")), "{row:?}");
    }
    let good = |out: &str| -> Vec<Row> {
        rows(&study.path(out).join("responses.csv"))
            .into_iter()
            .filter(|row| row["tile"] != "s/0_0")
            .collect()
    };
    assert_eq!(good("damaged"), good("whole"));
}

/// Replaces PlanarConfiguration, which has its default value, by a Predictor of type text. libtiff ignores it and decodes.
fn damage_predictor(path: &Path) {
    let mut slide = std::fs::read(path).expect("a slide");
    let field = |number: u16, kind: u16| {
        [&number.to_le_bytes()[..], &kind.to_le_bytes(), &1_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat()
    };
    let (planar, damaged) = (field(284, 3), field(317, 2));
    let at = slide.windows(planar.len()).position(|window| window == planar).expect("a field");
    slide[at..at + damaged.len()].copy_from_slice(&damaged);
    std::fs::write(path, slide).expect("written");
}

#[test]
fn slide_with_damaged_predictor_fails_its_tiles_by_name() {
    let lines = "tile = 256\nhalo = 0\nskip_background = false";
    let (study, image) = of_slide(lines, &[]);
    write_image(&study.path("slides/t.svs"), &image.0, image.1, AT_20);
    damage_predictor(&study.path("slides/t.svs"));
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    // libtiff's own messages are not printed.
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    let why =
        "slides/t.svs: corrupt or unsupported slide: field Predictor is of type 2; a whole number is allowed";
    assert!(answer.stderr.contains(why), "{answer:?}");
    let failed = rows(&study.path("out/failed.csv"));
    assert_eq!(failed.len(), 32 * 2);
    assert!(failed.iter().all(|row| row["tile"].starts_with("t/")), "{failed:?}");
    // Tissue detection reads the pixels.
    edit(&study, "tile = 256\nhalo = 0", &[]);
    let planned = pleach(study.folder(), &["plan", "study.toml"]);
    let said = format!("error: study.toml: input.slides: {why}\n");
    assert_eq!((planned.code, planned.stderr), (2, said));
}

#[test]
fn message_of_libtiff_is_in_the_error_and_not_on_stderr() {
    let (study, _) = of_slide("tile = 256\nhalo = 0\nskip_background = false", &[]);
    let mut slide = std::fs::read(study.path("slides/s.svs")).expect("the slide");
    // The first compressed piece follows a header of 16 bytes.
    slide[16..64].fill(0xff);
    study.write("slides/s.svs", slide);
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!((answer.code, answer.stderr.lines().count()), (3, 1), "{answer:?}");
    let failed = rows(&study.path("out/failed.csv"));
    let why = "s.svs: corrupt or unsupported slide: TIFFRGBAImageGet failed: ";
    assert!(!failed.is_empty() && failed.iter().all(|row| row["cause"].contains(why)), "{failed:?}");
}

/// 14.4 gigapixels in a small file: a disc of tissue.
fn gigapixel(path: &Path) {
    const SIDE_PX: u32 = 120_000;
    let images = [vec![244; 512 * 512 * 3], [180, 90, 160].repeat(512 * 512)];
    let image_of = |level: usize, column: u32, row: u32| {
        let at = |place: u32| f64::from((place * 512 + 256) << level) / f64::from(SIDE_PX) - 0.5;
        usize::from(at(column).hypot(at(row)) < 0.25)
    };
    let pyramid = Pyramid {
        size_px: [SIDE_PX; 2],
        levels: 5,
        tile_px: 512,
        images: &images,
        image_of: &image_of,
        description: AT_20,
    };
    pyramid.write(path);
}

#[test]
fn a_gigapixel_slide_is_planned() {
    let study = Study::of_tissue(64);
    study.write("slides/none.txt", "");
    gigapixel(&study.path("slides/large.svs"));
    edit(&study, "skip_background = false", &[]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 32 * 900);
    edit(&study, "", &[]);
    let runs = json_plan(&study)["plans"][0]["runs"].as_u64().expect("a number") / 32;
    // Tiles that the disc touches: 177 tiles of area, and about 50 more at the rim.
    assert!((177..=250).contains(&runs), "{runs}");
    // 55,225 tiles of 512 px.
    study.write("sets.csv", "G1\n80\n");
    let table =
        ("kind = \"moat\"\ntrajectories = 2\nlevels = 20\n", "kind = \"table\"\nfile = \"sets.csv\"\n");
    edit(&study, "tile = 512\nmagnification = 20\nskip_background = false", &[table]);
    assert_eq!(json_plan(&study)["plans"][0]["runs"], 235 * 235);
    edit(&study, "tile = 64\nskip_background = false", &[]);
    let answer = pleach(study.folder(), &["plan", "study.toml"]);
    let expected = "error: study.toml: input.tile: 64 is not allowed; allowed: what makes no more than 1048576 tiles of all \
                    slides\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (2, expected));
}

/// The slide of the test data, in tiles and as a whole.
///
/// Segmentation is not local: a reconstruction has no fixed reach, and glass tiles with little tissue are background as a
/// whole. So counts differ slightly, not only at borders. `crates/study/src/slides.rs` tests that no nucleus of one mask counts twice.
#[test]
fn a_real_slide_in_tiles_and_as_a_whole() {
    let Some(data) = data("a_real_slide_in_tiles_and_as_a_whole") else { return };
    let study = Study::of_tissue(64);
    study.write("sets.csv", "G1,G2\n80,45\n40,20\n");
    let path = data.join("wsi/CMU-1-Small-Region.svs").display().to_string();
    let count = |out: &str, lines: &str| -> [u64; 2] {
        // Normalization uses statistics of a whole tile, which would be another cause of differences.
        study.edit(&[
            ("tiles = [\"tiles/*.png\"]", &format!("slides = [{path:?}]\n{lines}")),
            ("normalize = true", "normalize = false"),
            ("kind = \"moat\"\ntrajectories = 2\nlevels = 20\n", "kind = \"table\"\nfile = \"sets.csv\"\n"),
            ("\"dice\"", "\"nuclei\""),
        ]);
        run(&study, out, &["--workers", "2"]);
        let responses = rows(&study.path(out).join("responses.csv"));
        let nuclei = |row: &Row| row["nuclei"].parse::<u64>().expect("a number");
        ["1", "2"].map(|evaluation| {
            responses.iter().filter(|row| row["evaluation"] == evaluation).map(nuclei).sum()
        })
    };
    let whole = count("whole", "");
    assert!(whole[0] > 1_500, "{whole:?}");
    for halo in [64, 151] {
        let tiled = count(&format!("halo-{halo}"), &format!("tile = 512\nhalo = {halo}"));
        println!("halo {halo}: {tiled:?} nuclei, {whole:?} on the whole slide");
        // With the nuclei of the halos, counts would be half as large again.
        assert!(
            tiled.iter().zip(whole).all(|(tiled, whole)| tiled.abs_diff(whole) * 33 <= whole),
            "{tiled:?}"
        );
    }
    let page = text(&study.path("halo-64/report.html"));
    assert!(
        page.contains("2220 × 2967 px at 20x, 19 tiles of 512 px, 11 excluded"),
        "the slide is in the report"
    );
}

/// The same pixels in several files give the same tiles. A change of any file makes another slide.
#[test]
fn change_of_any_file_of_a_slide_makes_another_slide() {
    let lines = "tile = 128\nhalo = 8\nskip_background = false";
    let (study, image) = of_slide(lines, &[]);
    write_part(&study, "parts/whole.png", &image, [0, 0, 320, 192]);
    let pixels = image::open(study.path("parts/whole.png")).expect("an image").into_rgb8().into_raw();
    write_image(&study.path("slides/s.svs"), &pixels, 320, AT_20);
    write_mirax(&study.path("slides/s.mrxs"), &pixels, 320, 64, 20);
    let in_one_file = findings(&study, "one", &["--cache", "cache"]);
    study.edit(&[
        ("tiles = [\"tiles/*.png\"]", &format!("slides = [\"slides/*.mrxs\"]\n{lines}")),
        ("normalize = true", "normalize = { fit = \"tile\" }"),
    ]);
    let cached = |out: &str| {
        let found = findings(&study, out, &["--cache", "cache"]);
        (found == in_one_file, executed(&study, out) > 0)
    };
    assert_eq!(cached("several"), (true, true), "it is another slide to the cache");
    assert_eq!(cached("again"), (true, false));
    for part in ["slides/s/Data0001.dat", "slides/s/Index.dat"] {
        // Appends a byte that no reader uses.
        let mut bytes = std::fs::read(study.path(part)).expect("a file of the slide");
        bytes.push(0);
        study.write(part, bytes);
        assert_eq!(cached(&part.replace('/', "-")), (true, true), "{part}");
    }
    std::fs::remove_file(study.path("slides/s/Data0001.dat")).expect("removed");
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "lacking", "--quiet"]);
    assert_ne!(answer.code, 0, "{answer:?}");
}
