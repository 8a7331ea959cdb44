//! Tiles found by pattern, and their masks.

use crate::folder::Folder;
use crate::registry::shipped;
use pleach_workflow::ReferenceSource;

const TILES: &str = "tiles = [\"tiles/*.png\"]";
const DEFAULTS: &str = "reference = \"defaults\"";

/// Returns names and paths of the tiles that match this list of patterns.
fn tiles(folder: &Folder, patterns: &str) -> Vec<(String, String)> {
    let edit = format!("tiles = {patterns}");
    let study = folder.example(&[(TILES, &edit)]).expect("tiles");
    let shown = |path: &std::path::Path| folder.shown(&path.display().to_string());
    study.tiles.iter().map(|tile| (tile.name.clone(), shown(&tile.path))).collect()
}

fn names(folder: &Folder, patterns: &str) -> Vec<String> {
    tiles(folder, patterns).into_iter().map(|(name, _)| name).collect()
}

fn masks(folder: &Folder, reference: &str) -> Vec<String> {
    let edit = format!("reference = \"{reference}\"");
    match folder.example(&[(DEFAULTS, &edit)]).expect("masks").reference {
        ReferenceSource::Masks(masks) => folder.names(&masks),
        ReferenceSource::Defaults => panic!("a folder was given"),
    }
}

#[test]
fn tiles_are_sorted_and_unique() {
    let folder =
        Folder::with(&["tiles/b.png", "tiles/a.png", "tiles/c.tif", "tiles/notes.txt", "tiles/d.png/x"]);
    let path = |name: &str| format!("DIR/tiles/{name}");
    assert_eq!(
        tiles(&folder, r#"["tiles/*.png", "tiles/c.tif"]"#),
        [("a".to_owned(), path("a.png")), ("b".to_owned(), path("b.png")), ("c".to_owned(), path("c.tif")),]
    );
    assert_eq!(names(&folder, r#"["tiles/b.png", "tiles/[ab].png", "tiles/?.png"]"#), ["a", "b"]);
    // Different spellings of a path find the tile once.
    assert_eq!(names(&folder, r#"["tiles/a.png", "./tiles/a.png", "tiles/../tiles/*.png"]"#), ["a", "b"]);
    let absolute = format!("[\"{}/tiles/a.png\", \"tiles/a.png\"]", folder.path().display());
    assert_eq!(names(&folder, &absolute), ["a"]);
}

#[test]
fn patterns_take_neither_label_maps_nor_hidden_files_for_tiles() {
    let folder = Folder::with(&["tiles/a.png", "tiles/a_labels.png", "tiles/._a.png", "tiles/.hidden/b.png"]);
    assert_eq!(names(&folder, r#"["tiles/*.png"]"#), ["a"]);
    assert_eq!(names(&folder, r#"["**/*.png"]"#), ["a"]);
    // A label map that is named without a pattern is a tile.
    assert_eq!(names(&folder, r#"["tiles/a_labels.png"]"#), ["a_labels"]);
}

#[test]
fn a_folder_whose_name_looks_like_a_pattern_is_a_folder() {
    let outer = Folder::with(&["runs [2024]/tiles/a.png", "runs 2/tiles/b.png"]);
    outer.write("runs [2024]/study.toml", crate::example::EXAMPLE);
    let study = outer.load("runs [2024]/study.toml").expect("a tile");
    assert_eq!(study.tiles.iter().map(|tile| tile.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn tiles_of_equal_names_are_distinguished_by_folder() {
    let folder = Folder::with(&["one/a.png", "two/a.png", "two/b.png", "two/b.tif", "two/c.png"]);
    assert_eq!(
        names(&folder, r#"["*/*.png", "two/b.tif"]"#),
        ["one/a.png", "two/a.png", "two/b.png", "two/b.tif", "c"]
    );
}

#[test]
fn every_tile_finds_its_mask() {
    let folder =
        Folder::with(&["tiles/a.png", "tiles/b.png", "truth/a_labels.png", "truth/a.png", "truth/b.png"]);
    // Label maps and polygons take precedence over masks, since they distinguish objects.
    assert_eq!(masks(&folder, "truth"), ["DIR/truth/a_labels.png", "DIR/truth/b.png"]);
    folder.write("truth/a.geojson", "");
    folder.write("truth/b.geojson", "");
    assert_eq!(masks(&folder, "truth"), ["DIR/truth/a_labels.png", "DIR/truth/b.geojson"]);
}

#[test]
fn label_maps_beside_the_tiles_are_found() {
    let folder = Folder::with(&["tiles/a.png", "tiles/a_labels.png", "tiles/b.png", "tiles/b_labels.png"]);
    assert_eq!(masks(&folder, "tiles"), ["DIR/tiles/a_labels.png", "DIR/tiles/b_labels.png"]);
}

#[test]
fn a_workflow_without_a_reference_takes_none() {
    let folder = Folder::with(&["tiles/a.png"]);
    let read =
        |name: &str| std::fs::read_to_string(shipped().with_file_name(name)).expect("a shipped descriptor");
    for name in ["normalization.json", "segmentation.json"] {
        folder.write(name, read(name));
    }
    let mut workflow: serde_json::Value = read("workflow.json").parse().expect("JSON");
    workflow.as_object_mut().expect("an object").remove("reference");
    workflow["stages"].as_array_mut().expect("stages").pop();
    workflow["response"] = workflow["response"][0].take();
    folder.write("workflow.json", workflow.to_string());
    // The mask is compared with itself.
    let inputs = ", { \"region\": \"reference\", \"type\": \"mask\" }";
    folder.write(
        "comparison.json",
        read("comparison.json").replace(inputs, "").replace("\"reference\"]", "\"mask\"]"),
    );
    let workflow = ("workflow = \"nuclei\"", "workflow = \"workflow.json\"");
    let message = folder.example(&[workflow]).expect_err("a reference for nothing").to_string();
    assert_eq!(
        folder.shown(&message),
        "DIR/study.toml: input.reference: unknown; known are tiles, slides, magnification, tile, halo, skip_background, tissue, images, partition, channels, normalize"
    );
    assert!(
        folder
            .example(&[workflow, ("reference = \"defaults\"\n", "")])
            .expect("none")
            .workflow
            .reference
            .is_none()
    );
}

#[test]
fn tiles_of_a_slide_have_its_annotations() {
    let folder = Folder::with(&["slides/a.svs", "slides/b.svs", "truth/a.geojson", "truth/b.geojson.gz"]);
    let slides = (TILES, "slides = [\"slides/*.svs\"]\nhalo = 0");
    let mut study = folder.example(&[slides, (DEFAULTS, "reference = \"truth\"")]).expect("slides");
    let masks = |study: &pleach_workflow::Study| match &study.reference {
        ReferenceSource::Masks(masks) => folder.names(masks),
        ReferenceSource::Defaults => panic!("a folder was given"),
    };
    assert_eq!(masks(&study), ["DIR/truth/a.geojson", "DIR/truth/b.geojson.gz"]);
    let files = &study.slides.as_ref().expect("slides").files;
    let tiles = [&files[0], &files[0], &files[1], &files[1]].map(Clone::clone).to_vec();
    study.cut(tiles);
    let [a, b] = ["DIR/truth/a.geojson", "DIR/truth/b.geojson.gz"];
    assert_eq!(masks(&study), [a, a, b, b]);
    study.keep_tiles(&[true, false, false, true]);
    assert_eq!((masks(&study), study.tiles.len()), (vec![a.to_owned(), b.to_owned()], 2));
    // An image is no reference of a slide.
    let folder = Folder::with(&["slides/a.svs", "truth/a_labels.png", "truth/a.png"]);
    let error = folder.example(&[slides, (DEFAULTS, "reference = \"truth\"")]).expect_err("no annotations");
    let expected = "DIR/study.toml: input.reference: DIR/truth has none of a.geojson and a.geojson.gz for DIR/slides/a.svs";
    assert_eq!(folder.shown(&error.to_string()), expected);
}

#[test]
fn images_of_more_dimensions_are_found() {
    let folder = Folder::with(&[
        "v/a.ome.zarr/zarr.json",
        "v/a.ome.zarr/0/c/0",
        "v/b.ome.tif",
        "v/c.zarr/.zattrs",
        "v/d.txt",
    ]);
    let images =
        "images = [\"v/*.zarr\", \"v/b.ome.tif\"]\npartition = { x = 256, z = 8, t = 1 }\nchannels = [2, 0]";
    let study = folder.example(&[(TILES, images)]).expect("images");
    let volumes = study.volumes.expect("images");
    let found: Vec<(&str, String)> = volumes
        .files
        .iter()
        .map(|file| (file.name.as_str(), folder.shown(&file.path.display().to_string())))
        .collect();
    // A folder without metadata is an error of its reader, which knows the format.
    let expected =
        [("a", "DIR/v/a.ome.zarr/zarr.json"), ("b", "DIR/v/b.ome.tif"), ("c", "DIR/v/c.zarr/zarr.json")];
    assert_eq!(found, expected.map(|(name, path)| (name, path.to_owned())));
    assert_eq!((volumes.block_px, volumes.channels), ([Some(256), None, Some(8)], Some(vec![2, 0])));
    assert!(study.tiles.is_empty() && study.slides.is_none());
    let refused = |input: &str, message: &str| {
        let error = folder.example(&[(TILES, input)]).expect_err(input).to_string();
        assert_eq!(folder.shown(&error), format!("DIR/study.toml: input.{message}"));
    };
    let image = "images = [\"v/b.ome.tif\"]\n";
    refused(
        "tiles = [\"v/d.txt\"]\nchannels = [0]",
        "channels: allowed only in a study of images; \"images\" is missing",
    );
    refused(
        &format!("{image}tiles = [\"v/d.txt\"]"),
        "images: the study has tiles as well; give tiles, slides or images",
    );
    refused(&format!("{image}partition = {{ t = 2 }}"), "partition.t: 2 is not allowed; allowed: 1 to 1");
    refused(&format!("{image}partition = {{ x = 0 }}"), "partition.x: 0 is not allowed; allowed: 1 to 65536");
    refused(&format!("{image}partition = {{ c = 1 }}"), "partition.c: unknown; known are x, y, z, t");
    refused(
        &format!("{image}channels = []"),
        "channels: an empty list is not allowed; allowed: one or more channels; all without the key",
    );
    refused(
        &format!("{image}channels = [-1]"),
        "channels: -1 has the wrong type; allowed: a list of channels, from 0",
    );
    refused(&format!("{image}halo = 8"), "halo: allowed only in a study of slides; \"slides\" is missing");
    refused(
        "images = [\"v\"]",
        "images: DIR/v: a folder without zarr.json; OME-Zarr folders, OME-TIFF files or patterns are allowed",
    );
    let error =
        folder.example(&[(TILES, image), (DEFAULTS, "reference = \"v\"")]).expect_err("a folder").to_string();
    let message = "DIR/study.toml: input.reference: a folder is not allowed; allowed: \"defaults\" in a study of images";
    assert_eq!(folder.shown(&error), message);
}
