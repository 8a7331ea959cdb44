//! Identities of stage instances and keys of regions, derived from operations, parameter values and inputs (see
//! `docs/adr/0002-task-identity.md`).
//!
//! An identity is a BLAKE3 hash of a canonical byte string. Each part has a fixed size or follows its length, so that
//! different provenances never give the same bytes.

use pleach_regions::{RegionKey, Table, UnitLayout};
use pleach_workflow::{Comparison, Guard, SlideTile, Stage, StainFit, Value, VolumeBlock};
use std::path::Path;

/// Identity of a stage instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceIdentity([u8; 32]);

/// Version of the byte strings. Every change of their layout raises it.
const SCHEME: &str = "pleach identity 1";

struct Hash(blake3::Hasher);

impl Hash {
    fn new(kind: &str) -> Self {
        let mut hash = Self(blake3::Hasher::new());
        hash.part(SCHEME.as_bytes());
        hash.part(kind.as_bytes());
        hash
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn value(&mut self, value: Value) {
        let (tag, bytes) = match value {
            Value::Integer(number) => (b'i', number.to_le_bytes()),
            Value::Real(real) => (b'r', real.get().to_bits().to_le_bytes()),
        };
        self.0.update(&[tag]);
        self.0.update(&bytes);
    }

    fn guard(&mut self, guard: &Guard) {
        self.part(b"guard");
        self.part(&(guard.operands as u64).to_le_bytes());
        for condition in &guard.conditions {
            let (tag, limit) = match condition.comparison {
                Comparison::Below(limit) => (b'b', limit),
                Comparison::AtLeast(limit) => (b'a', limit),
            };
            self.part(&[tag, u8::from(condition.expected)]);
            self.value(Value::Real(limit));
            self.part(&(condition.value as u64).to_le_bytes());
            for pass in &condition.passes {
                self.part(&pass.map_or(0, |read| read as u64 + 1).to_le_bytes());
            }
        }
    }

    fn key(&self) -> RegionKey {
        let mut key = [0; 16];
        key.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        RegionKey(key)
    }
}

/// Returns the region key of an input file. The path identifies the content within one run only: the task cache uses
/// the digest of the content instead.
pub fn of_file(role: &str, path: &Path) -> RegionKey {
    let mut hash = Hash::new("file");
    hash.part(role.as_bytes());
    hash.part(path.as_os_str().as_encoded_bytes());
    hash.key()
}

/// Returns the region key of a tile: of its file, or of its part of a slide.
pub fn of_tile(role: &str, path: &Path, slide: Option<&SlideTile>) -> RegionKey {
    let Some(SlideTile { magnification, core, window }) = slide else { return of_file(role, path) };
    let mut hash = Hash::new("slide");
    hash.part(role.as_bytes());
    hash.part(path.as_os_str().as_encoded_bytes());
    if let Some(magnification) = magnification {
        hash.value(Value::Real(*magnification));
    }
    for side in core.iter().chain(window) {
        hash.part(&side.to_le_bytes());
    }
    hash.key()
}

/// Returns the region key of a block of an image. Blocks of equal content in other places have other keys.
pub fn of_block(role: &str, path: &Path, block: &VolumeBlock) -> RegionKey {
    let mut hash = Hash::new("block");
    hash.part(role.as_bytes());
    hash.part(path.as_os_str().as_encoded_bytes());
    for number in block.start.iter().chain(&block.length) {
        hash.part(&number.to_le_bytes());
    }
    hash.part(&block.digest.0);
    hash.key()
}

/// Returns the region key of fitted values, by their content: all tiles of a slide have the same.
pub fn of_stain_fit(role: &str, fit: &StainFit) -> RegionKey {
    let mut hash = Hash::new("stain fit");
    hash.part(role.as_bytes());
    for (column, value) in fit.columns() {
        hash.part(column.as_bytes());
        hash.value(Value::Real(value));
    }
    hash.key()
}

/// Returns the region key of the calibration of an image, by its numbers.
pub fn of_calibration(role: &str, calibration: &Table) -> RegionKey {
    let mut hash = Hash::new("calibration");
    hash.part(role.as_bytes());
    for (_, number) in calibration.columns() {
        hash.part(&number.to_bits().to_le_bytes());
    }
    hash.key()
}

/// Returns the region key of a layout: equal layouts are one region.
pub fn of_layout(role: &str, layout: &UnitLayout) -> RegionKey {
    let mut hash = Hash::new("layout");
    hash.part(role.as_bytes());
    for (_, number) in layout.to_table().columns() {
        hash.part(&number.to_bits().to_le_bytes());
    }
    hash.key()
}

/// Returns the identity of a stage instance. It covers the operations and versions of its tasks, the values that they
/// consume, the wiring between them, and the inputs. It is independent of the names of stages, tasks and parameters.
/// `replica` distinguishes equal instances in a plan without merging.
pub(crate) fn of_instance(
    stage: &Stage,
    parameters: &[Value],
    inputs: &[RegionKey],
    replica: Option<u32>,
) -> InstanceIdentity {
    let mut hash = Hash::new("stage");
    for task in &stage.tasks {
        hash.part(task.operation.as_bytes());
        hash.part(&task.version.to_le_bytes());
        for &argument in &task.arguments {
            hash.value(parameters[argument]);
        }
        for read in &task.reads {
            let (from, number, output) = match *read {
                pleach_workflow::TaskInput::StageInput(input) => (0u8, input, 0),
                pleach_workflow::TaskInput::Task { task, output } => (1, task, output),
            };
            hash.part(&[from]);
            hash.part(&(number as u64).to_le_bytes());
            hash.part(&(output as u64).to_le_bytes());
        }
        if let Some(guard) = &task.guard {
            hash.guard(guard);
        }
    }
    for output in &stage.outputs {
        hash.part(&(output.task as u64).to_le_bytes());
        hash.part(&(output.output as u64).to_le_bytes());
    }
    for input in inputs {
        hash.part(&input.0);
    }
    if let Some(run) = replica {
        hash.part(&run.to_le_bytes());
    }
    InstanceIdentity(*hash.0.finalize().as_bytes())
}

/// Returns the region key of one output of a stage instance.
pub(crate) fn of_output(identity: &InstanceIdentity, output: usize) -> RegionKey {
    let mut hash = Hash::new("output");
    hash.part(&identity.0);
    hash.part(&(output as u64).to_le_bytes());
    hash.key()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::{Condition, Workflow};
    use std::collections::HashSet;

    fn segmentation() -> (Workflow, Stage) {
        let (files, registry) = (pleach_pathology::NUCLEI_DESCRIPTORS, pleach_pathology::registry());
        let workflow = Workflow::embedded(&files, &registry).unwrap();
        let stage = workflow.stages[1].clone();
        (workflow, stage)
    }

    #[test]
    fn each_part_of_a_history_changes_the_identity() {
        let (workflow, stage) = segmentation();
        let values: Vec<Value> = stage.parameters.iter().map(|&p| workflow.parameters[p].default).collect();
        let input = of_file("tile", Path::new("a.png"));
        let mut seen = HashSet::from([of_instance(&stage, &values, &[input], None).0]);
        let mut differs = |stage: &Stage, values: &[Value], input, replica| {
            seen.insert(of_instance(stage, values, &[input], replica).0)
        };
        for parameter in 0..values.len() {
            let mut other = values.clone();
            other[parameter] = match values[parameter] {
                Value::Integer(number) => Value::Integer(number + 1),
                Value::Real(_) => Value::from_f64(1.25, pleach_workflow::ValueType::Real).unwrap(),
            };
            assert!(differs(&stage, &other, input, None));
        }
        assert!(differs(&stage, &values, of_file("tile", Path::new("b.png")), None));
        assert!(differs(&stage, &values, of_file("reference", Path::new("a.png")), None));
        assert!(differs(&stage, &values, input, Some(0)));
        assert!(differs(&stage, &values, input, Some(1)));
        let mut newer = stage.clone();
        newer.tasks[3].version += 1;
        assert!(differs(&newer, &values, input, None));
        let limit = pleach_workflow::Real::try_from(1.0).unwrap();
        let condition = |expected, pass| Condition {
            value: 0,
            comparison: Comparison::Below(limit),
            expected,
            passes: vec![pass],
        };
        let mut guarded = stage.clone();
        for condition in [condition(true, None), condition(false, None), condition(true, Some(1))] {
            guarded.tasks[3].guard = Some(Guard { operands: 1, conditions: vec![condition] });
            assert!(differs(&guarded, &values, input, None));
        }
        let mut rewired = stage.clone();
        rewired.tasks[4].reads.swap(1, 2);
        assert!(differs(&rewired, &values, input, None));
    }

    #[test]
    fn each_tile_of_a_slide_has_a_key() {
        let slide = Path::new("a.svs");
        let magnification = pleach_workflow::Real::try_from(20.0).ok();
        let tile = SlideTile { magnification, core: [8, 0, 8, 8], window: [4, 0, 16, 12] };
        let mut seen = HashSet::from([of_tile("tile", slide, Some(&tile)), of_tile("tile", slide, None)]);
        assert_eq!(of_tile("tile", slide, None), of_file("tile", slide));
        assert!(!seen.insert(of_tile("tile", slide, Some(&tile.clone()))));
        let others = [
            SlideTile { magnification: None, ..tile.clone() },
            SlideTile { core: [0, 8, 8, 8], ..tile.clone() },
            SlideTile { window: [4, 0, 16, 13], ..tile.clone() },
        ];
        assert!(others.iter().all(|other| seen.insert(of_tile("tile", slide, Some(other)))));
        assert!(seen.insert(of_tile("core", slide, Some(&tile))));
        assert!(seen.insert(of_tile("tile", Path::new("b.svs"), Some(&tile))));
    }

    #[test]
    fn names_do_not_change_an_identity() {
        let (workflow, stage) = segmentation();
        let values: Vec<Value> = stage.parameters.iter().map(|&p| workflow.parameters[p].default).collect();
        let input = [of_file("tile", Path::new("a.png"))];
        let mut renamed = stage.clone();
        renamed.name = "other".to_owned();
        renamed.tasks[0].name = "first".to_owned();
        renamed.tasks[0].writes[0].region = "red".to_owned();
        let one = of_instance(&stage, &values, &input, None);
        assert_eq!(one, of_instance(&renamed, &values, &input, None));
        assert_ne!(of_output(&one, 0), of_output(&one, 1));
    }
}
