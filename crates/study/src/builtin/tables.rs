//! Operations on tables of responses: joined tables, for studies whose responses several stages measure, and labels of columns,
//! for studies that measure the results of two segmentations.
//!
//! Both segmentations are compared with the reference by the same operations, so their metrics have equal names. The
//! arguments of an operation are numbers, so each label is an operation.

use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{Argument, JOIN, Operation, OperationError, Port, Value};

/// The operations.
pub(super) const OPERATIONS: [TableOperation; 3] = [
    TableOperation {
        id: JOIN,
        inputs: &[
            Port { name: "first", element: ElementType::Table },
            Port { name: "second", element: ElementType::Table },
        ],
        output: [Port { name: "both", element: ElementType::Table }],
        label: "",
    },
    label("tables.label-nuclei", "nuclei: "),
    label("tables.label-levelset", "levelset: "),
];

/// Operation whose output has the columns of all inputs, in order, with a label before each name.
pub(super) struct TableOperation {
    /// Name and version.
    id: (&'static str, u32),
    inputs: &'static [Port],
    output: [Port; 1],
    label: &'static str,
}

const fn label(name: &'static str, label: &'static str) -> TableOperation {
    TableOperation {
        id: (name, 1),
        inputs: &[Port { name: "table", element: ElementType::Table }],
        output: [Port { name: "labeled", element: ElementType::Table }],
        label,
    }
}

impl Operation for TableOperation {
    fn name(&self) -> &'static str {
        self.id.0
    }

    fn version(&self) -> u32 {
        self.id.1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.output
    }

    fn cost_seconds(&self, _pixels: u64) -> f64 {
        1e-6
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], _arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        if inputs.len() != self.inputs.len() {
            return Err(OperationError::Arity {
                what: "inputs",
                wanted: self.inputs.len(),
                found: inputs.len(),
            });
        }
        let tables: Vec<&Table> = inputs.iter().map(|input| input.table()).collect::<Result<_, _>>()?;
        let columns = tables.iter().flat_map(|table| table.columns());
        let labeled = columns.map(|(name, value)| (format!("{}{name}", self.label), value));
        Ok(vec![DataRegion::Table(Table::new(labeled))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[(&str, f64)]) -> DataRegion {
        DataRegion::Table(Table::new(columns.iter().copied()))
    }

    #[test]
    fn joined_table_has_the_columns_of_both_in_order() {
        let join = &OPERATIONS[0];
        let (one, other) = (table(&[("a", 1.0), ("b", 2.0)]), table(&[("c", 3.0)]));
        let joined = join.run(&[&one, &other], &[]).unwrap();
        assert_eq!(joined, [table(&[("a", 1.0), ("b", 2.0), ("c", 3.0)])]);
        assert!(matches!(join.run(&[&one], &[]), Err(OperationError::Arity { found: 1, .. })));
        let scalar = DataRegion::Scalar(1.0);
        assert!(matches!(join.run(&[&one, &scalar], &[]), Err(OperationError::WrongElement(_))));
    }

    #[test]
    fn labeled_table_has_the_label_before_each_column() {
        let labeled = OPERATIONS[2].run(&[&table(&[("dice", 0.5), ("both-empty", 0.0)])], &[]).unwrap();
        assert_eq!(labeled, [table(&[("levelset: dice", 0.5), ("levelset: both-empty", 0.0)])]);
        assert!(matches!(OPERATIONS[1].run(&[], &[]), Err(OperationError::Arity { found: 0, .. })));
        assert!(OPERATIONS[1].run(&[&DataRegion::Scalar(1.0)], &[]).is_err());
    }
}
