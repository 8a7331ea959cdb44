//! Compiled programs: each source is compiled once for a device.

use super::device::OpenClDevice;
use super::errors::call_error;
use crate::DeviceError;
use crate::kernel::Program;
use opencl3::kernel::Kernel;
use opencl3::program::Program as ClProgram;
use std::collections::HashMap;

/// Standard of all sources. No option relaxes arithmetic: a result has the bits of the CPU variant.
const OPTIONS: &str = "-cl-std=CL1.2";

/// Before each source: products and sums are rounded separately, as on a core.
const PRELUDE: &str =
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF\n#line 1\n";

/// Compiled kernels by the name and the definitions of their program, and their own name.
#[derive(Debug, Default)]
pub(super) struct CompiledKernels {
    programs: HashMap<(&'static str, &'static str), ClProgram>,
    kernels: HashMap<(&'static str, &'static str, &'static str), Kernel>,
}

impl OpenClDevice {
    /// Returns a kernel of `program`. The first call for a program compiles it.
    pub(super) fn kernel(&mut self, program: &Program, kernel: &'static str) -> Result<&Kernel, DeviceError> {
        let key = (program.name, program.definitions, kernel);
        if !self.compiled.kernels.contains_key(&key) {
            let of_program = (program.name, program.definitions);
            if !self.compiled.programs.contains_key(&of_program) {
                let compiled = self.compile(program)?;
                self.compiled.programs.insert(of_program, compiled);
            }
            let new = Kernel::create(&self.compiled.programs[&of_program], kernel)
                .map_err(|error| call_error(&self.name, "clCreateKernel", &error))?;
            self.compiled.kernels.insert(key, new);
        }
        Ok(&self.compiled.kernels[&key])
    }

    fn compile(&self, program: &Program) -> Result<ClProgram, DeviceError> {
        // One text: cl3 0.13 passes several sources as pairs of pointer and length, which drivers read as pointers.
        let source = format!("{PRELUDE}{}", program.source);
        let options = format!("{OPTIONS} {}", program.definitions);
        ClProgram::create_and_build_from_source(&self.memory.context, &source, &options).map_err(|log| {
            DeviceError::Compile { device: self.name.clone(), program: program.name.to_owned(), log }
        })
    }
}
