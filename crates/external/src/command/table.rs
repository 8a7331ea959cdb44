//! Tables and scalars as CSV: a line of names and a line of numbers, or one number.

use csv::{ReaderBuilder, StringRecord, Trim, WriterBuilder};
use pleach_regions::{DataRegion, ElementType, Table};

/// Returns a region as file. Numbers have the shortest form that parses to the same value.
pub(super) fn encode(region: &DataRegion) -> Result<Vec<u8>, String> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    match region {
        DataRegion::Table(table) => {
            lines.push(table.columns().map(|(name, _)| name.to_owned()).collect());
            lines.push(table.columns().map(|(_, number)| number.to_string()).collect());
        }
        DataRegion::Scalar(number) => lines.push(vec![number.to_string()]),
        other => return Err(format!("a region of type {}; table and scalar are allowed", other.element())),
    }
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    for line in lines {
        writer.write_record(&line).map_err(|error| error.to_string())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

/// Reads a file. Returns the mistake with the allowed values.
pub(super) fn decode(element: ElementType, file: &[u8]) -> Result<DataRegion, String> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(file);
    let lines: Vec<StringRecord> =
        reader.records().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    match (element, lines.as_slice()) {
        (ElementType::Scalar, [line]) if line.len() == 1 => number(&line[0]).map(DataRegion::Scalar),
        (ElementType::Scalar, lines) => Err(format!("{}; one number is allowed", counted(lines))),
        (_, [names, numbers]) if names.len() == numbers.len() => {
            let mut columns: Vec<(&str, f64)> = Vec::new();
            for (name, text) in names.iter().zip(numbers) {
                if columns.iter().any(|(known, _)| *known == name) {
                    return Err(format!("column \"{name}\" twice; each name is allowed once"));
                }
                columns
                    .push((name, number(text).map_err(|mistake| format!("column \"{name}\": {mistake}"))?));
            }
            Ok(DataRegion::Table(Table::new(columns)))
        }
        (_, lines) => {
            Err(format!("{}; a line of names and a line of as many numbers are allowed", counted(lines)))
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("\"{text}\"; a number is allowed"))
}

fn counted(lines: &[StringRecord]) -> String {
    match lines {
        [] => "an empty file".to_owned(),
        [first, ..] => format!("{} lines, the first of {} fields", lines.len(), first.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_come_back(columns in proptest::collection::btree_map("[a-z,\" é]{0,3}x", any::<f64>(), 1..5)) {
            // A name has no spaces at its ends, which a table of another program may have for alignment.
            let columns: std::collections::BTreeMap<String, f64> =
                columns.into_iter().map(|(name, number)| (name.trim().to_owned(), number)).collect();
            let region = DataRegion::Table(Table::new(columns));
            let file = encode(&region).unwrap();
            let back = decode(ElementType::Table, &file).unwrap();
            prop_assert_eq!(encode(&back).unwrap(), file);
            let bits = |region: &DataRegion| -> Vec<(String, u64)> {
                let columns = region.table().unwrap().columns();
                columns.map(|(name, number)| (name.to_owned(), number.to_bits())).collect()
            };
            if !bits(&region).iter().any(|(_, number)| f64::from_bits(*number).is_nan()) {
                prop_assert_eq!(bits(&back), bits(&region));
            }
        }
    }

    #[test]
    fn mistakes_are_worded() {
        let table = |text: &str| decode(ElementType::Table, text.as_bytes()).unwrap_err();
        let lines = "a line of names and a line of as many numbers are allowed";
        assert_eq!(table(""), format!("an empty file; {lines}"));
        assert_eq!(table("a,b\n1\n"), format!("2 lines, the first of 2 fields; {lines}"));
        assert_eq!(table("a\n1\n2\n"), format!("3 lines, the first of 1 fields; {lines}"));
        assert_eq!(table("a,b\n1,x\n"), "column \"b\": \"x\"; a number is allowed");
        assert_eq!(table("a,a\n1,2\n"), "column \"a\" twice; each name is allowed once");
        let scalar = |text: &str| decode(ElementType::Scalar, text.as_bytes());
        assert_eq!(scalar("").unwrap_err(), "an empty file; one number is allowed");
        assert_eq!(scalar("1,2").unwrap_err(), "1 lines, the first of 2 fields; one number is allowed");
        assert_eq!(scalar("one").unwrap_err(), "\"one\"; a number is allowed");
        assert_eq!(scalar(" 0.1 ").unwrap(), DataRegion::Scalar(0.1));
    }
}
