//! Outputs of device variants: in host memory, or on the device until they are downloaded.

use crate::DeviceError;
use pleach_regions::{DataRegion, Raster};
use std::fmt;

/// An output of a device variant.
pub enum DeviceOutput {
    /// In host memory.
    Host(DataRegion),
    /// On the device. All kernels that write it have ended.
    Device(Box<dyn OnDevice>),
}

/// An output on a device. Any thread may download it, while the device runs a later task.
pub trait OnDevice: Send {
    /// Copies the output to host memory.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    fn download(self: Box<Self>) -> Result<DataRegion, DeviceError>;
}

/// Size and type of a raster output.
#[derive(Clone, Copy, Debug)]
pub struct RasterForm {
    /// Width, pixels.
    pub width_px: u32,
    /// Height, pixels.
    pub height_px: u32,
    /// Bytes of each pixel.
    pub channels: u8,
    /// Makes a region of the pixels, such as [`DataRegion::Mask`].
    pub region: fn(Raster) -> DataRegion,
}

impl DeviceOutput {
    /// Returns outputs that are in host memory.
    #[must_use]
    pub fn on_host(regions: Vec<DataRegion>) -> Vec<Self> {
        regions.into_iter().map(Self::Host).collect()
    }

    /// Copies outputs to host memory, in order. Outputs in host memory stay.
    ///
    /// # Errors
    /// Returns the first [`DeviceError`].
    pub fn download_all(outputs: Vec<Self>) -> Result<Vec<DataRegion>, DeviceError> {
        let download = |output| match output {
            Self::Host(region) => Ok(region),
            Self::Device(output) => output.download(),
        };
        outputs.into_iter().map(download).collect()
    }
}

impl fmt::Debug for DeviceOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(region) => f.debug_tuple("Host").field(region).finish(),
            Self::Device(_) => f.debug_tuple("Device").finish_non_exhaustive(),
        }
    }
}
