//! Stage inputs with bounds: their descriptors, and their expansion for the tiles of slides.

use pleach_regions::{DataRegion, Digest, ElementType, UnitBox};
use pleach_workflow::{
    Argument, InputBounds, InputOrigin, Operation, OperationError, Port, Registry, SlideTile, Slides,
    StudyTile, TaskInput, Tiling, UnitSelector, Units, Value, VolumeBlock, Workflow,
};

/// An operation with one input and one output of given types.
struct Pass(&'static str, [Port; 1], [Port; 1]);

impl Operation for Pass {
    fn name(&self) -> &'static str {
        self.0
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &self.1
    }

    fn outputs(&self) -> &[Port] {
        &self.2
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        0.0
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        0
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        Ok(vec![inputs[0].clone()])
    }
}

fn registry() -> Registry {
    let port = |element| [Port { name: "region", element }];
    Registry::default()
        .with(Pass("image", port(ElementType::Bgr8), port(ElementType::Gray8)))
        .with(Pass("points", port(ElementType::Gray8), port(ElementType::Points)))
        .with(Pass("count", port(ElementType::Points), port(ElementType::Table)))
        .with(Pass("table", port(ElementType::Table), port(ElementType::Table)))
}

/// A stage that runs one operation.
fn stage(name: &str, input: &str, [read, from]: [&str; 2], [written, to]: [&str; 2]) -> String {
    format!(
        r#"{{ "stage": "{name}", "inputs": [{{ "region": "{read}", "type": "{from}"{input} }}],
             "outputs": [{{ "region": "{written}", "type": "{to}" }}],
             "tasks": [{{ "task": "{name}", "operation": "{name}", "version": 1, "reads": ["{read}"], "writes": ["{written}"] }}] }}"#
    )
}

/// Four stages with these bounds.
fn load(bounds: [&str; 4]) -> Result<Workflow, String> {
    let [image, points, count, table] = bounds.map(|bounds| match bounds {
        "" => String::new(),
        bounds => format!(r#", "bounds": {bounds}"#),
    });
    let workflow = r#"{ "workflow": "w", "inputs": [{ "region": "tile", "type": "bgr8" }],
        "stages": [{ "descriptor": "image.json" }, { "descriptor": "points.json" }, { "descriptor": "count.json" },
                   { "descriptor": "table.json" }],
        "response": { "region": "result", "metrics": [{ "metric": "n", "over_tiles": "sum" }] } }"#;
    let files = [
        ("workflow.json", workflow.to_owned()),
        ("image.json", stage("image", &image, ["tile", "bgr8"], ["gray", "gray8"])),
        ("points.json", stage("points", &points, ["gray", "gray8"], ["spots", "points"])),
        ("count.json", stage("count", &count, ["spots", "points"], ["sum", "table"])),
        ("table.json", stage("table", &table, ["sum", "table"], ["result", "table"])),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Workflow::embedded(&files, &registry()).map_err(|error| error.to_string())
}

/// Slides of these columns and rows of tiles of 64 px, the last ones 10 px.
fn tiles(slides: &[(u32, u32)]) -> (Vec<StudyTile>, Slides) {
    let mut tiles = Vec::new();
    for (slide, &(columns, rows)) in slides.iter().enumerate() {
        let side = |at: u32, count: u32| if at + 1 == count && count > 1 { 10 } else { 64 };
        for (x, y) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))) {
            let core = [x * 64, y * 64, side(x, columns), side(y, rows)];
            tiles.push(StudyTile {
                name: format!("{slide}/{x}_{y}"),
                path: format!("{slide}.svs").into(),
                slide: Some(SlideTile { magnification: None, core, window: core }),
                block: None,
                fit: None,
            });
        }
    }
    (
        tiles,
        Slides { files: Vec::new(), magnification: None, tiling: Tiling::Grid(64), halo_px: 0, tissue: None },
    )
}

#[test]
fn bounds_are_checked_where_they_are_written() {
    let refusal = |bounds| load(bounds).unwrap_err();
    assert_eq!(
        refusal(["", "{ \"offset\": { \"x\": 1 } }", "", ""]),
        "points.json#/inputs/0/bounds: region \"gray\": bounds \"offset x+1\" of a region of type gray8; \
         allowed for this type: own, halo, whole"
    );
    assert_eq!(
        refusal(["", "", "", "{ \"halo\": 2 }"]),
        "table.json#/inputs/0/bounds: region \"sum\": bounds \"halo x 2 y 2\" of a region of type table; \
         allowed for this type: own, whole, offset"
    );
    assert_eq!(
        refusal(["", "", "\"whole\"", "\"whole\""]),
        "table.json#/inputs/0/bounds: region \"sum\": bounds \"whole\" of a region of the whole specimen; \
         \"own\" is allowed, as stage \"count\" runs once a specimen"
    );
    assert_eq!(
        refusal(["{ \"halo\": { \"x\": 70000 } }", "", "", ""]),
        "image.json#/inputs/0/bounds: region \"tile\": bounds \"halo x 70000\"; up to 65536 along each axis are allowed"
    );
    for (bounds, found) in [
        ("\"all\"", "all"),
        ("{ \"halo\": { \"w\": 1 } }", "w"),
        ("{ \"halo\": -1 }", "-1"),
        ("3", "expected value"),
    ] {
        let error = refusal([bounds, "", "", ""]);
        assert!(error.starts_with("image.json#/inputs/0/bounds") && error.contains(found), "{error}");
    }
    let plain = load(["", "\"own\"", "{ \"halo\": 0 }", "{ \"offset\": {} }"]).unwrap();
    assert!(!plain.crosses_units());
}

#[test]
fn stages_of_whole_specimens_run_once() {
    let once = |bounds| load(bounds).unwrap().runs_once();
    assert_eq!(once(["", "", "\"whole\"", ""]), [false, false, true, true]);
    assert_eq!(once(["", "{ \"halo\": 1 }", "", "\"whole\""]), [false, false, false, true]);
    assert_eq!(once(["\"whole\"", "", "", ""]), [true; 4]);
}

#[test]
fn inputs_are_expanded_for_the_tiles() {
    let workflow = load(["", "{ \"halo\": 8 }", "\"whole\"", ""]).unwrap();
    let (tiles, slides) = tiles(&[(3, 2), (1, 1)]);
    let units = Units::of(&tiles, Some(&slides));
    let expanded = workflow.expanded(&units, &tiles, Some(&slides)).unwrap();
    assert_eq!(expanded.layouts, [InputBounds::Halo([8, 8, 0]), InputBounds::Whole]);
    assert_eq!(expanded.layout_of(0), None);
    assert_eq!(
        (expanded.layout_of(1), expanded.layout_of(2)),
        (Some(expanded.layouts[0]), Some(InputBounds::Whole))
    );
    assert_eq!(expanded.runs_once(), workflow.runs_once());
    let points = &expanded.stages[1];
    assert_eq!(points.inputs.len(), 9 + 1);
    assert_eq!(points.inputs[9].origin, InputOrigin::Input(1));
    assert!(
        points.inputs[..9].iter().all(|input| input.origin == InputOrigin::Stage { stage: 0, output: 0 })
    );
    let operations: Vec<&str> = points.tasks.iter().map(|task| task.operation.as_str()).collect();
    assert_eq!(operations, ["regions.join-gray8-9", "points", "regions.cut-points"]);
    assert_eq!(points.tasks[1].reads, [TaskInput::Task { task: 0, output: 0 }]);
    assert_eq!((points.outputs[0].task, points.outputs[0].output), (2, 0));
    let count = &expanded.stages[2];
    assert_eq!((count.inputs.len(), count.tasks[0].operation.as_str()), (6 + 1, "regions.join-points-6"));
    assert_eq!(count.tasks.len(), 2, "a whole is not cut");
    // An expanded workflow stays as it is.
    let again = expanded.expanded(&units, &tiles, Some(&slides)).unwrap();
    assert_eq!(format!("{again:?}"), format!("{expanded:?}"));
    // Every registry has the operations.
    let tasks = expanded.stages.iter().flat_map(|stage| &stage.tasks);
    tasks.for_each(|task| {
        let operation = registry().get(&task.operation, task.version).cloned().unwrap();
        assert_eq!(
            (operation.inputs().len(), operation.outputs().len()),
            (task.reads.len(), task.writes.len())
        );
    });
}

#[test]
fn layouts_have_the_boxes_of_neighbors() {
    let (tiles, slides) = tiles(&[(3, 2)]);
    let units = Units::of(&tiles, Some(&slides));
    let flat = |start: [u32; 2], length: [u32; 2]| UnitBox {
        start: [start[0], start[1], 0],
        length: [length[0], length[1], 1],
    };
    let halo = InputBounds::Halo([8, 16, 0]);
    let layout = units.layout(1, halo).unwrap();
    assert_eq!(*layout.own(), flat([64, 0], [64, 64]));
    // Up to 8 px at the left and at the right, nothing above, and the 10 px of the tile below.
    assert_eq!(*layout.window(), flat([56, 0], [80, 74]));
    let present: Vec<bool> = layout.parts().iter().map(Option::is_some).collect();
    assert_eq!(present, [false, false, false, true, true, true, true, true, true]);
    let selectors = units.selectors(halo);
    assert_eq!(selectors[0], UnitSelector::Offset([-1, -1, 0, 0]));
    assert_eq!((units.select(1, selectors[0]), units.select(4, selectors[0])), (1, 0));
    let right = units.layout(2, InputBounds::Offset([1, 0, 0, 0])).unwrap();
    assert_eq!(right.parts(), [None]);
    let wholes: Vec<_> = (0..6).map(|tile| units.layout(tile, InputBounds::Whole).unwrap()).collect();
    assert!(wholes.iter().all(|whole| whole == &wholes[0] && *whole.window() == flat([0, 0], [138, 74])));
    // Without the tile at the right, the window ends there.
    let fewer: Vec<StudyTile> = tiles.iter().filter(|tile| tile.name != "0/2_0").cloned().collect();
    let window = *Units::of(&fewer, Some(&slides)).layout(1, halo).unwrap().window();
    assert_eq!(window, flat([56, 0], [72, 74]));
}

#[test]
fn tiles_without_the_needed_bounds_are_refused() {
    let refusal = |bounds, tiles: &[StudyTile], slides: Option<&Slides>| {
        let units = Units::of(tiles, slides);
        load(bounds).unwrap().expanded(&units, tiles, slides).unwrap_err().to_string()
    };
    let (of_slides, slides) = tiles(&[(3, 1)]);
    let halo = ["", "{ \"halo\": 65 }", "", ""];
    assert_eq!(
        refusal(halo, &of_slides, Some(&slides)),
        "stage points: bounds \"halo x 65 y 65\" reach beyond the neighbors of tile 0/1_0, of 64 px along x; \
         larger tiles are needed"
    );
    assert_eq!(
        refusal(halo, &of_slides, Some(&Slides { halo_px: 4, ..slides.clone() })),
        "input.halo: 4 is not allowed with a workflow whose stages state bounds (stage points); allowed: 0"
    );
    let single: Vec<StudyTile> =
        of_slides.iter().map(|tile| StudyTile { slide: None, ..tile.clone() }).collect();
    assert_eq!(
        refusal(["", "", "\"whole\"", ""], &single, None),
        "stage count reads region spots with bounds \"whole\"; single tiles have no neighbors: \"slides\" or \"images\" are needed"
    );
}

/// Blocks of 8 × 8 × 4 px at these times, two along x and z.
fn blocks(image: &str, times: u32) -> Vec<StudyTile> {
    let mut tiles = Vec::new();
    for t in 0..times {
        for (z, x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let block = VolumeBlock {
                axes: 3,
                cell: [x, 0, z, t],
                start: [8 * x, 0, 4 * z, t],
                length: [8, 8, 4],
                channels: vec![0],
                digest: Digest([0; 32]),
            };
            tiles.push(StudyTile {
                name: format!("{image}/{x}_{z}_{t}"),
                path: image.into(),
                slide: None,
                block: Some(block),
                fit: None,
            });
        }
    }
    tiles
}

#[test]
fn blocks_have_neighbors_in_z_and_time() {
    let tiles = [blocks("a", 3), blocks("b", 1)].concat();
    let units = Units::of(&tiles, None);
    let next = UnitSelector::Offset([0, 0, 0, 1]);
    assert_eq!([units.select(1, next), units.select(5, next)], [5, 9]);
    // The last time of the image: no other image follows.
    assert_eq!([units.select(9, next), units.select(12, next)], [9, 12]);
    assert_eq!(units.layout(9, InputBounds::Offset([0, 0, 0, 1])).unwrap().parts(), [None]);
    let halo = units.layout(1, InputBounds::Halo([2, 2, 3])).unwrap();
    assert_eq!(*halo.window(), UnitBox { start: [6, 0, 0], length: [10, 8, 7] });
    // Along y there is one block, and 3 x 3 are around it along x and z.
    assert_eq!((halo.axes(), halo.parts().len(), halo.parts().iter().flatten().count()), (3, 9, 4));
    let whole = units.layout(2, InputBounds::Whole).unwrap();
    assert_eq!(*whole.window(), UnitBox { start: [0; 3], length: [16, 8, 8] });
    assert_eq!((units.max_units(), whole.parts().iter().flatten().count()), (12, 12));
    assert_eq!(units.first_of_specimen()[11..], [0, 12, 12, 12, 12]);
    let refusal = load(["", "\"whole\"", "", ""]).unwrap().expanded(&units, &tiles, None).unwrap_err();
    let times = "stage points: bounds \"whole\" of region gray, an image, in a specimen of several times; points, polygons, objects and tables are allowed";
    assert_eq!(refusal.to_string(), times);
}
