//! Operations that label the columns of a table, for studies that measure the results of two segmentations.
//!
//! Both are compared with the reference by the same operations, so their metrics have equal names. The arguments of an
//! operation are numbers, so each label is an operation.

use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{Argument, Operation, OperationError, Port, Value};

const INPUTS: [Port; 1] = [Port { name: "table", element: ElementType::Table }];

const OUTPUTS: [Port; 1] = [Port { name: "labeled", element: ElementType::Table }];

/// Labels of the built-in segmentations.
pub(super) const LABELS: [Label; 2] = [
    Label { name: "tables.label-nuclei", label: "nuclei: " },
    Label { name: "tables.label-levelset", label: "levelset: " },
];

/// Label operation: the columns of a table with the label before each name.
pub(super) struct Label {
    name: &'static str,
    label: &'static str,
}

impl Operation for Label {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &INPUTS
    }

    fn outputs(&self) -> &[Port] {
        &OUTPUTS
    }

    fn cost_seconds(&self, _pixels: u64) -> f64 {
        1e-6
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], _arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let [table] = inputs else {
            return Err(OperationError::Arity { what: "inputs", wanted: 1, found: inputs.len() });
        };
        let columns = table.table()?.columns().map(|(name, value)| (format!("{}{name}", self.label), value));
        Ok(vec![DataRegion::Table(Table::new(columns))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labeled_table_has_the_label_before_each_column() {
        let table = |columns: &[(&str, f64)]| DataRegion::Table(Table::new(columns.iter().copied()));
        let labeled = LABELS[1].run(&[&table(&[("dice", 0.5), ("both-empty", 0.0)])], &[]).unwrap();
        assert_eq!(labeled, [table(&[("levelset: dice", 0.5), ("levelset: both-empty", 0.0)])]);
        assert!(matches!(LABELS[0].run(&[], &[]), Err(OperationError::Arity { found: 0, .. })));
        assert!(LABELS[0].run(&[&DataRegion::Scalar(1.0)], &[]).is_err());
    }
}
