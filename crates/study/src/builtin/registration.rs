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
use pleach_workflow::{Accepts, Argument, DeclaredOperation, OperationError, Port, Registry, Value};
use volume::Volume;

const FIXED: Port = Port { name: "fixed", element: ElementType::ArrayF32 };
const MOVING: Port = Port { name: "moving", element: ElementType::ArrayF32 };
const TRANSFORM: Port = Port { name: "transform", element: ElementType::ArrayF64 };

/// Adds the operations of registrations.
pub(super) fn register(registry: Registry) -> Registry {
    registry.with(VOLUMES).with(REDUCE).with(CENTER).with(TRANSLATE).with(DEFORM).with(ASSESS)
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

/// Outputs of an operation.
type Outputs = Result<Vec<DataRegion>, OperationError>;

/// Generates the two volumes of a tile, and the transform between them.
const VOLUMES: DeclaredOperation = DeclaredOperation {
    name: "registration.volumes",
    version: 1,
    arguments: &[],
    inputs: &[Port { name: "image", element: ElementType::Bgr8 }],
    outputs: &[FIXED, MOVING, Port { name: "truth", element: ElementType::ArrayF64 }],
    cost_seconds: |pixels| pixels as f64 * 4e-7,
    memory_bytes: |pixels| 2 * ElementType::ArrayF32.bytes(pixels) + ElementType::ArrayF64.bytes(12),
    run: |inputs, _| {
        let image = inputs[0].raster(ElementType::Bgr8)?;
        let phantom = Phantom::from_pixels(image.data());
        let side = volume::side_for(image.pixels());
        let truth = phantom.transform();
        let fixed = Volume::sampled(side, |position| phantom.density(position));
        let moving = Volume::sampled(side, |position| phantom.density(truth.apply(position)));
        Ok(vec![fixed.map_err(library)?, moving.map_err(library)?, stored(&truth)?])
    },
};

/// Halves the resolution of both volumes.
const REDUCE: DeclaredOperation = DeclaredOperation {
    name: "registration.reduce",
    version: 1,
    arguments: &[],
    inputs: &[FIXED, MOVING],
    outputs: &[FIXED, MOVING],
    cost_seconds: |pixels| pixels as f64 * 4e-9,
    memory_bytes: |pixels| 2 * ElementType::ArrayF32.bytes(pixels.div_ceil(8)),
    run: |inputs, _| inputs.iter().map(|input| volume_of(input)?.halved().map_err(library)).collect(),
};

/// Starts with the translation between the centers of gravity.
const CENTER: DeclaredOperation = DeclaredOperation {
    name: "registration.center",
    version: 1,
    arguments: &[],
    inputs: &[FIXED, MOVING],
    outputs: &[TRANSFORM],
    cost_seconds: |pixels| pixels as f64 * 4e-9,
    memory_bytes: |_| ElementType::ArrayF64.bytes(12),
    run: |inputs, _| {
        let (fixed, moving) = (volume_of(inputs[0])?.center(), volume_of(inputs[1])?.center());
        let shift = [0, 1, 2].map(|axis| fixed[axis] - moving[axis]);
        Ok(vec![stored(&Affine::translation(shift))?])
    },
};

/// Improves a translation by one step of least squares.
const TRANSLATE: DeclaredOperation = DeclaredOperation {
    name: "registration.translate",
    version: 1,
    arguments: &[Argument { name: "damping", accepts: Accepts::Reals { low: 0.0, high: 100.0 } }],
    inputs: &[FIXED, MOVING, TRANSFORM],
    outputs: &[
        TRANSFORM,
        Port { name: "error", element: ElementType::Scalar },
        Port { name: "change", element: ElementType::Scalar },
    ],
    cost_seconds: |pixels| pixels as f64 * 8e-8,
    memory_bytes: |_| ElementType::ArrayF64.bytes(12) + 2 * ElementType::Scalar.bytes(1),
    run: |inputs, arguments| refine(Model::Translation, inputs, arguments),
};

/// As [`TRANSLATE`], for all twelve numbers of an affine transform.
const DEFORM: DeclaredOperation = DeclaredOperation {
    name: "registration.deform",
    run: |inputs, arguments| refine(Model::Affine, inputs, arguments),
    ..TRANSLATE
};

fn refine(model: Model, inputs: &[&DataRegion], arguments: &[Value]) -> Outputs {
    let (fixed, moving) = (volume_of(inputs[0])?, volume_of(inputs[1])?);
    let before = transform_of(inputs[2])?;
    let Step { transform, error, change_voxels } =
        step(&fixed, &moving, &before, model, arguments[0].as_f64());
    Ok(vec![stored(&transform)?, DataRegion::Scalar(error), DataRegion::Scalar(change_voxels)])
}

/// Compares a transform with the known one.
const ASSESS: DeclaredOperation = DeclaredOperation {
    name: "registration.assess",
    version: 1,
    arguments: &[],
    inputs: &[TRANSFORM, Port { name: "truth", element: ElementType::ArrayF64 }, MOVING],
    outputs: &[Port { name: "accuracy", element: ElementType::Table }],
    cost_seconds: |_| 1e-5,
    memory_bytes: |pixels| ElementType::Table.bytes(pixels),
    run: |inputs, _| {
        let (found, truth) = (transform_of(inputs[0])?, transform_of(inputs[1])?);
        let voxels = displacement_voxels(&found, &truth, volume_of(inputs[2])?.side());
        Ok(vec![DataRegion::Table(Table::new([("displacement", voxels)]))])
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_pathology::tissue;
    use pleach_workflow::Operation;

    fn value(number: f64) -> Value {
        Value::from_f64(number, pleach_workflow::ValueType::Real).unwrap()
    }

    /// Five levels, each with a few steps, find the transform to a tenth of a voxel.
    #[test]
    fn steps_from_coarse_to_fine_find_the_known_transform() {
        let image = DataRegion::Bgr8(tissue::generate(1, 0, 192).unwrap().image);
        let made = VOLUMES.run(&[&image], &[]).unwrap();
        let (fixed, moving, truth) = (&made[0], &made[1], &made[2]);
        assert_eq!(volume_of(fixed).unwrap().side(), 32);
        let mut levels = vec![vec![fixed.clone(), moving.clone()]];
        for level in 0..3 {
            let finer: Vec<&DataRegion> = levels[level].iter().collect();
            levels.push(REDUCE.run(&finer, &[]).unwrap());
        }
        let coarsest: Vec<&DataRegion> = levels[3].iter().collect();
        let mut transform = CENTER.run(&coarsest, &[]).unwrap().remove(0);
        let refined = |model, level: &[DataRegion], transform: &DataRegion| {
            refine(model, &[&level[0], &level[1], transform], &[value(0.01)]).unwrap()
        };
        let mut errors = Vec::new();
        for level in levels.iter().rev() {
            for model in [Model::Translation, Model::Translation, Model::Affine, Model::Affine, Model::Affine]
            {
                let mut made = refined(model, level, &transform);
                let DataRegion::Scalar(error) = made[1] else { panic!("a scalar") };
                errors.push(error);
                transform = made.remove(0);
            }
        }
        assert!(errors.last().unwrap() < &(errors[0] / 50.0), "{errors:?}");
        let table = ASSESS.run(&[&transform, truth, moving], &[]).unwrap();
        let displacement = table[0].table().unwrap().get("displacement").unwrap();
        assert!(displacement < 0.1, "{displacement} voxels");
    }

    #[test]
    fn regions_of_other_shapes_are_refused() {
        let flat = DataRegion::Array(DenseArray::new(&[4, 4], 1, vec![0_f32; 16].into()).unwrap());
        let error = REDUCE.run(&[&flat, &flat], &[]).unwrap_err().to_string();
        assert_eq!(error, "registration: sides [4, 4] are no volume; three equal sides are allowed");
        let short = DataRegion::Array(DenseArray::new(&[3], 1, vec![0_f64; 3].into()).unwrap());
        assert!(ASSESS.run(&[&short, &short, &flat], &[]).is_err());
    }
}
