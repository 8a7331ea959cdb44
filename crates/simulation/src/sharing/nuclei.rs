//! The segmentation of the nuclei workflow, with measured classes of equal outputs.

use super::study::{SharedStudy, SharedTask};
use pleach_dispatch::plan::ReuseScope;

/// Column of the table, first output, number of outputs, and inputs as (position, output).
type Row = (usize, usize, usize, &'static [Option<(usize, usize)>]);

/// Tasks t2 t3 t4 t1 t5 t6 t7: the order with the most sharing in a tree.
const ORDER: [Row; 7] = [
    (1, 2, 2, &[None]),
    (2, 4, 2, &[Some((0, 0)), Some((0, 1))]),
    (3, 6, 1, &[Some((1, 1))]),
    (0, 0, 2, &[None]),
    (4, 7, 1, &[Some((1, 0)), Some((2, 0)), Some((3, 0)), Some((3, 1))]),
    (5, 8, 1, &[Some((4, 0)), None]),
    (6, 9, 1, &[Some((5, 0))]),
];

impl SharedStudy {
    /// Creates a study of the segmentation from a table of bench `value_classes` of `pleach-pathology`. `seconds` has the
    /// times of t1 to t7, `region_bytes` the size of each output. Returns `None` if a line is not one of 17 numbers.
    #[must_use]
    pub fn nuclei(table: &str, scope: ReuseScope, seconds: [f64; 7], region_bytes: u64) -> Option<Self> {
        let task = |(column, first_output, outputs, reads): &Row| SharedTask {
            column: *column,
            first_output: *first_output,
            outputs: *outputs,
            reads: reads.to_vec(),
            seconds: seconds[*column],
        };
        let row = |line: &str| {
            let numbers: Option<Vec<u32>> = line.split(' ').map(|number| number.parse().ok()).collect();
            numbers.filter(|numbers| numbers.len() == 17)
        };
        let rows: Option<Vec<Vec<u32>>> = table.lines().map(row).collect();
        Some(Self::new(ORDER.iter().map(task).collect(), rows?, scope, region_bytes))
    }
}
