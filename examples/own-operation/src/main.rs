//! pleach with an operation of its own: `example.dark-fraction` measures the dark fraction of a tile.

use pleach::regions::{DataRegion, ElementType, Table};
use pleach::workflow::{Accepts, Argument, Operation, OperationError, Port, Value};

/// The share of the pixels of a tile with a mean of B, G and R below a threshold.
struct DarkFraction;

impl Operation for DarkFraction {
    fn name(&self) -> &'static str {
        "example.dark-fraction"
    }

    // Raise it whenever the output changes for any input: caches distinguish results by it.
    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[Argument { name: "threshold", accepts: Accepts::Integers { low: 0, high: 255 } }]
    }

    fn inputs(&self) -> &[Port] {
        &[Port { name: "image", element: ElementType::Bgr8 }]
    }

    fn outputs(&self) -> &[Port] {
        &[Port { name: "darkness", element: ElementType::Table }]
    }

    // An estimate for the first plan. Later plans use measured times.
    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 2e-9
    }

    // Outputs and scratch, not inputs: admission control relies on it.
    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let (pixels, _) = inputs[0].raster(ElementType::Bgr8)?.data().as_chunks::<3>();
        let threshold = arguments[0].as_f64();
        let mean = |pixel: &[u8; 3]| pixel.iter().map(|channel| f64::from(*channel)).sum::<f64>() / 3.0;
        let dark = pixels.iter().filter(|pixel| mean(pixel) < threshold).count();
        let fraction = dark as f64 / pixels.len().max(1) as f64;
        Ok(vec![DataRegion::Table(Table::new([("dark-fraction", fraction)]))])
    }
}

fn main() -> std::process::ExitCode {
    pleach::run(&pleach::builtin_operations().with(DarkFraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach::regions::Raster;

    #[test]
    fn black_tile_is_dark() {
        let black = DataRegion::Bgr8(Raster::filled(2, 2, 3, 0).expect("a tile"));
        let outputs = DarkFraction.run(&[&black], &[Value::Integer(128)]).expect("a table");
        assert_eq!(outputs[0].table().expect("a table").get("dark-fraction"), Some(1.0));
    }
}
