//! Reals of images: the input of all other operations.

use super::{bytes, fail, seconds, small};
use pleach_regions::{DataRegion, DenseArray, ElementType, Sample};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, OperationError, Port, Value};

type Run = fn(&[&DataRegion], &[Value]) -> Result<Vec<DataRegion>, OperationError>;

const REALS: &[Port] = &[Port { name: "reals", element: ElementType::ArrayF32 }];

/// Index of the channel.
const CHANNEL: &[Argument] =
    &[Argument { name: "channel", accepts: Accepts::Integers { low: 0, high: 255 } }];

/// Mean of the colors of an image, per pixel. Bounds: own.
pub(super) const OF_IMAGE: DeclaredOperation = DeclaredOperation {
    name: "volume.reals-of-image",
    version: 1,
    arguments: &[],
    inputs: &[Port { name: "image", element: ElementType::Bgr8 }],
    outputs: REALS,
    cost_seconds: |pixels| seconds(2.0, pixels),
    memory_bytes: |pixels| bytes(4, pixels),
    run: |inputs, _| {
        let image = inputs[0].raster(ElementType::Bgr8)?;
        let channels = usize::from(image.channels());
        let mean = |pixel: &[u8]| pixel.iter().copied().map(f32::from).sum::<f32>() / channels as f32;
        let values: Vec<f32> = image.data().chunks_exact(channels).map(mean).collect();
        let array = DenseArray::new(&[image.width_px(), image.height_px()], 1, values.into());
        Ok(vec![DataRegion::Array(array.map_err(fail)?)])
    },
};

/// One channel of an array of 8 bits. Bounds: own.
pub(super) const OF_U8: DeclaredOperation = of_array(
    "volume.reals-of-u8",
    &[Port { name: "volume", element: ElementType::ArrayU8 }],
    |inputs, arguments| channel::<u8>(inputs[0].array(ElementType::ArrayU8)?, arguments),
);

/// One channel of an array of 16 bits. Bounds: own.
pub(super) const OF_U16: DeclaredOperation = of_array(
    "volume.reals-of-u16",
    &[Port { name: "volume", element: ElementType::ArrayU16 }],
    |inputs, arguments| channel::<u16>(inputs[0].array(ElementType::ArrayU16)?, arguments),
);

/// One channel of an array of 32-bit reals. Bounds: own.
pub(super) const OF_F32: DeclaredOperation = of_array(
    "volume.reals-of-f32",
    &[Port { name: "volume", element: ElementType::ArrayF32 }],
    |inputs, arguments| channel::<f32>(inputs[0].array(ElementType::ArrayF32)?, arguments),
);

/// Declares the operation on an array of one element type.
const fn of_array(name: &'static str, inputs: &'static [Port], run: Run) -> DeclaredOperation {
    DeclaredOperation {
        name,
        version: 1,
        arguments: CHANNEL,
        inputs,
        outputs: REALS,
        cost_seconds: |pixels| seconds(2.0, pixels),
        memory_bytes: |pixels| bytes(4, pixels),
        run,
    }
}

fn channel<T: Sample + Into<f32>>(
    array: &DenseArray,
    arguments: &[Value],
) -> Result<Vec<DataRegion>, OperationError> {
    let (channel, channels) = (small(arguments[0]), usize::from(array.channels()));
    if channel >= channels {
        let cause = format!("channel {channel}; 0 to {} are allowed", channels - 1);
        return Err(OperationError::Library { library: "volumes", cause: cause.into() });
    }
    let samples = array.samples::<T>().map_err(fail)?;
    let values: Vec<f32> =
        samples.iter().skip(channel).step_by(channels).map(|value| (*value).into()).collect();
    let array = DenseArray::new(array.extents(), 1, values.into());
    Ok(vec![DataRegion::Array(array.map_err(fail)?)])
}
