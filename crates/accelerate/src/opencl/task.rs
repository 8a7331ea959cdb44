//! A task on an OpenCL device: uploads, kernels, downloads, within one time limit.

use super::device::OpenClDevice;
use super::download;
use super::errors::{call_error, is_out_of_memory};
use super::memory::Buffer;
use crate::kernel::{Argument, Program};
use crate::output::RasterForm;
use crate::{DeviceError, DeviceOutput};
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::ClMem;
use opencl3::types::{CL_BLOCKING, cl_uint};
use pleach_regions::DataRegion;
use std::thread;
use std::time::{Duration, Instant};

/// 20 µs: below it a thread that yields costs less than the delay of a timer.
const YIELD_LIMIT: Duration = Duration::from_micros(20);

/// 16 B: PoCL fills a buffer pattern by pattern.
const LONG_PATTERN: usize = 16;

/// 100 µs between two looks at a kernel: a hundredth of the tasks of 10 ms that a device is worth using for.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

/// A task on an OpenCL device. Buffers that it holds are not evicted.
#[derive(Debug)]
pub struct Task<'d> {
    device: &'d mut OpenClDevice,
    started: Instant,
}

impl<'d> Task<'d> {
    pub(super) fn new(device: &'d mut OpenClDevice, started: Instant) -> Self {
        Self { device, started }
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.device.name
    }

    /// Returns the pixels of a raster region on the device. Uploads them unless they are resident or being
    /// prefetched.
    ///
    /// # Errors
    /// Returns a [`DeviceError`], [`DeviceError::Unsupported`] for a region that is no raster.
    pub fn input(&mut self, region: &DataRegion) -> Result<Buffer, DeviceError> {
        if let Some(buffer) = self.device.memory.find(region, self.device.deadline) {
            return Ok(buffer);
        }
        let element = region.element();
        let Ok(raster) = region.raster(element) else {
            let cause = format!("regions of type {element} have no kernels");
            return Err(DeviceError::Unsupported { device: self.device.name.clone(), cause });
        };
        let buffer = self.upload(raster.data())?;
        self.device.memory.keep(region, buffer.clone());
        Ok(buffer)
    }

    /// Ends the computation of an output, which is downloaded later. Waits for the kernels. Allocate no buffer afterwards: it might
    /// wait for the download.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn output(&mut self, buffer: Buffer, form: RasterForm) -> Result<DeviceOutput, DeviceError> {
        self.wait()?;
        Ok(download::output(&self.device.downloads, buffer, form))
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn upload(&mut self, data: &[u8]) -> Result<Buffer, DeviceError> {
        let buffer = self.buffer(data.len())?;
        // The write below waits without a limit, so that the driver never reads memory of a task that was given up.
        self.wait()?;
        // SAFETY: the buffer has the length of `data`, and a blocking call does not keep the pointer.
        let raw = buffer.memory().get();
        let written = unsafe {
            opencl3::command_queue::enqueue_write_buffer(
                self.device.queue.get(),
                raw,
                CL_BLOCKING,
                0,
                data.len(),
                data.as_ptr().cast_mut().cast(),
                0,
                std::ptr::null(),
            )
        };
        let event = written.map_err(|code| self.failed("clEnqueueWriteBuffer", code.into()))?;
        drop(Event::new(event));
        self.device.transfers.uploaded_bytes += data.len() as u64;
        Ok(buffer)
    }

    /// Copies a buffer to the host, after the kernels that write to it.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn download(&mut self, buffer: &Buffer) -> Result<Vec<u8>, DeviceError> {
        self.download_start(buffer, buffer.bytes())
    }

    /// Copies the first `bytes` bytes of a buffer, at most all, to the host.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn download_start(&mut self, buffer: &Buffer, bytes: usize) -> Result<Vec<u8>, DeviceError> {
        self.wait()?;
        let mut data = vec![0; bytes.min(buffer.bytes())];
        if data.is_empty() {
            return Ok(data);
        }
        // SAFETY: `data` is at most as long as the buffer, and a blocking call does not keep the pointer.
        let read =
            unsafe { self.device.queue.enqueue_read_buffer(buffer.memory(), CL_BLOCKING, 0, &mut data, &[]) };
        read.map_err(|error| self.failed("clEnqueueReadBuffer", error))?;
        self.device.transfers.downloaded_bytes += data.len() as u64;
        Ok(data)
    }

    /// Returns a buffer with undefined content.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn buffer(&mut self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes)
    }

    /// Sets all bytes of a buffer.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn fill(&mut self, buffer: &Buffer, value: u8) -> Result<(), DeviceError> {
        let queue = self.device.queue.get();
        let pattern = [value; LONG_PATTERN];
        let length = if buffer.bytes().is_multiple_of(LONG_PATTERN) { LONG_PATTERN } else { 1 };
        // SAFETY: the call copies the pattern, whose length divides that of the buffer.
        let filled = unsafe {
            opencl3::command_queue::enqueue_fill_buffer(
                queue,
                buffer.memory().get(),
                pattern.as_ptr().cast_mut().cast(),
                length,
                0,
                buffer.bytes(),
                0,
                std::ptr::null(),
            )
        };
        filled
            .map(|event| drop(Event::new(event)))
            .map_err(|code| self.failed("clEnqueueFillBuffer", code.into()))
    }

    /// Returns a buffer with all bytes equal to `value`.
    ///
    /// # Errors
    /// Returns a [`DeviceError`].
    pub fn filled(&mut self, bytes: usize, value: u8) -> Result<Buffer, DeviceError> {
        let buffer = self.buffer(bytes)?;
        self.fill(&buffer, value)?;
        Ok(buffer)
    }

    /// Starts a kernel for at least `items` work items, in groups of `group` items. A kernel ignores the surplus items of its last
    /// groups. Calls return before the kernel ends; kernels run in order.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        kernel: &'static str,
        arguments: &[Argument<'_>],
        items: [usize; 2],
        group: [usize; 2],
    ) -> Result<(), DeviceError> {
        if items.contains(&0) {
            return Ok(());
        }
        let compiled: *const Kernel = self.device.kernel(program, kernel)?;
        // SAFETY: kernels are removed with the device only.
        let compiled = unsafe { &*compiled };
        for (index, argument) in (0..).zip(arguments) {
            // SAFETY: the driver checks index and size. The types are those of this crate's sources.
            let set = unsafe {
                match argument {
                    Argument::Buffer(buffer) => compiled.set_arg(index as cl_uint, &buffer.memory().get()),
                    Argument::Uint(number) => compiled.set_arg(index as cl_uint, number),
                }
            };
            set.map_err(|error| self.failed("clSetKernelArg", error))?;
        }
        let global = [0, 1].map(|axis| items[axis].next_multiple_of(group[axis]));
        // SAFETY: all arguments are set, and both arrays have two dimensions. Buffers live until their kernels end: the driver
        // retains those of enqueued kernels.
        let started = unsafe {
            self.device.queue.enqueue_nd_range_kernel(
                compiled.get(),
                2,
                std::ptr::null(),
                global.as_ptr(),
                group.as_ptr(),
                &[],
            )
        };
        started.map(drop).map_err(|error| self.failed("clEnqueueNDRangeKernel", error))
    }

    /// Waits until all started kernels have ended, at most until the time limit.
    fn wait(&mut self) -> Result<(), DeviceError> {
        let Some(limit) = self.device.limit else {
            return self.device.queue.finish().map_err(|error| self.failed("clFinish", error));
        };
        // SAFETY: the list of events is empty.
        let marker = unsafe { self.device.queue.enqueue_marker_with_wait_list(&[]) };
        let marker = marker.map_err(|error| self.failed("clEnqueueMarkerWithWaitList", error))?;
        self.device.queue.flush().map_err(|error| self.failed("clFlush", error))?;
        let waiting = Instant::now();
        loop {
            let status = marker.command_execution_status();
            let status = status.map_err(|error| self.failed("clGetEventInfo", error))?;
            match status.0 {
                // CL_COMPLETE. Values above are earlier states, values below are errors of a command.
                0 => return Ok(()),
                code if code < 0 => return Err(self.failed("a kernel", ClError(code))),
                _ => {}
            }
            if self.started.elapsed() > limit {
                let error = DeviceError::TimedOut { device: self.device.name.clone(), limit };
                self.device.memory.set_broken(error.to_string());
                return Err(error);
            }
            if waiting.elapsed() < YIELD_LIMIT { thread::yield_now() } else { thread::sleep(POLL_INTERVAL) }
        }
    }

    /// Returns the error of a call. A device that is lost refuses later tasks.
    fn failed(&mut self, call: &'static str, error: ClError) -> DeviceError {
        // Drivers may place a buffer when a kernel first uses it.
        if call != "clFinish" && is_out_of_memory(&error) {
            return self.device.memory.out_of_memory(0);
        }
        let error = call_error(&self.device.name, call, &error);
        if let DeviceError::Lost { cause, .. } = &error {
            self.device.memory.set_broken(cause.clone());
        }
        error
    }
}
