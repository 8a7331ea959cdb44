//! OpenCL devices of a program without the cargo feature `opencl`: none can exist.

use crate::kernel::{Argument, Program};
use crate::output::RasterForm;
use crate::{Device, DeviceError, DeviceOutput};
use pleach_regions::DataRegion;
use std::convert::Infallible;

/// An OpenCL device, which cannot exist.
#[derive(Debug)]
pub struct OpenClDevice(Infallible);

/// A task on an OpenCL device, which cannot exist.
#[derive(Debug)]
pub struct Task<'d>(&'d Infallible);

/// A buffer on an OpenCL device, which cannot exist.
#[derive(Clone, Debug)]
pub struct Buffer(Infallible);

impl OpenClDevice {
    /// Returns an error.
    ///
    /// # Errors
    /// Always returns [`DeviceError::Unsupported`].
    pub fn of(device: &mut dyn Device) -> Result<&mut Self, DeviceError> {
        let cause = "this program is built without OpenCL".to_owned();
        Err(DeviceError::Unsupported { device: device.name().to_owned(), cause })
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn begin(&mut self) -> Result<Task<'_>, DeviceError> {
        match self.0 {}
    }
}

impl Task<'_> {
    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn input(&mut self, _: &DataRegion) -> Result<Buffer, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn output(&mut self, _: Buffer, _: RasterForm) -> Result<DeviceOutput, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn upload(&mut self, _: &[u8]) -> Result<Buffer, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn buffer(&mut self, _: usize) -> Result<Buffer, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn fill(&mut self, _: &Buffer, _: u8) -> Result<(), DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn filled(&mut self, _: usize, _: u8) -> Result<Buffer, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    pub(crate) fn run(
        &mut self,
        _: &Program,
        _: &'static str,
        _: &[Argument<'_>],
        _: [usize; 2],
        _: [usize; 2],
    ) -> Result<(), DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    #[must_use]
    pub fn device_name(&self) -> &str {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn download_start(&mut self, _: &Buffer, _: usize) -> Result<Vec<u8>, DeviceError> {
        match *self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never returns.
    pub fn download(&mut self, _: &Buffer) -> Result<Vec<u8>, DeviceError> {
        match *self.0 {}
    }
}

impl Buffer {
    /// Cannot be called.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.0 {}
    }
}

/// Returns that this process is no child that tries drivers.
#[must_use]
pub fn serve_probe() -> Option<String> {
    None
}
