//! Encodes tables, objects, points, ragged arrays and scalars as CSV with a header line. Numbers are written with
//! enough digits to read the same values again.

use pleach_regions::{AnnotatedObjects, DataRegion};

/// Column names of coordinates.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Encodes a region with rows.
pub(super) fn bytes(region: &DataRegion) -> Result<Vec<u8>, String> {
    match region {
        DataRegion::Table(table) => {
            let (names, numbers): (Vec<_>, Vec<_>) = table.columns().unzip();
            if names.is_empty() {
                return Ok(Vec::new());
            }
            write(&names, [numbers.iter().map(f64::to_string).collect()])
        }
        DataRegion::Objects(objects) => of_objects(objects),
        DataRegion::Points(points) => {
            let rows = points.iter().map(|point| point.iter().map(f64::to_string).collect());
            write(&AXES[..usize::from(points.axes())], rows)
        }
        DataRegion::Ragged(ragged) => {
            let rows = (0..ragged.len()).filter_map(|row| Some((row, ragged.row(row)?)));
            let values = rows.flat_map(|(row, places)| {
                places.enumerate().filter_map(move |(place, of_all)| {
                    let value = ragged.values().get_f64(of_all)?;
                    Some(vec![row.to_string(), place.to_string(), value.to_string()])
                })
            });
            write(&["row", "place", "value"], values)
        }
        DataRegion::Scalar(value) => write(&["value"], [vec![value.to_string()]]),
        other => Err(format!("a region of type {} has no rows", other.element())),
    }
}

/// Column of an object's class.
const CLASS: &str = "class";

/// Encodes one row per object: its class and its numbers. Unknown numbers (NaN) are empty fields.
fn of_objects(objects: &AnnotatedObjects) -> Result<Vec<u8>, String> {
    let columns = objects.columns().iter().map(String::as_str);
    let names: Vec<&str> = std::iter::once(CLASS).chain(columns).collect();
    let number = |value: &f64| if value.is_nan() { String::new() } else { value.to_string() };
    let rows = objects.iter().map(|object| {
        std::iter::once(object.class.to_owned()).chain(object.numbers.iter().map(number)).collect()
    });
    write(&names, rows)
}

fn write(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(names).map_err(|error| error.to_string())?;
    for row in rows {
        writer.write_record(&row).map_err(|error| error.to_string())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{Points, RaggedArray, Table};

    fn text(region: &DataRegion) -> String {
        String::from_utf8(bytes(region).unwrap()).unwrap()
    }

    #[test]
    fn objects_have_a_row_each() {
        let mut objects = AnnotatedObjects::new(["area", "blue,mean"]).unwrap();
        objects.push_box([0.0; 2], [2.0; 2], "nucleus", &[4.0, 0.1 + 0.2]).unwrap();
        objects.push_box([0.0; 2], [1.0; 2], "mitosis", &[1.0, f64::NAN]).unwrap();
        let expected = "class,area,\"blue,mean\"\nnucleus,4,0.30000000000000004\nmitosis,1,\n";
        assert_eq!(text(&DataRegion::Objects(Box::new(objects))), expected);
        assert_eq!(text(&DataRegion::Objects(Box::default())), "class\n");
    }

    #[test]
    fn rows_are_as_written_by_hand() {
        let table = Table::new([("dice", 0.1 + 0.2), ("a,b", f64::NAN)]);
        assert_eq!(text(&DataRegion::Table(table)), "dice,\"a,b\"\n0.30000000000000004,NaN\n");
        let points = Points::new(3, vec![1.0, 2.5, -3.0]).unwrap();
        assert_eq!(text(&DataRegion::Points(points)), "x,y,z\n1,2.5,-3\n");
        let ragged = RaggedArray::new(vec![1, 1, 3], vec![7_i32, 8, -9].into()).unwrap();
        assert_eq!(text(&DataRegion::Ragged(ragged)), "row,place,value\n0,0,7\n2,0,8\n2,1,-9\n");
        assert_eq!(text(&DataRegion::Scalar(1e300)).lines().count(), 2);
    }
}
