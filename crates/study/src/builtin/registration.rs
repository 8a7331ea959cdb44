//! Coarse-to-fine registration of two generated volumes: the kind of application that paper 004 reuses, with iterations and
//! branches. The example `examples/registration` has its workflow.
//!
//! A tile is the seed of a *fixed* volume of blobs. The *moving* volume is the same under a known affine transform, which the
//! registration has to find, resolution by resolution. A volume has `n` voxels along each side, where `n` is the largest
//! multiple of 16 with at most as many voxels as the tile has pixels, so the tile's size bounds memory and time.
//! Positions are relative to the side: −0.5 to 0.5 along each axis, with the center of the volume at 0.

mod alignment;
mod phantom;
mod volume;

use alignment::{Affine, Model, Step, displacement_voxels, step};
use phantom::Phantom;
use pleach_regions::{DataRegion, DenseArray, ElementType, Table};
use pleach_workflow::{Accepts, Argument, Operation, OperationError, Port, Registry, Value};
use volume::Volume;

const FIXED: Port = Port { name: "fixed", element: ElementType::ArrayF32 };
const MOVING: Port = Port { name: "moving", element: ElementType::ArrayF32 };
const TRANSFORM: Port = Port { name: "transform", element: ElementType::ArrayF64 };

/// Adds the operations of registrations.
pub(super) fn register(registry: Registry) -> Registry {
    let translate = Refine { name: "registration.translate", model: Model::Translation };
    let deform = Refine { name: "registration.deform", model: Model::Affine };
    registry.with(Volumes).with(Reduce).with(Center).with(translate).with(deform).with(Assess)
}

fn library(cause: impl std::error::Error + Send + Sync + 'static) -> OperationError {
    OperationError::Library { library: "registration", cause: Box::new(cause) }
}

fn volume_of(region: &DataRegion) -> Result<Volume<'_>, OperationError> {
    let array = region.array(ElementType::ArrayF32)?;
    Volume::of(array).map_err(library)
}

fn transform_of(region: &DataRegion) -> Result<Affine, OperationError> {
    let samples = region.array(ElementType::ArrayF64)?.samples::<f64>().map_err(library)?;
    let numbers = <[f64; 12]>::try_from(samples);
    Ok(Affine(numbers.map_err(library)?))
}

fn stored(transform: &Affine) -> Result<DataRegion, OperationError> {
    let array = DenseArray::new(&[12], 1, transform.0.to_vec().into());
    Ok(DataRegion::Array(array.map_err(library)?))
}

/// Generates the two volumes of a tile, and the transform between them.
struct Volumes;

impl Operation for Volumes {
    fn name(&self) -> &'static str {
        "registration.volumes"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &[Port { name: "image", element: ElementType::Bgr8 }]
    }

    fn outputs(&self) -> &[Port] {
        &[FIXED, MOVING, Port { name: "truth", element: ElementType::ArrayF64 }]
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 4e-7
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        2 * ElementType::ArrayF32.bytes(pixels) + ElementType::ArrayF64.bytes(12)
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let image = inputs[0].raster(ElementType::Bgr8)?;
        let phantom = Phantom::from_pixels(image.data());
        let side = volume::side_for(image.pixels());
        let truth = phantom.transform();
        let fixed = Volume::sampled(side, |position| phantom.density(position));
        let moving = Volume::sampled(side, |position| phantom.density(truth.apply(position)));
        Ok(vec![fixed.map_err(library)?, moving.map_err(library)?, stored(&truth)?])
    }
}

/// Halves the resolution of both volumes.
struct Reduce;

impl Operation for Reduce {
    fn name(&self) -> &'static str {
        "registration.reduce"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &[FIXED, MOVING]
    }

    fn outputs(&self) -> &[Port] {
        &[FIXED, MOVING]
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 4e-9
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        2 * ElementType::ArrayF32.bytes(pixels.div_ceil(8))
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        inputs.iter().map(|input| volume_of(input)?.halved().map_err(library)).collect()
    }
}

/// Starts with the translation between the centers of gravity.
struct Center;

impl Operation for Center {
    fn name(&self) -> &'static str {
        "registration.center"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &[FIXED, MOVING]
    }

    fn outputs(&self) -> &[Port] {
        &[TRANSFORM]
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 4e-9
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        ElementType::ArrayF64.bytes(12)
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let (fixed, moving) = (volume_of(inputs[0])?.center(), volume_of(inputs[1])?.center());
        let shift = [0, 1, 2].map(|axis| fixed[axis] - moving[axis]);
        Ok(vec![stored(&Affine::translation(shift))?])
    }
}

const DAMPING: [Argument; 1] =
    [Argument { name: "damping", accepts: Accepts::Reals { low: 0.0, high: 100.0 } }];

/// Improves a transform by one step of least squares.
struct Refine {
    name: &'static str,
    model: Model,
}

impl Operation for Refine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &DAMPING
    }

    fn inputs(&self) -> &[Port] {
        &[FIXED, MOVING, TRANSFORM]
    }

    fn outputs(&self) -> &[Port] {
        const OUTPUTS: [Port; 3] = [
            TRANSFORM,
            Port { name: "error", element: ElementType::Scalar },
            Port { name: "change", element: ElementType::Scalar },
        ];
        &OUTPUTS
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 8e-8
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        ElementType::ArrayF64.bytes(12) + 2 * ElementType::Scalar.bytes(1)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let (fixed, moving) = (volume_of(inputs[0])?, volume_of(inputs[1])?);
        let before = transform_of(inputs[2])?;
        let Step { transform, error, change_voxels } =
            step(&fixed, &moving, &before, self.model, arguments[0].as_f64());
        Ok(vec![stored(&transform)?, DataRegion::Scalar(error), DataRegion::Scalar(change_voxels)])
    }
}

/// Compares a transform with the known one.
struct Assess;

impl Operation for Assess {
    fn name(&self) -> &'static str {
        "registration.assess"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        const INPUTS: [Port; 3] = [TRANSFORM, Port { name: "truth", element: ElementType::ArrayF64 }, MOVING];
        &INPUTS
    }

    fn outputs(&self) -> &[Port] {
        &[Port { name: "accuracy", element: ElementType::Table }]
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        1e-5
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let (found, truth) = (transform_of(inputs[0])?, transform_of(inputs[1])?);
        let voxels = displacement_voxels(&found, &truth, volume_of(inputs[2])?.side());
        Ok(vec![DataRegion::Table(Table::new([("displacement", voxels)]))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_pathology::tissue;

    fn value(number: f64) -> Value {
        Value::from_f64(number, pleach_workflow::ValueType::Real).unwrap()
    }

    /// Five levels, each with a few steps, find the transform to a tenth of a voxel.
    #[test]
    fn steps_from_coarse_to_fine_find_the_known_transform() {
        let image = DataRegion::Bgr8(tissue::generate(1, 0, 192).unwrap().image);
        let made = Volumes.run(&[&image], &[]).unwrap();
        let (fixed, moving, truth) = (&made[0], &made[1], &made[2]);
        assert_eq!(volume_of(fixed).unwrap().side(), 32);
        let mut levels = vec![vec![fixed.clone(), moving.clone()]];
        for level in 0..3 {
            let finer: Vec<&DataRegion> = levels[level].iter().collect();
            levels.push(Reduce.run(&finer, &[]).unwrap());
        }
        let coarsest: Vec<&DataRegion> = levels[3].iter().collect();
        let mut transform = Center.run(&coarsest, &[]).unwrap().remove(0);
        let refine = |model, level: &[DataRegion], transform: &DataRegion| {
            let refine = Refine { name: "", model };
            refine.run(&[&level[0], &level[1], transform], &[value(0.01)]).unwrap()
        };
        let mut errors = Vec::new();
        for level in levels.iter().rev() {
            for model in [Model::Translation, Model::Translation, Model::Affine, Model::Affine, Model::Affine]
            {
                let mut made = refine(model, level, &transform);
                let DataRegion::Scalar(error) = made[1] else { panic!("a scalar") };
                errors.push(error);
                transform = made.remove(0);
            }
        }
        assert!(errors.last().unwrap() < &(errors[0] / 50.0), "{errors:?}");
        let table = Assess.run(&[&transform, truth, moving], &[]).unwrap();
        let displacement = table[0].table().unwrap().get("displacement").unwrap();
        assert!(displacement < 0.1, "{displacement} voxels");
    }

    #[test]
    fn regions_of_other_shapes_are_refused() {
        let flat = DataRegion::Array(DenseArray::new(&[4, 4], 1, vec![0_f32; 16].into()).unwrap());
        let error = Reduce.run(&[&flat, &flat], &[]).unwrap_err().to_string();
        assert_eq!(error, "registration: sides [4, 4] are no volume; three equal sides are allowed");
        let short = DataRegion::Array(DenseArray::new(&[3], 1, vec![0_f64; 3].into()).unwrap());
        assert!(Assess.run(&[&short, &short, &flat], &[]).is_err());
    }
}
