//! Level-set segmentation of annotated tissue, beside the figures of a prototype in NumPy: Otsu's levels exactly, Dice of
//! 14 tiles at the defaults, and Dice as one parameter moves at a time.
//!
//! Tests of all tiles and all values run if `PLEACH_LONG_TESTS` is set (`.ci/long`). The others take 2 tiles.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

#[path = "../../../tests/support/data.rs"]
mod data;

use data::data;
use pleach_pathology::kernels::otsu::otsu;
use pleach_pathology::{image_io, registry};
use pleach_regions::DataRegion;
use pleach_workflow::{Registry, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Otsu's level of each tile of `annotated/gbm40`, and Dice at the defaults.
const TILES: [(u8, f64); 14] = [
    (105, 0.866),
    (114, 0.875),
    (110, 0.871),
    (89, 0.877),
    (91, 0.865),
    (80, 0.876),
    (95, 0.872),
    (85, 0.872),
    (107, 0.898),
    (92, 0.871),
    (94, 0.882),
    (99, 0.877),
    (88, 0.878),
    (62, 0.845),
];

/// Allowed deviation from the prototype.
const TOLERANCE: f64 = 0.005;

/// Parameters of the six tasks, at their defaults.
#[derive(Clone, Copy)]
struct Parameters {
    otsu_ratio: f64,
    curvature_weight: f64,
    iterations: f64,
    size_thld: f64,
    declump: f64,
}

const DEFAULTS: Parameters =
    Parameters { otsu_ratio: 1.0, curvature_weight: 0.8, iterations: 100.0, size_thld: 3.0, declump: 1.0 };

/// Base of the values that move one at a time.
const BASE: Parameters = Parameters { declump: 0.0, ..DEFAULTS };

fn run(registry: &Registry, name: &str, inputs: &[&DataRegion], arguments: &[f64]) -> Vec<DataRegion> {
    let operation = registry.get(name, 1).unwrap();
    let typed = operation.arguments().iter().zip(arguments);
    let typed =
        typed.map(|(argument, number)| Value::from_f64(*number, argument.accepts.value_type()).unwrap());
    operation.run(inputs, &typed.collect::<Vec<_>>()).unwrap()
}

/// A tile with the outputs that no parameter changes.
struct Tile {
    registry: Registry,
    normalized: DataRegion,
    hematoxylin: DataRegion,
    tissue: DataRegion,
    reference: DataRegion,
}

impl Tile {
    /// Reads tile `number`, from 1.
    fn read(folder: &Path, number: usize) -> Self {
        let registry = registry();
        let extension = if number <= 2 { "tif" } else { "png" };
        let tile = image_io::read_bgr(&folder.join(format!("gbm40_{number:02}.{extension}"))).unwrap();
        let reference = image_io::read_mask(&folder.join(format!("gbm40_{number:02}_labels.png"))).unwrap();
        let normalized = run(&registry, "nuclei.normalize", &[&tile], &[]).remove(0);
        let mut l1 = run(&registry, "levelset.hematoxylin", &[&tile, &normalized], &[]);
        let (tissue, hematoxylin) = (l1.remove(1), l1.remove(0));
        Self { registry, normalized, hematoxylin, tissue, reference }
    }

    fn mask(&self, p: Parameters) -> DataRegion {
        let run = |name, inputs: &[&DataRegion], arguments: &[f64]| {
            run(&self.registry, name, inputs, arguments).remove(0)
        };
        let (hematoxylin, weight, mpp) = (&self.hematoxylin, p.curvature_weight, 0.25);
        let l2 = run("levelset.threshold", &[hematoxylin, &self.tissue], &[p.otsu_ratio]);
        let l3 = run("levelset.contour", &[hematoxylin, &l2], &[weight, p.iterations]);
        let l4 = run("levelset.min-size", &[&l3], &[p.size_thld, mpp]);
        let l5 = run("levelset.declump", &[&l4, &self.normalized], &[p.declump, 200.0, 20.0, mpp]);
        run("levelset.refine", &[hematoxylin, &l5], &[weight])
    }

    fn dice(&self, p: Parameters) -> f64 {
        let metrics = run(&self.registry, "compare.masks", &[&self.mask(p), &self.reference], &[]);
        metrics[0].table().unwrap().get("dice").unwrap()
    }
}

/// Returns the folder of tiles, and whether all of them are asked for.
fn folder(test: &str) -> Option<(PathBuf, bool)> {
    let folder = data(test)?.join("annotated/gbm40");
    Some((folder, std::env::var_os("PLEACH_LONG_TESTS").is_some()))
}

/// Computes `of` for each item on all processors, in order.
fn parallel<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return found };
            found.push((index, of(item)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, Into::into).min(items.len());
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, result)| result).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn otsu_levels_equal_the_prototype_exactly() {
    let Some((folder, _)) = folder("otsu_levels_equal_the_prototype_exactly") else { return };
    let numbers: Vec<usize> = (1..=TILES.len()).collect();
    let levels = parallel(&numbers, |number| {
        let hematoxylin = Tile::read(&folder, *number).hematoxylin;
        otsu(hematoxylin.raster(hematoxylin.element()).unwrap().data())
    });
    assert_eq!(levels, TILES.map(|(level, _)| Some(level)));
}

#[test]
fn dice_at_the_defaults_is_within_tolerance_of_the_prototype() {
    let name = "dice_at_the_defaults_is_within_tolerance_of_the_prototype";
    let Some((folder, long)) = folder(name) else { return };
    let numbers: Vec<usize> = if long { (1..=TILES.len()).collect() } else { vec![9, 14] };
    let dice = parallel(&numbers, |number| {
        let tile = Tile::read(&folder, *number);
        (tile.dice(DEFAULTS), if long { tile.dice(BASE) } else { 0.0 })
    });
    let wrong: Vec<String> = numbers
        .iter()
        .zip(&dice)
        .filter(|(number, (found, _))| (found - TILES[**number - 1].1).abs() > TOLERANCE + 0.0005)
        .map(|(number, (found, _))| format!("tile {number}: {found:.4}, expected {}", TILES[number - 1].1))
        .collect();
    println!("{:.3?}", dice.iter().map(|(found, _)| found).collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{wrong:?}");
    if long {
        let found = [
            mean(&dice.iter().map(|d| d.0).collect::<Vec<_>>()),
            mean(&dice.iter().map(|d| d.1).collect::<Vec<_>>()),
        ];
        println!("mean Dice of 14 tiles: {:.4}, without declumping {:.4}", found[0], found[1]);
        assert!((found[0] - 0.8734).abs() < 0.002 && (found[1] - 0.8701).abs() < 0.002, "{found:?}");
    }
}

/// Values of one parameter, and mean Dice of the tiles 1, 4, 8 and 14.
type Moves = (fn(&mut Parameters) -> &mut f64, &'static [(f64, f64)]);

const ONE_AT_A_TIME: [Moves; 4] = [
    (
        |p| &mut p.otsu_ratio,
        &[(0.5, 0.792), (0.7, 0.864), (0.8, 0.877), (0.9, 0.874), (1.1, 0.829), (1.3, 0.705), (1.5, 0.488)],
    ),
    (|p| &mut p.curvature_weight, &[(0.0, 0.745), (0.4, 0.843), (1.0, 0.860)]),
    (|p| &mut p.size_thld, &[(1.0, 0.858), (10.0, 0.862), (20.0, 0.857)]),
    (|p| &mut p.iterations, &[(5.0, 0.838), (30.0, 0.848), (150.0, 0.861)]),
];

#[test]
fn dice_follows_each_parameter_as_in_the_prototype() {
    let name = "dice_follows_each_parameter_as_in_the_prototype";
    let Some((folder, long)) = folder(name) else { return };
    let tiles = parallel(&[1, 4, 8, 14], |number| Tile::read(&folder, *number));
    let mut cases = vec![(BASE, 0.859)];
    for (place, (parameter, values)) in ONE_AT_A_TIME.iter().enumerate() {
        // The first value of the first two parameters moves Dice the most.
        let values = if long { *values } else { &values[..usize::from(place < 2)] };
        cases.extend(values.iter().map(|(value, dice)| {
            let mut moved = BASE;
            *parameter(&mut moved) = *value;
            (moved, *dice)
        }));
    }
    let found = parallel(&cases, |(p, _)| mean(&tiles.iter().map(|tile| tile.dice(*p)).collect::<Vec<_>>()));
    let wrong: Vec<String> = cases
        .iter()
        .zip(&found)
        .inspect(|((p, expected), found)| {
            let Parameters { otsu_ratio, curvature_weight, iterations, size_thld, .. } = p;
            println!("otsuRatio {otsu_ratio} curvatureWeight {curvature_weight} iterations {iterations} sizeThld {size_thld}: {found:.4} ({expected})");
        })
        .filter(|((_, expected), found)| (*found - expected).abs() > TOLERANCE + 0.0005)
        .map(|((_, expected), found)| format!("{found:.4}, expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
