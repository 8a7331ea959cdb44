//! Writes tables of objects: columns of integers, reals that may be missing, and texts, as CSV or Parquet.
//!
//! Rows are streamed to an open file, and the caller publishes it. Missing reals are empty fields of CSV and nulls of Parquet.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{Error, Seek, SeekFrom, Write};
use std::sync::Arc;

/// 65,536 rows of a row group: 15 columns take 8 MB in memory.
const GROUP_ROWS: usize = 1 << 16;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// 64-bit integers.
    Integer,
    /// Doubles, or missing.
    Real,
    /// Texts.
    Text,
    /// Bytes, in Parquet only.
    Bytes,
}

/// Field of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// An integer.
    Integer(i64),
    /// A real. `None` is missing.
    Real(Option<f64>),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// Open table. The end of the file is written by [`FrameWriter::finish`].
pub struct FrameWriter<W: Write + Seek + Send>(Sink<W>);

enum Sink<W: Write + Seek + Send> {
    Csv(Box<csv::Writer<W>>),
    Parquet(Box<Groups<W>>),
}

struct Groups<W: Write + Seek + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
}

enum Buffer {
    Integers(Vec<i64>),
    /// Present numbers, and for each row 1 if it has a number, else 0.
    Reals(Vec<f64>, Vec<i16>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Seek + Send> FrameWriter<W> {
    /// Starts a CSV table and writes its header.
    ///
    /// # Errors
    /// The error of the file.
    pub fn csv(file: W, columns: &[(&str, CellType)]) -> Result<Self, Error> {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(columns.iter().map(|(name, _)| name))?;
        Ok(Self(Sink::Csv(Box::new(writer))))
    }

    /// Starts a Parquet table, compressed by Snappy.
    ///
    /// # Errors
    /// The error of the file.
    pub fn parquet(file: W, columns: &[(&str, CellType)]) -> Result<Self, Error> {
        Self::parquet_with_metadata(file, columns, &[])
    }

    /// As [`FrameWriter::parquet`], with texts in the metadata of the file.
    ///
    /// # Errors
    /// The error of the file.
    pub fn parquet_with_metadata(
        file: W,
        columns: &[(&str, CellType)],
        metadata: &[(&str, String)],
    ) -> Result<Self, Error> {
        let groups = Groups::create(file, columns, metadata).map_err(cause)?;
        Ok(Self(Sink::Parquet(Box::new(groups))))
    }

    /// Writes a row: a cell of its type for each column.
    ///
    /// # Errors
    /// The error of the file.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        match &mut self.0 {
            Sink::Csv(writer) => {
                for cell in cells {
                    match cell {
                        Cell::Integer(number) => writer.write_field(number.to_string()),
                        Cell::Real(Some(number)) => writer.write_field(number.to_string()),
                        Cell::Real(None) => writer.write_field(""),
                        Cell::Text(text) => writer.write_field(text),
                        Cell::Bytes(_) => return Err(Error::other("bytes have no form in CSV")),
                    }?;
                }
                Ok(writer.write_record(None::<&[u8]>)?)
            }
            Sink::Parquet(groups) => groups.row(cells).map_err(cause),
        }
    }

    /// Writes the remaining rows and returns the file.
    ///
    /// # Errors
    /// The error of the file.
    pub fn finish(self) -> Result<W, Error> {
        match self.0 {
            Sink::Csv(writer) => writer.into_inner().map_err(|error| Error::other(error.to_string())),
            Sink::Parquet(groups) => groups.finish().map_err(cause),
        }
    }
}

impl<W: Write + Seek + Send> Groups<W> {
    fn create(
        file: W,
        columns: &[(&str, CellType)],
        metadata: &[(&str, String)],
    ) -> Result<Self, ParquetError> {
        let field = |(name, cell): &(&str, CellType)| {
            let (physical, logical, repetition) = match cell {
                CellType::Integer => (Physical::INT64, None, Repetition::REQUIRED),
                CellType::Real => (Physical::DOUBLE, None, Repetition::OPTIONAL),
                CellType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
                CellType::Bytes => (Physical::BYTE_ARRAY, None, Repetition::REQUIRED),
            };
            let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
            field.with_logical_type(logical).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        for (key, value) in metadata {
            writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
        }
        let buffer = |(_, cell): &(&str, CellType)| match cell {
            CellType::Integer => Buffer::Integers(Vec::new()),
            CellType::Real => Buffer::Reals(Vec::new(), Vec::new()),
            CellType::Text | CellType::Bytes => Buffer::Texts(Vec::new()),
        };
        Ok(Self { writer, columns: columns.iter().map(buffer).collect(), rows: 0 })
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ParquetError> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Buffer::Integers(numbers), Cell::Integer(number)) => numbers.push(*number),
                (Buffer::Reals(numbers, present), Cell::Real(number)) => {
                    numbers.extend(number);
                    present.push(i16::from(number.is_some()));
                }
                (Buffer::Texts(texts), Cell::Text(text)) => texts.push(ByteArray::from(*text)),
                (Buffer::Texts(texts), Cell::Bytes(bytes)) => texts.push(ByteArray::from(bytes.to_vec())),
                _ => return Err(ParquetError::General("a cell of another type than its column".to_owned())),
            }
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                Buffer::Integers(numbers) => {
                    writer.typed::<Int64Type>().write_batch(numbers, None, None)?;
                    numbers.clear();
                }
                Buffer::Reals(numbers, present) => {
                    writer.typed::<DoubleType>().write_batch(numbers, Some(present), None)?;
                    numbers.clear();
                    present.clear();
                }
                Buffer::Texts(texts) => {
                    writer.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                    texts.clear();
                }
            }
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<W, ParquetError> {
        if self.rows > 0 {
            self.group()?;
        }
        let columns = self.columns.len();
        let mut file = self.writer.into_inner()?;
        with_type_order(&mut file, columns)?;
        Ok(file)
    }
}

/// Changes the order of each column's statistics to that of its type, in the end of a written file.
///
/// The crate `parquet` 60 states the order IEEE 754 for doubles, which polars 1.36 rejects as "Invalid thrift". Both orders mean the
/// same for numbers that are not NaN. The orders are the last field of the metadata: a union of one empty structure for each column,
/// of 3 bytes, and the end of the metadata, before its length and the magic number.
pub(crate) fn with_type_order(file: &mut (impl Write + Seek), columns: usize) -> Result<(), Error> {
    const TYPE_ORDER: [u8; 3] = [0x1c, 0, 0];
    const END_BYTES: i64 = 1 + 4 + 4;
    let orders = TYPE_ORDER.repeat(columns);
    file.seek(SeekFrom::End(-(orders.len() as i64) - END_BYTES))?;
    file.write_all(&orders)?;
    file.seek(SeekFrom::End(0)).map(drop)
}

/// Returns the error of the file below, where there is one.
pub(crate) fn cause(error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::other(cause),
        },
        other => Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const COLUMNS: [(&str, CellType); 3] =
        [("class", CellType::Text), ("label", CellType::Integer), ("x", CellType::Real)];

    #[test]
    fn csv_quotes_texts_and_leaves_missing_numbers_empty() {
        let mut frame = FrameWriter::csv(Cursor::new(Vec::new()), &COLUMNS).unwrap();
        frame.row(&[Cell::Text("a, b"), Cell::Integer(-3), Cell::Real(None)]).unwrap();
        frame.row(&[Cell::Text("c"), Cell::Integer(4), Cell::Real(Some(0.1))]).unwrap();
        let text = String::from_utf8(frame.finish().unwrap().into_inner()).unwrap();
        assert_eq!(text, "class,label,x\n\"a, b\",-3,\nc,4,0.1\n");
    }

    #[test]
    fn parquet_has_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let mut frame = FrameWriter::parquet(std::fs::File::create(&path).unwrap(), &COLUMNS).unwrap();
        // More rows than a group.
        let rows = GROUP_ROWS as i64 + 2;
        for row in 0..rows {
            let x = (row % 2 == 0).then_some(row as f64 / 4.0);
            frame.row(&[Cell::Text("nucleus"), Cell::Integer(row), Cell::Real(x)]).unwrap();
        }
        frame.finish().unwrap();
        let parquet = crate::parquet::Parquet::open(&path).unwrap();
        assert_eq!(parquet.names(), ["class", "label", "x"]);
        let wanted = [crate::ColumnRequest::Numbers(1), crate::ColumnRequest::Numbers(2)];
        let read = parquet.read(&wanted).unwrap();
        let [crate::Column::Numbers(labels), crate::Column::Numbers(xs)] = &read.columns[..] else {
            panic!()
        };
        assert_eq!((read.rows as i64, labels[65_537], xs[65_536]), (rows, 65_537.0, 16_384.0));
        assert!(xs[65_537].is_nan());
    }

    #[test]
    fn cell_of_another_type_is_refused() {
        let mut frame = FrameWriter::parquet(Cursor::new(Vec::new()), &COLUMNS).unwrap();
        assert!(frame.row(&[Cell::Integer(1), Cell::Integer(1), Cell::Real(None)]).is_err());
    }
}
