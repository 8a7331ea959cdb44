//! Descriptions of external operations: a submission has them, so that a manager plans a study without its code.

use crate::intern::{interned, interned_numbers};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{
    Accepts, Argument, Operation, OperationError, Port, Registry, Value, Workflow, plain_name,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One million pixels: size for the slopes of costs. Those of external operations are linear in the pixels.
const PIXELS: u64 = 1_000_000;

/// Maximum length of a name, with its digest. Names are interned for the lifetime of the process.
const MAX_NAME_BYTES: usize = 256;

/// Maximum number of ports or arguments of an operation.
const MAX_PORTS: usize = 256;

/// Declaration of an external operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationDescription {
    /// `NAME@DIGEST`.
    pub name: String,
    version: u32,
    arguments: Vec<(String, DescribedValues)>,
    inputs: Vec<(String, ElementType)>,
    outputs: Vec<(String, ElementType)>,
    seconds: f64,
    seconds_a_pixel: f64,
    bytes: u64,
    bytes_a_pixel: u64,
    is_deterministic: bool,
    /// Components of its identity.
    components: Vec<(String, String)>,
    /// It runs in the slot of an accelerator only.
    #[serde(default, skip_serializing_if = "is_false")]
    needs_accelerator: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(is: &bool) -> bool {
    !is
}

/// Accepted values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DescribedValues {
    Integers(i64, i64),
    OneOf(Vec<i64>),
    Reals(f64, f64),
}

/// Returns the descriptions of the external operations of a workflow, each once.
#[must_use]
pub fn descriptions(workflow: &Workflow, registry: &Registry) -> Vec<OperationDescription> {
    let tasks = workflow.stages.iter().flat_map(|stage| &stage.tasks);
    let external = tasks.filter(|task| plain_name(&task.operation) != task.operation);
    let found = external.filter_map(|task| registry.get(&task.operation, task.version));
    let described = found.map(|operation| ((operation.name(), operation.version()), described(&**operation)));
    described.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Returns an operation of the same declaration under another digest, for planning. Workers that have `name` run it.
#[must_use]
pub fn pinned(operation: &dyn Operation, name: &str) -> Arc<dyn Operation> {
    // What determines its results is known to the workers.
    let description =
        OperationDescription { name: name.to_owned(), components: Vec::new(), ..described(operation) };
    description.operation()
}

fn described(operation: &dyn Operation) -> OperationDescription {
    let ports = |ports: &[Port]| ports.iter().map(|port| (port.name.to_owned(), port.element)).collect();
    let values = |accepts| match accepts {
        Accepts::Integers { low, high } => DescribedValues::Integers(low, high),
        Accepts::OneOf(values) => DescribedValues::OneOf(values.to_vec()),
        Accepts::Reals { low, high } => DescribedValues::Reals(low, high),
    };
    let arguments = operation.arguments().iter();
    let (seconds, bytes) = (operation.cost_seconds(0), operation.memory_bytes(0));
    OperationDescription {
        name: operation.name().to_owned(),
        version: operation.version(),
        arguments: arguments.map(|argument| (argument.name.to_owned(), values(argument.accepts))).collect(),
        inputs: ports(operation.inputs()),
        outputs: ports(operation.outputs()),
        seconds,
        seconds_a_pixel: (operation.cost_seconds(PIXELS) - seconds) / PIXELS as f64,
        bytes,
        bytes_a_pixel: (operation.memory_bytes(PIXELS) - bytes).div_ceil(PIXELS),
        is_deterministic: operation.is_deterministic(),
        components: operation.components().to_vec(),
        needs_accelerator: operation.needs_accelerator(),
    }
}

impl OperationDescription {
    /// Returns the version of the operation.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the components of its identity.
    #[must_use]
    pub fn components(&self) -> &[(String, String)] {
        &self.components
    }

    /// Returns whether it runs in the slot of an accelerator only.
    #[must_use]
    pub fn needs_accelerator(&self) -> bool {
        self.needs_accelerator
    }

    /// Returns the first field that no external operation has. `None` for a sound description.
    #[must_use]
    pub fn mistake(&self) -> Option<&'static str> {
        let is_number = |number: f64| number.is_finite() && number >= 0.0;
        let is_external = self.name.starts_with("python:") || self.name.starts_with("exec:");
        let names = self.arguments.iter().map(|(name, _)| name);
        let names = names.chain(self.inputs.iter().chain(&self.outputs).map(|(name, _)| name));
        let counts = [self.arguments.len(), self.inputs.len(), self.outputs.len()];
        // An operation of the program has no digest, so a description never replaces one.
        let sound = [
            ("name", is_external && plain_name(&self.name) != self.name),
            ("length of a name", names.chain([&self.name]).all(|name| name.len() <= MAX_NAME_BYTES)),
            ("number of ports", counts.iter().all(|count| *count <= MAX_PORTS)),
            ("cost", is_number(self.seconds) && is_number(self.seconds_a_pixel)),
        ];
        sound.into_iter().find(|(_, is_sound)| !is_sound).map(|(what, _)| what)
    }

    /// Returns the operation, for planning. It cannot run.
    #[must_use]
    pub fn operation(&self) -> Arc<dyn Operation> {
        let ports = |ports: &[(String, ElementType)]| {
            ports.iter().map(|(name, element)| Port { name: interned(name), element: *element }).collect()
        };
        let accepts = |values: &DescribedValues| match values {
            DescribedValues::Integers(low, high) => Accepts::Integers { low: *low, high: *high },
            DescribedValues::OneOf(values) => Accepts::OneOf(interned_numbers(values)),
            DescribedValues::Reals(low, high) => Accepts::Reals { low: *low, high: *high },
        };
        let arguments = self.arguments.iter();
        let arguments =
            arguments.map(|(name, values)| Argument { name: interned(name), accepts: accepts(values) });
        Arc::new(DescribedOperation {
            name: interned(&self.name),
            arguments: arguments.collect(),
            inputs: ports(&self.inputs),
            outputs: ports(&self.outputs),
            of: self.clone(),
        })
    }
}

/// An operation that this process plans and other processes run.
#[derive(Debug)]
struct DescribedOperation {
    name: &'static str,
    arguments: Vec<Argument>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    of: OperationDescription,
}

impl Operation for DescribedOperation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        self.of.version
    }

    fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        self.of.seconds + self.of.seconds_a_pixel * pixels as f64
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.of.bytes.saturating_add(self.of.bytes_a_pixel.saturating_mul(pixels))
    }

    fn is_deterministic(&self) -> bool {
        self.of.is_deterministic
    }

    fn components(&self) -> &[(String, String)] {
        &self.of.components
    }

    fn is_external(&self) -> bool {
        true
    }

    fn needs_accelerator(&self) -> bool {
        self.of.needs_accelerator
    }

    fn run(&self, _: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let text = format!("{} is described here and runs on workers that have it", plain_name(self.name));
        Err(OperationError::External { cause: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> OperationDescription {
        OperationDescription {
            name: "python:a.b@00".to_owned(),
            version: 2,
            arguments: vec![
                ("level".to_owned(), DescribedValues::Reals(0.0, 1.0)),
                ("mode".to_owned(), DescribedValues::OneOf(vec![1, 3])),
            ],
            inputs: vec![("tile".to_owned(), ElementType::Bgr8)],
            outputs: vec![("mask".to_owned(), ElementType::Mask)],
            seconds: 0.5,
            seconds_a_pixel: 2e-9,
            bytes: 1000,
            bytes_a_pixel: 3,
            is_deterministic: false,
            components: vec![("numpy".to_owned(), "2.0 aa".to_owned())],
            needs_accelerator: true,
        }
    }

    #[test]
    fn described_operation_has_the_same_description() {
        let first = description();
        let again = described(&*first.operation());
        assert_eq!(OperationDescription { seconds_a_pixel: 2e-9, ..again.clone() }, first);
        assert!((again.seconds_a_pixel - 2e-9).abs() < 1e-15);
        let text = serde_json::to_string(&first).unwrap();
        assert_eq!(serde_json::from_str::<OperationDescription>(&text).unwrap(), first);
        assert!(first.operation().run(&[], &[]).is_err() && first.operation().needs_accelerator());
        // Managers of earlier releases know no such field, and read descriptions without it.
        let on_core = OperationDescription { needs_accelerator: false, ..first };
        let text = serde_json::to_string(&on_core).unwrap();
        assert!(!text.contains("accelerator"), "{text}");
        assert_eq!(serde_json::from_str::<OperationDescription>(&text).unwrap(), on_core);
    }

    #[test]
    fn description_replaces_no_operation_of_the_program() {
        assert_eq!(description().mistake(), None);
        let named = |name: &str| OperationDescription { name: name.to_owned(), ..description() };
        assert_eq!(named("nuclei.normalize").mistake(), Some("name"));
        assert_eq!(named("nuclei.normalize@00").mistake(), Some("name"));
        assert_eq!(named("python:a.b").mistake(), Some("name"));
        assert_eq!(named(&format!("python:{}@0", "a".repeat(300))).mistake(), Some("length of a name"));
        let endless = OperationDescription { seconds: f64::NAN, ..description() };
        assert_eq!(endless.mistake(), Some("cost"));
    }
}
