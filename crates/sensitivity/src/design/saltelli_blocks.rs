//! Structure of a Saltelli design: the role of each row in the block of its base sample.
//!
//! Roles are computed from row numbers, so a design of millions of rows takes no memory here. Values and
//! responses are not used.

/// Role of a row in its block. Columns are indices into [`RowBlocks::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The first point of the base sample.
    A,
    /// A with this column of B: Saltelli's A_B^(i).
    AWithB(usize),
    /// B with this column of A: Saltelli's B_A^(i). Only in designs with second order.
    BWithA(usize),
    /// The second point of the base sample.
    B,
}

/// Row blocks of a design, one per base sample: A, A_B^(1) … A_B^(k), with second order B_A^(1) … B_A^(k),
/// and B. This is SALib's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBlocks {
    names: Vec<String>,
    samples: usize,
    second_order: bool,
}

impl RowBlocks {
    pub(crate) fn new(names: Vec<String>, samples: usize, second_order: bool) -> Self {
        Self { names, samples, second_order }
    }

    /// Names of the k varying parameters, in the order of the parameters.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of base samples n.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns whether the design has rows B_A^(i).
    #[must_use]
    pub fn has_second_order(&self) -> bool {
        self.second_order
    }

    /// Returns the number of rows of one block: k + 2, or 2k + 2 with second order.
    #[must_use]
    pub fn rows_per_sample(&self) -> usize {
        let mixed = if self.second_order { 2 * self.names.len() } else { self.names.len() };
        mixed + 2
    }

    /// Returns the number of rows of the design.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.samples * self.rows_per_sample()
    }

    /// Returns the index of the row with `role` in the block of `sample`, both from 0. `None` if the design
    /// has no such row.
    #[must_use]
    pub fn row(&self, sample: usize, role: Role) -> Option<usize> {
        let varying = self.names.len();
        let place = match role {
            Role::A => 0,
            Role::AWithB(column) if column < varying => 1 + column,
            Role::BWithA(column) if column < varying && self.second_order => 1 + varying + column,
            Role::B => self.rows_per_sample() - 1,
            Role::AWithB(_) | Role::BWithA(_) => return None,
        };
        (sample < self.samples).then(|| sample * self.rows_per_sample() + place)
    }

    /// Returns the base sample of a row and the row's role in its block. `None` beyond the last row.
    #[must_use]
    pub fn role(&self, row: usize) -> Option<(usize, Role)> {
        let (length, varying) = (self.rows_per_sample(), self.names.len());
        let role = match row % length {
            0 => Role::A,
            place if place == length - 1 => Role::B,
            place if place <= varying => Role::AWithB(place - 1),
            place => Role::BWithA(place - 1 - varying),
        };
        (row < self.rows()).then_some((row / length, role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(varying: usize, samples: usize, second_order: bool) -> RowBlocks {
        RowBlocks::new((0..varying).map(|place| format!("p{place}")).collect(), samples, second_order)
    }

    /// Order of SALib 1.6, `SALib.sample.sobol.sample`, D = 2.
    #[test]
    fn the_order_is_that_of_salib() {
        use Role::{A, AWithB, B, BWithA};
        let roles = |blocks: &RowBlocks| (0..8).map(|row| blocks.role(row)).collect::<Vec<_>>();
        let short = [A, AWithB(0), AWithB(1), B].map(|role| Some((0, role)));
        let next = [A, AWithB(0), AWithB(1), B].map(|role| Some((1, role)));
        assert_eq!(roles(&blocks(2, 2, false)), [short, next].concat());
        let long = [A, AWithB(0), AWithB(1), BWithA(0), BWithA(1), B].map(|role| Some((0, role)));
        assert_eq!(roles(&blocks(2, 1, true)), [&long[..], &[None, None]].concat());
    }

    #[test]
    fn every_row_has_one_role_and_every_role_one_row() {
        for (varying, samples, second_order) in [(1, 1, false), (1, 3, true), (4, 2, false), (3, 5, true)] {
            let blocks = blocks(varying, samples, second_order);
            let mixed = if second_order { 2 * varying } else { varying };
            assert_eq!(blocks.rows(), samples * (mixed + 2));
            for row in 0..blocks.rows() {
                let (sample, role) = blocks.role(row).unwrap();
                assert_eq!(blocks.row(sample, role), Some(row));
            }
            assert_eq!(blocks.role(blocks.rows()), None);
            assert_eq!(blocks.row(samples, Role::A), None);
            assert_eq!(blocks.row(0, Role::AWithB(varying)), None);
            assert_eq!(blocks.row(0, Role::BWithA(varying)), None);
            assert_eq!(blocks.row(0, Role::BWithA(0)).is_some(), second_order);
        }
    }
}
