//! Operation that joins two tables, for studies whose responses several stages measure.

use pleach_regions::{DataRegion, ElementType, Table, WrongElement};
use pleach_workflow::{Argument, JOIN, Operation, OperationError, Port, Value};

const INPUTS: [Port; 2] = [
    Port { name: "first", element: ElementType::Table },
    Port { name: "second", element: ElementType::Table },
];

const OUTPUTS: [Port; 1] = [Port { name: "both", element: ElementType::Table }];

/// Join operation: the columns of the first table, then those of the second.
pub(super) struct Join;

impl Operation for Join {
    fn name(&self) -> &'static str {
        JOIN.0
    }

    fn version(&self) -> u32 {
        JOIN.1
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
        let [first, second] = inputs else {
            return Err(OperationError::Arity { what: "inputs", wanted: 2, found: inputs.len() });
        };
        let columns = table(first)?.columns().chain(table(second)?.columns());
        Ok(vec![DataRegion::Table(Table::new(columns))])
    }
}

fn table(region: &DataRegion) -> Result<&Table, WrongElement> {
    match region {
        DataRegion::Table(table) => Ok(table),
        other => Err(WrongElement { expected: ElementType::Table, found: other.element() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_table_has_the_columns_of_both_in_order() {
        let table = |columns: &[(&str, f64)]| DataRegion::Table(Table::new(columns.iter().copied()));
        let (one, other) = (table(&[("a", 1.0), ("b", 2.0)]), table(&[("c", 3.0)]));
        let joined = Join.run(&[&one, &other], &[]).unwrap();
        assert_eq!(joined, [table(&[("a", 1.0), ("b", 2.0), ("c", 3.0)])]);
        assert!(matches!(Join.run(&[&one], &[]), Err(OperationError::Arity { found: 1, .. })));
        let scalar = DataRegion::Scalar(1.0);
        assert!(matches!(Join.run(&[&one, &scalar], &[]), Err(OperationError::WrongElement(_))));
    }
}
