//! Operations as a declaration and a function, with checked inputs and arguments.
//!
//! [`TypedOperation`] checks every call against its declaration. The functions can therefore rely on the declared
//! number of inputs, their element types, one size for all images, and the declared number of accepted arguments.

use crate::kernels::Connectivity;
use crate::objects::PixelObjects;
use pleach_accelerate::kernels::{self, ImageSize};
use pleach_accelerate::{Buffer, Device, DeviceError, DeviceOutput, OpenClDevice, RasterForm, Task};
use pleach_regions::{
    AnnotatedObjects, DataRegion, DenseArray, ElementType, LabelMap, PartError, PixelRectangle, RaggedArray,
    Raster, ShapeError, Table, WrongElement,
};
use pleach_workflow::{
    Accelerated, AcceleratedError, Accepts, Argument, Operation, OperationError, Port, Value,
    check_arguments, check_count, core_of,
};

/// Accepts any 8-bit gray level.
pub(crate) const BYTE: Accepts = Accepts::Integers { low: 0, high: 255 };

/// Accepts any area in pixels that a tile can have.
pub(crate) const AREA: Accepts = Accepts::Integers { low: 0, high: i32::MAX as i64 };

/// Accepts a ratio of two gray levels. The largest possible ratio is 255 / 1.1920929e-7. Values above 1,000,000 have no
/// use.
pub(crate) const RATIO: Accepts = Accepts::Reals { low: 0.0, high: 1e6 };

/// Accepts the two connectivities of a square grid. The original program treated any other number as one of these by
/// accident.
pub(crate) const CONNECTIVITY: Accepts = Accepts::OneOf(&[4, 8]);

/// Declares an argument.
pub(crate) const fn argument(name: &'static str, accepts: Accepts) -> Argument {
    Argument { name, accepts }
}

/// Declares an input or output.
pub(crate) const fn port(name: &'static str, element: ElementType) -> Port {
    Port { name, element }
}

/// An operation that consists of a declaration and a function.
pub(crate) struct TypedOperation {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) arguments: &'static [Argument],
    pub(crate) inputs: &'static [Port],
    pub(crate) outputs: &'static [Port],
    /// Cost: the yardstick times of `benches/yardstick.rs` (4096 × 4096 px, default parameters, recycled blocks),
    /// scaled to a yardstick of 1.74 s, as on one core of a 2.6 GHz Xeon.
    pub(crate) nanoseconds_a_pixel: f64,
    /// Outputs and scratch alive at the same time, per pixel: measured on tissue (`tests/memory.rs`), rounded up a
    /// little.
    pub(crate) bytes_a_pixel: f64,
    /// Outputs and scratch whose size does not depend on the image.
    pub(crate) fixed_bytes: u64,
    /// The variant of this operation that measures within the core of a window. The variant of a variant measures within
    /// regions of interest: on the pixels of a mask.
    pub(crate) within_core: Option<&'static TypedOperation>,
    /// The variant for accelerators, with equal bits.
    pub(crate) device: Option<DeviceVariant>,
    pub(crate) run: fn(&Inputs<'_>, &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError>,
}

/// The variant of an operation for OpenCL devices.
pub(crate) struct DeviceVariant {
    /// Declared gain. Without a measured one it is that of a like operation in the published runtime system Region Templates
    /// (`runtime/examples/PipelineTasks`: milliseconds on a core / on an accelerator).
    pub(crate) gain: f64,
    /// Buffers alive at the same time, per pixel, inputs included.
    pub(crate) bytes_a_pixel: f64,
    /// Buffers whose size does not depend on the image.
    pub(crate) fixed_bytes: u64,
    pub(crate) run:
        fn(&mut Task<'_>, &Inputs<'_>, &Arguments<'_>) -> Result<Vec<DeviceOutput>, AcceleratedError>,
}

/// An operation as its variant for accelerators.
impl Accelerated for TypedOperation {
    fn gain(&self) -> f64 {
        self.device.as_ref().map_or(1.0, |device| device.gain)
    }

    fn device_bytes(&self, pixels: u64) -> u64 {
        self.device.as_ref().map_or(0, |device| bytes(pixels, device.bytes_a_pixel, device.fixed_bytes))
    }

    fn run_on(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        let inputs = Inputs::check(self.inputs, inputs)?;
        let arguments = Arguments::check(self.arguments, arguments)?;
        let Some(variant) = &self.device else {
            let (device, cause) = (device.name().to_owned(), format!("{} has no kernels", self.name));
            return Err(DeviceError::Unsupported { device, cause }.into());
        };
        (variant.run)(&mut OpenClDevice::of(device)?.begin()?, &inputs, &arguments)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate; a cast from f64 saturates"
)]
fn bytes(pixels: u64, a_pixel: f64, fixed: u64) -> u64 {
    ((pixels as f64 * a_pixel).ceil() as u64).saturating_add(fixed)
}

impl Operation for TypedOperation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn arguments(&self) -> &[Argument] {
        self.arguments
    }

    fn inputs(&self) -> &[Port] {
        self.inputs
    }

    fn outputs(&self) -> &[Port] {
        self.outputs
    }

    fn within_core(&self) -> Option<(&'static str, u32)> {
        self.within_core.map(|within| (within.name, within.version))
    }

    fn within_regions(&self) -> Option<(&'static str, u32)> {
        self.within_core.and_then(Operation::within_core)
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * self.nanoseconds_a_pixel * 1e-9
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        bytes(pixels, self.bytes_a_pixel, self.fixed_bytes)
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        self.device.as_ref().map(|_| self as &dyn Accelerated)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let inputs = Inputs::check(self.inputs, inputs)?;
        let arguments = Arguments::check(self.arguments, arguments)?;
        let outputs = (self.run)(&inputs, &arguments)?;
        debug_assert!(
            outputs.iter().map(DataRegion::element).eq(self.outputs.iter().map(|port| port.element)),
            "{} returns what it declares",
            self.name
        );
        Ok(outputs)
    }
}

/// Inputs of the declared number and types. All images have one size.
pub(crate) struct Inputs<'a> {
    ports: &'static [Port],
    regions: &'a [&'a DataRegion],
    width_px: u32,
    height_px: u32,
}

impl<'a> Inputs<'a> {
    fn check(ports: &'static [Port], regions: &'a [&'a DataRegion]) -> Result<Self, OperationError> {
        check_count("inputs", ports.len(), regions.len())?;
        let mut size = None;
        for (port, region) in ports.iter().zip(regions) {
            let found = region.element();
            if !port.element.accepts(found) {
                return Err(WrongElement { expected: port.element, found }.into());
            }
            if let Ok(raster) = region.raster(found) {
                check_channels(found, raster)?;
            }
            let Some((width, height)) = region.size_px() else { continue };
            match size {
                Some((w, h)) if (w, h) != (width, height) => {
                    return Err(OperationError::SizesDiffer(w, h, width, height));
                }
                _ => size = Some((width, height)),
            }
        }
        let (width_px, height_px) = size.unwrap_or_default();
        Ok(Self { ports, regions, width_px, height_px })
    }

    /// Returns input `index`.
    pub(crate) fn region(&self, index: usize) -> &'a DataRegion {
        self.regions[index]
    }

    /// Returns the size of the images, for kernels of a device.
    pub(crate) fn image_size(&self, task: &Task<'_>) -> Result<ImageSize, DeviceError> {
        kernels::image_size(task, self.width_px, self.height_px)
    }

    /// Returns the width of the images, pixels.
    pub(crate) fn width(&self) -> usize {
        self.width_px as usize
    }

    /// Returns the height of the images, pixels.
    pub(crate) fn height(&self) -> usize {
        self.height_px as usize
    }

    /// Returns the bytes of array input `index`: `channels` per pixel. Returns an error for another number of them.
    pub(crate) fn array(&self, index: usize, channels: usize) -> Result<&'a [u8], OperationError> {
        let library = |cause: String| OperationError::Library { library: "array", cause: cause.into() };
        let array = self.regions[index].array(self.ports[index].element)?;
        if usize::from(array.channels()) != channels || array.extents().len() != 2 {
            let (axes, found) = (array.extents().len(), array.channels());
            return Err(library(format!("{axes} axes of {found} channels; 2 of {channels} are allowed")));
        }
        array.samples().map_err(|error| library(error.to_string()))
    }

    /// Returns ragged input `index`.
    pub(crate) fn ragged(&self, index: usize) -> Result<&'a RaggedArray, OperationError> {
        match self.regions[index] {
            DataRegion::Ragged(rows) => Ok(rows),
            other => Err(WrongElement { expected: self.ports[index].element, found: other.element() }.into()),
        }
    }

    /// Returns the annotated objects of input `index`.
    pub(crate) fn annotated(&self, index: usize) -> Result<&'a AnnotatedObjects, OperationError> {
        match self.regions[index] {
            DataRegion::Objects(objects) => Ok(objects),
            other => Err(WrongElement { expected: ElementType::Objects, found: other.element() }.into()),
        }
    }

    /// Returns the labels of input `index`. `None` if it is a mask.
    pub(crate) fn labels(&self, index: usize) -> Option<&'a [u32]> {
        match self.regions[index] {
            DataRegion::Labels(map) => Some(map.labels()),
            _ => None,
        }
    }

    /// Returns the bytes of raster input `index`: one per pixel, or B, G, R.
    pub(crate) fn pixels(&self, index: usize) -> Result<&'a [u8], OperationError> {
        Ok(self.regions[index].raster(self.ports[index].element)?.data())
    }

    /// Returns the objects of input `index`, which is a label map or, in its place, a mask.
    pub(crate) fn objects(&self, index: usize) -> Result<PixelObjects, OperationError> {
        match self.regions[index] {
            DataRegion::Labels(map) => Ok(PixelObjects::of_labels(map.labels(), self.width())),
            mask => Ok(PixelObjects::of_mask(mask.raster(ElementType::Mask)?.data(), self.width())),
        }
    }

    /// Returns table input `index`.
    pub(crate) fn table(&self, index: usize) -> Result<&'a Table, OperationError> {
        Ok(self.regions[index].table()?)
    }

    /// Returns the core that table input `index` describes. Returns an error if the core is not within the images.
    pub(crate) fn core(&self, index: usize) -> Result<PixelRectangle, OperationError> {
        let no_core = |cause: String| OperationError::Library { library: "core", cause: cause.into() };
        let core = core_of(self.table(index)?).ok_or_else(|| no_core("the table has no core".to_owned()))?;
        let (width_px, height_px) = (self.width_px, self.height_px);
        let within = |start: u32, length: u32, all: u32| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= all)
        };
        if within(core.x_px, core.width_px, width_px) && within(core.y_px, core.height_px, height_px) {
            return Ok(core);
        }
        Err(no_core(PartError { part: core, width_px, height_px }.to_string()))
    }

    /// Creates an array of the inputs' size with `channels` bytes per pixel.
    pub(crate) fn array_u8(&self, channels: usize, data: Vec<u8>) -> Result<DataRegion, OperationError> {
        // Operations have a few channels.
        let array = DenseArray::new(&[self.width_px, self.height_px], channels as u16, data.into());
        let library = |cause| OperationError::Library { library: "array", cause: Box::new(cause) };
        Ok(DataRegion::Array(array.map_err(library)?))
    }

    /// Creates a label map of the inputs' size.
    pub(crate) fn label_map(&self, labels: Vec<u32>) -> Result<DataRegion, OperationError> {
        Ok(DataRegion::Labels(LabelMap::new(self.width_px, self.height_px, labels)?))
    }

    /// Creates a mask of the inputs' size.
    pub(crate) fn mask(&self, data: Vec<u8>) -> Result<DataRegion, OperationError> {
        Ok(DataRegion::Mask(Raster::new(self.width_px, self.height_px, 1, data)?))
    }

    /// Makes a mask of the inputs' size of pixels on the device.
    pub(crate) fn mask_on(&self, task: &mut Task<'_>, pixels: Buffer) -> Result<DeviceOutput, DeviceError> {
        self.raster_on(task, pixels, 1, DataRegion::Mask)
    }

    /// Makes a gray image of the inputs' size of pixels on the device.
    pub(crate) fn gray_on(&self, task: &mut Task<'_>, pixels: Buffer) -> Result<DeviceOutput, DeviceError> {
        self.raster_on(task, pixels, 1, DataRegion::Gray8)
    }

    /// Makes a color image of the inputs' size of pixels on the device.
    pub(crate) fn bgr_on(&self, task: &mut Task<'_>, pixels: Buffer) -> Result<DeviceOutput, DeviceError> {
        self.raster_on(task, pixels, 3, DataRegion::Bgr8)
    }

    fn raster_on(
        &self,
        task: &mut Task<'_>,
        pixels: Buffer,
        channels: u8,
        region: fn(Raster) -> DataRegion,
    ) -> Result<DeviceOutput, DeviceError> {
        task.output(
            pixels,
            RasterForm { width_px: self.width_px, height_px: self.height_px, channels, region },
        )
    }

    /// Creates a gray image of the inputs' size.
    pub(crate) fn gray(&self, data: Vec<u8>) -> Result<DataRegion, OperationError> {
        Ok(DataRegion::Gray8(Raster::new(self.width_px, self.height_px, 1, data)?))
    }

    /// Creates a color image of the inputs' size.
    pub(crate) fn bgr(&self, data: Vec<u8>) -> Result<DataRegion, OperationError> {
        Ok(DataRegion::Bgr8(Raster::new(self.width_px, self.height_px, 3, data)?))
    }
}

/// Checks the number of channels, which the variant of a region does not guarantee.
fn check_channels(element: ElementType, raster: &Raster) -> Result<(), ShapeError> {
    let channels = if element == ElementType::Bgr8 { 3 } else { 1 };
    if raster.channels() == channels {
        return Ok(());
    }
    let (width_px, height_px) = (raster.width_px(), raster.height_px());
    Err(ShapeError { width_px, height_px, channels, bytes: raster.data().len() })
}

/// Arguments of the declared number, each accepted by its declaration.
pub(crate) struct Arguments<'a>(&'a [Value]);

impl<'a> Arguments<'a> {
    fn check(declared: &[Argument], values: &'a [Value]) -> Result<Self, OperationError> {
        check_arguments(declared, values)?;
        Ok(Self(values))
    }

    /// Returns argument `index` as a real number.
    pub(crate) fn real(&self, index: usize) -> f64 {
        self.0[index].as_f64()
    }

    /// Returns argument `index`, declared as [`BYTE`].
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0..=255")]
    pub(crate) fn byte(&self, index: usize) -> u8 {
        self.real(index) as u8
    }

    /// Returns argument `index`, declared as [`AREA`], pixels.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0..2^31")]
    pub(crate) fn area(&self, index: usize) -> u64 {
        self.real(index) as u64
    }

    /// Returns argument `index`, declared as [`AREA`], pixels, for kernels of a device.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0..2^31")]
    pub(crate) fn pixel_count(&self, index: usize) -> u32 {
        self.real(index) as u32
    }

    /// Returns argument `index`, declared as [`CONNECTIVITY`].
    pub(crate) fn connectivity(&self, index: usize) -> Connectivity {
        if self.byte(index) == 4 { Connectivity::Four } else { Connectivity::Eight }
    }
}
