//! The operations `features.*`: the acceptance rows of the reference application, a slow counterpart, laws, and agreement with
//! scikit-image.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

#[path = "../../../../tests/support/data.rs"]
mod data;
#[path = "../support/operations.rs"]
mod operations;

mod acceptance;
mod agreement;
mod laws;
mod slow;

use operations::run;
use pleach_regions::{AnnotatedObjects, DataRegion, LabelMap, Raster, Table};
use std::collections::BTreeMap;

/// Channels of a plane.
const CHANNELS: usize = 4;

/// A tile, its objects, and all regions that the operations make of them, by name.
struct Features {
    width: usize,
    labels: Vec<u32>,
    regions: BTreeMap<&'static str, DataRegion>,
}

/// Operation, inputs, outputs, in the order of the workflow.
type Step = (&'static str, &'static [&'static str], &'static str);

const STEPS: [Step; 11] = [
    ("channels", &["tile"], "channels"),
    ("gradient", &["channels"], "gradient"),
    ("sobel", &["channels"], "sobel"),
    ("canny", &["channels"], "edges"),
    ("labels", &["mask"], "labels"),
    ("shape", &["labels"], "shapes"),
    ("rings", &["labels"], "rings"),
    ("nucleus-statistics", &["labels", "channels", "gradient", "sobel", "edges"], "nucleus_statistics"),
    ("ring-statistics", &["rings", "channels", "gradient", "sobel", "edges"], "ring_statistics"),
    ("collect", &["shapes", "nucleus_statistics", "ring_statistics", "texture"], "nuclei"),
    ("summary", &["nuclei"], "summary"),
];

impl Features {
    /// Computes the features of the objects of a mask or label map.
    fn of(tile: DataRegion, objects: DataRegion, levels: usize) -> Self {
        let width = tile.size_px().unwrap().0 as usize;
        let mut regions = BTreeMap::from([("tile", tile), ("mask", objects)]);
        for (operation, reads, writes) in STEPS {
            if operation == "collect" {
                let texture =
                    run("features.texture", &[&regions["labels"], &regions["channels"]], &[levels as f64]);
                regions.insert("texture", texture.unwrap().remove(0));
            }
            let inputs: Vec<&DataRegion> = reads.iter().map(|name| &regions[name]).collect();
            let output = run(&format!("features.{operation}"), &inputs, &[]).unwrap().remove(0);
            regions.insert(writes, output);
        }
        let DataRegion::Labels(map) = &regions["labels"] else { panic!("labels") };
        let labels = map.labels().to_vec();
        Self { width, labels, regions }
    }

    fn objects(&self) -> &AnnotatedObjects {
        let DataRegion::Objects(objects) = &self.regions["nuclei"] else { panic!("objects") };
        objects
    }

    /// Returns the number of one object in a column.
    fn number(&self, object: usize, column: &str) -> f64 {
        let objects = self.objects();
        let at = objects.columns().iter().position(|name| name == column);
        let at = at.unwrap_or_else(|| panic!("no column {column}"));
        objects.numbers()[object * objects.columns().len() + at]
    }

    /// Returns the index of the object with this label.
    fn of_label(&self, label: u32) -> usize {
        (0..self.objects().len()).find(|object| self.number(*object, "label") == f64::from(label)).unwrap()
    }

    fn summary(&self) -> &Table {
        self.regions["summary"].table().unwrap()
    }

    /// Returns the bytes of a plane.
    fn plane(&self, name: &str) -> &[u8] {
        match &self.regions[name] {
            DataRegion::Array(array) => array.samples().unwrap(),
            other => other.raster(other.element()).unwrap().data(),
        }
    }
}

fn bgr(width: usize, pixels: Vec<u8>) -> DataRegion {
    let height = pixels.len() / 3 / width;
    DataRegion::Bgr8(Raster::new(width as u32, height as u32, 3, pixels).unwrap())
}

fn label_map(width: usize, labels: Vec<u32>) -> DataRegion {
    let height = labels.len() / width;
    DataRegion::Labels(LabelMap::new(width as u32, height as u32, labels).unwrap())
}
