//! Operations on tables of responses: joined tables, for studies whose responses several stages measure, and labels of columns,
//! for studies that measure the results of two segmentations.
//!
//! Both segmentations are compared with the reference by the same operations, so their metrics have equal names. The
//! arguments of an operation are numbers, so each label is an operation.

use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{DeclaredOperation, JOIN, OperationError, Port};

/// The operations: columns of all inputs, in order, with a label before each name.
pub(super) const OPERATIONS: [DeclaredOperation; 3] = [
    DeclaredOperation {
        name: JOIN.0,
        version: JOIN.1,
        arguments: &[],
        inputs: &[
            Port { name: "first", element: ElementType::Table },
            Port { name: "second", element: ElementType::Table },
        ],
        outputs: &[Port { name: "both", element: ElementType::Table }],
        cost_seconds: |_| 1e-6,
        memory_bytes: |pixels| ElementType::Table.bytes(pixels),
        run: |inputs, _| labeled("", inputs),
    },
    LABEL_NUCLEI,
    DeclaredOperation {
        name: "tables.label-levelset",
        run: |inputs, _| labeled("levelset: ", inputs),
        ..LABEL_NUCLEI
    },
];

const LABEL_NUCLEI: DeclaredOperation = DeclaredOperation {
    name: "tables.label-nuclei",
    version: 1,
    arguments: &[],
    inputs: &[Port { name: "table", element: ElementType::Table }],
    outputs: &[Port { name: "labeled", element: ElementType::Table }],
    cost_seconds: |_| 1e-6,
    memory_bytes: |pixels| ElementType::Table.bytes(pixels),
    run: |inputs, _| labeled("nuclei: ", inputs),
};

fn labeled(label: &str, inputs: &[&DataRegion]) -> Result<Vec<DataRegion>, OperationError> {
    let tables: Vec<&Table> = inputs.iter().map(|input| input.table()).collect::<Result<_, _>>()?;
    let columns = tables.iter().flat_map(|table| table.columns());
    let labeled = columns.map(|(name, value)| (format!("{label}{name}"), value));
    Ok(vec![DataRegion::Table(Table::new(labeled))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::Operation;

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
