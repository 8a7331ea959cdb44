//! Tests on the slide of the test data: each nucleus counts once, whatever the tile size.

use super::*;
use crate::builtin;
use crate::single_run::{SingleRun, of_stage};
use pleach_pathology::objects::{ObjectSet, PixelObjects};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the folder of the test data. `None` after a message if it is missing.
pub(super) fn data(test: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("PLEACH_TEST_DATA").map_or_else(default, PathBuf::from);
    if folder.is_dir() {
        return folder.canonicalize().ok();
    }
    println!("SKIPPED {test}: no test data at {}", folder.display());
    None
}

/// Computes the mask of the nuclei workflow on the whole slide, at some parameter values and without
/// normalization.
fn mask(image: Raster, set: &[(&str, i64)]) -> Raster {
    let registry = builtin::registry();
    let workflow = builtin::workflow("nuclei", &registry).unwrap().unwrap();
    let workflow = workflow.without(&["normalize".to_owned()]);
    let value = |parameter: &pleach_workflow::Parameter| {
        let set = set.iter().find(|(name, _)| *name == parameter.name);
        set.map_or(parameter.default, |(_, value)| Value::Integer(*value))
    };
    let values: Vec<Value> = workflow.parameters.iter().map(value).collect();
    let own = workflow.reference.clone().unwrap();
    let tile = Arc::new(DataRegion::Bgr8(image));
    let run = SingleRun {
        workflow: &workflow,
        registry: &registry,
        values: &values,
        tile,
        stain: None,
        reference: None,
    };
    let wanted = [of_stage(&workflow, own.stage, own.output)];
    let region = run.run(&wanted, |_, _| {}).unwrap().remove(0);
    region.raster(ElementType::Mask).unwrap().clone()
}

/// Counts the nuclei of all tiles with the operation that studies run. Each tile sees its window of one mask.
fn counted(mask: &Raster, tile_px: u64, halo_px: u64) -> usize {
    let region = SpatialBounds::of_image(mask.width_px(), mask.height_px(), None);
    let partition = Partition::new(region, &[tile_px; 2], &[halo_px; 2]).unwrap();
    let operation = builtin::registry().get("compare.owned-objects", 1).unwrap().clone();
    let nuclei = |tile: pleach_regions::PartitionTile| {
        let part = SlideTile { magnification: None, core: sides(&tile.core), window: sides(&tile.window) };
        let window = DataRegion::Mask(partition.window_of(tile.index, mask).unwrap().to_raster());
        let core = DataRegion::Table(part.core_table());
        let metrics = operation.run(&[&window, &window, &core], &[]).unwrap().remove(0);
        metrics.table().unwrap().get("nuclei").unwrap() as usize
    };
    partition.tiles().map(nuclei).sum()
}

#[test]
fn nuclei_of_a_slide_count_once_however_it_is_cut() {
    let Some(data) = data("nuclei_of_a_slide_count_once_however_it_is_cut") else { return };
    let slide = Slide::open(&data.join("wsi/CMU-1-Small-Region.svs")).unwrap();
    let scale = slide.scale(None).unwrap();
    let all = pleach_regions::PixelRectangle {
        x_px: 0,
        y_px: 0,
        width_px: scale.width_px,
        height_px: scale.height_px,
    };
    let image = slide.read(&scale, all).unwrap();
    for set in [&[][..], &[("G1", 40), ("G2", 20)]] {
        let mask = mask(image.clone(), set);
        let objects = PixelObjects::of_mask(mask.data(), mask.width_px() as usize);
        let bounds = objects.bounds().into_iter();
        let sides = bounds.flat_map(|bounds| [0, 1].map(|axis| bounds.high[axis] - bounds.low[axis] + 1.0));
        let longest = sides.fold(0.0, f64::max) as u64;
        let by_halo = [0, 16, 32, 64, 151, longest - 1].map(|halo| (halo, counted(&mask, 512, halo)));
        println!("{} nuclei, the longest of {longest} px; by halo: {by_halo:?}", objects.count());
        assert!(by_halo[0].1 > objects.count(), "without a halo those on borders count twice");
        for (halo, count) in by_halo {
            assert!(halo + 1 < longest || count == objects.count(), "halo {halo}");
        }
        assert_eq!(counted(&mask, 300, longest - 1), objects.count());
    }
}
