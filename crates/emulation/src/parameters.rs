//! Parameters of a workflow of emulated tasks.

use crate::error::EmulationError;
use crate::operations::{MAX_FILE_BYTES, MAX_SECONDS};
use pleach_workflow::{Domain, Parameter, Real, Value};
use std::collections::HashMap;

/// Parameters of the workflow: each has one value.
#[derive(Default)]
pub(crate) struct Parameters {
    list: Vec<Parameter>,
    known: HashMap<String, usize>,
}

impl Parameters {
    /// Returns the parameter of a name, with this value where it is new.
    pub(crate) fn integer(&mut self, name: &str, value: i64) -> usize {
        self.add(name, Value::Integer(value))
    }

    /// Returns the parameter of a wait in seconds. Equal waits are one parameter.
    ///
    /// # Errors
    /// [`EmulationError::Seconds`] if the wait is longer than a day.
    pub(crate) fn seconds(&mut self, job: &str, seconds: f64) -> Result<usize, EmulationError> {
        let is_allowed = (0.0..=MAX_SECONDS).contains(&seconds);
        let real = Real::try_from(seconds).ok().filter(|_| is_allowed);
        let real = real.ok_or_else(|| EmulationError::Seconds { job: job.to_owned(), seconds })?;
        Ok(self.add(&format!("{seconds:?} s"), Value::Real(real)))
    }

    /// Returns the parameter of a size in bytes. Equal sizes are one parameter.
    pub(crate) fn bytes(&mut self, bytes: u64) -> usize {
        let bytes = (bytes as i64).clamp(0, MAX_FILE_BYTES);
        self.add(&format!("{bytes} bytes"), Value::Integer(bytes))
    }

    /// Returns all parameters.
    pub(crate) fn into_list(self) -> Vec<Parameter> {
        self.list
    }

    fn add(&mut self, name: &str, value: Value) -> usize {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let place = self.list.len();
        self.known.insert(name.to_owned(), place);
        let value_type = value.value_type();
        let domain = Domain::Fixed { value };
        self.list.push(Parameter { name: name.to_owned(), value_type, default: value, domain });
        place
    }
}
