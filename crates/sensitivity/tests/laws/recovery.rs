//! A design is recovered from its bare rows, and an error names a row that does not fit it.

use crate::spaces::{space, varying};
use pleach_sensitivity::design_detection::{ParameterColumns, StructureError, curves, row_blocks};
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::saltelli_blocks::Role;
use pleach_sensitivity::sampling::fast::{self, Fast};
use pleach_sensitivity::sampling::morris::{self, Morris};
use pleach_sensitivity::sampling::saltelli::{self, Saltelli};
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{BasePoints, Domain, Parameter, Value};
use proptest::prelude::*;

fn columns(parameters: &[Parameter], rows: &[Vec<Value>]) -> Vec<Vec<f64>> {
    (0..parameters.len()).map(|column| rows.iter().map(|row| row[column].as_f64()).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn row_blocks_are_found(
        parameters in space(), samples in 1_u32..12, second_order in any::<bool>(), seed in any::<u64>(),
        place in any::<prop::sample::Index>(), by in prop::sample::select(vec![-1.0, 0.5, 1e-9]),
    ) {
        let plan = Saltelli { samples, second_order, base: BasePoints::Sobol, seed };
        let design = saltelli::sample(&parameters, &plan).unwrap();
        let drawn = design.row_blocks().unwrap();
        let mut columns = columns(&parameters, &design.evaluations);
        let alone = Groups::alone(&parameters);
        let sets = ParameterColumns { parameters: &parameters, columns: &columns };
        prop_assert_eq!(row_blocks(sets, &alone, Some(second_order)), Ok(drawn.clone()));
        if parameters.iter().any(|parameter| matches!(parameter.domain, Domain::Continuous { .. })) {
            prop_assert_eq!(row_blocks(sets, &alone, None), Ok(drawn.clone()));
        }

        // Changes a value in a row that combines two others.
        let mixed: Vec<usize> =
            (0..drawn.rows()).filter(|&row| !matches!(drawn.role(row), Some((_, Role::A | Role::B)))).collect();
        let row = mixed[place.index(mixed.len())];
        let of = varying(&parameters);
        let column = of[place.index(of.len())];
        columns[column][row] += by;
        let found = row_blocks(ParameterColumns { parameters: &parameters, columns: &columns }, &alone, Some(second_order));
        let Err(StructureError::NotInBlock { evaluation, name, .. }) = found else {
            return Err(TestCaseError::fail(format!("{found:?}")));
        };
        prop_assert_eq!((evaluation, &name), (row + 1, &parameters[column].name));
    }

    #[test]
    fn curves_are_found(parameters in space(), samples in 65_u32..150, seed in any::<u64>()) {
        let (design, drawn) = fast::sample(&parameters, &Fast { samples, harmonics: 4, seed }).unwrap();
        let columns = columns(&parameters, &design.evaluations);
        prop_assert_eq!(curves(ParameterColumns { parameters: &parameters, columns: &columns }, 4), Ok(drawn));
    }

    /// Trajectories recovered from columns equal those recovered from rows.
    #[test]
    fn trajectories_are_found(parameters in space(), trajectories in 1_u32..8, seed in any::<u64>()) {
        let design = morris::sample(&parameters, &Morris { trajectories, levels: 8, seed }).unwrap();
        let columns = columns(&parameters, &design.evaluations);
        let value = |row: usize, column: usize| {
            Value::from_f64(columns[column][row], parameters[column].value_type).unwrap()
        };
        let alone = Groups::alone(&parameters);
        let found = Trajectories::recover_rows(&parameters, &alone, columns[0].len(), value, Some(8));
        prop_assert_eq!(found, Trajectories::recover(&parameters, &design.evaluations, Some(8)));
    }
}
