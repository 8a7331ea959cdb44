//! Parquet, by the `parquet` crate without Arrow: flat columns of integers, reals, booleans and texts.
//!
//! Reads files of pandas, polars and other programs, compressed by Snappy or Zstandard or uncompressed. Writes columns
//! of doubles and 64-bit integers without nulls, compressed by Snappy. Nested columns, dates and decimals are rejected.
//! Sizes claimed by the file allocate nothing beyond a batch.

use crate::table_data::{Column, ColumnRequest, LabelColumn, TableData};
use crate::{MAX_ROWS, TableProblem};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};
use pleach_workflow::{Value, ValueType};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Values decoded at once.
const BATCH: usize = 1 << 16;

/// Maximum rows of a written row group: 15 columns take 15 MB in memory.
const GROUP_ROWS: usize = 1 << 17;

/// 512 MiB: maximum size of a written row group, for tables with thousands of columns (3,355 rows of 20,000 columns).
const GROUP_BYTES: usize = 512 << 20;

/// Bytes of file metadata for each column of each group, held until the end of the file. `tests/memory.rs` measured
/// 1,609 bytes.
const CHUNK_BYTES: u64 = 2_048;

/// Returns the rows of a group with this many columns.
fn group_rows(columns: usize) -> usize {
    (GROUP_BYTES / size_of::<f64>() / columns.max(1)).clamp(1, GROUP_ROWS)
}

/// Returns the maximum bytes that a writer holds for a table of this size.
pub(crate) fn writer_bytes(rows: u64, columns: usize) -> u64 {
    let (group, all) = (group_rows(columns) as u64, columns as u64);
    // Lists double as they grow.
    let held = group.min(rows).next_power_of_two();
    let values = held.saturating_mul(all).saturating_mul(size_of::<f64>() as u64);
    values.saturating_add(rows.div_ceil(group).saturating_mul(all).saturating_mul(CHUNK_BYTES))
}

/// An open Parquet file.
pub(crate) struct Parquet {
    reader: SerializedFileReader<File>,
    names: Vec<String>,
    /// Index in the file of each named column.
    places: Vec<usize>,
}

fn damaged(error: impl std::fmt::Display) -> TableProblem {
    TableProblem::Parquet(error.to_string())
}

impl Parquet {
    pub(crate) fn open(file: &Path) -> Result<Self, TableProblem> {
        let reader = SerializedFileReader::new(File::open(file)?).map_err(|error| match error {
            ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
                Ok(error) => TableProblem::Unreadable(*error),
                Err(cause) => damaged(cause),
            },
            other => damaged(other),
        })?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let (mut names, mut places): (Vec<String>, Vec<usize>) = Default::default();
        for (place, column) in schema.columns().iter().enumerate() {
            let name = column.path().string();
            // The index column of pandas is no user column.
            if name.starts_with("__index_level_") {
                continue;
            }
            if names.contains(&name) {
                return Err(TableProblem::Doubled { column: pleach_workflow::text::quoted(&name, 80) });
            }
            names.push(name);
            places.push(place);
        }
        if names.is_empty() {
            return Err(damaged("no columns"));
        }
        Ok(Self { reader, names, places })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn read(self, wanted: &[ColumnRequest]) -> Result<TableData, TableProblem> {
        let rows = usize::try_from(self.reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        // The count is a claim of the file: checked here, and again for each batch.
        if rows > MAX_ROWS {
            return Err(TableProblem::TooManyRows);
        }
        let columns = wanted.iter().map(|wanted| match *wanted {
            ColumnRequest::Numbers(column) => self.numbers(column).map(Column::Numbers),
            ColumnRequest::Labels(column) => self.labels(column),
        });
        let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
        let length = |column: &Column| match column {
            Column::Numbers(numbers) => numbers.len(),
            Column::Labels { of, .. } => of.len(),
        };
        if columns.iter().any(|column| length(column) != rows) {
            return Err(damaged(format!("a column does not have the {rows} rows of the metadata")));
        }
        Ok(TableData { columns, rows, first_line: None })
    }

    fn readers(&self, column: usize) -> impl Iterator<Item = Result<ColumnReader, TableProblem>> + '_ {
        let place = self.places[column];
        (0..self.reader.num_row_groups()).map(move |group| {
            let group = self.reader.get_row_group(group).map_err(damaged)?;
            group.get_column_reader(place).map_err(damaged)
        })
    }

    fn numbers(&self, column: usize) -> Result<Vec<f64>, TableProblem> {
        let schema = self.reader.metadata().file_metadata().schema_descr().column(self.places[column]);
        let unsigned = numeric(&schema).ok_or_else(|| TableProblem::NotNumbers {
            column: pleach_workflow::text::quoted(&self.names[column], 80),
            found: content_of(&schema),
        })?;
        let mut numbers = Vec::new();
        let nulls = schema.max_def_level();
        for reader in self.readers(column) {
            let before = numbers.len();
            let all = &mut numbers;
            match reader? {
                ColumnReader::BoolColumnReader(mut reader) => {
                    drain(&mut reader, nulls, all, |value| f64::from(u8::from(*value)))
                }
                ColumnReader::Int32ColumnReader(mut reader) => drain(&mut reader, nulls, all, |value| {
                    if unsigned { f64::from(value.cast_unsigned()) } else { f64::from(*value) }
                }),
                ColumnReader::Int64ColumnReader(mut reader) => drain(&mut reader, nulls, all, |value| {
                    if unsigned { value.cast_unsigned() as f64 } else { *value as f64 }
                }),
                ColumnReader::FloatColumnReader(mut reader) => {
                    drain(&mut reader, nulls, all, |value| f64::from(*value))
                }
                ColumnReader::DoubleColumnReader(mut reader) => {
                    drain(&mut reader, nulls, all, |value| *value)
                }
                _ => Err(damaged("the type of a column differs from the schema")),
            }?;
            if let Some(row) = numbers[before..].iter().position(|number| is_no_number(*number)) {
                let row = before + row;
                let column = pleach_workflow::text::quoted(&self.names[column], 80);
                let problem = format!(
                    "{} is not a finite number; null is allowed for a missing number, such as that of a failed evaluation",
                    if numbers[row].is_nan() { "NaN".to_owned() } else { numbers[row].to_string() }
                );
                return Err(TableProblem::NoNumber { row: row + 1, is_line: false, column, problem });
            }
        }
        Ok(numbers)
    }

    fn labels(&self, column: usize) -> Result<Column, TableProblem> {
        let schema = self.reader.metadata().file_metadata().schema_descr().column(self.places[column]);
        if schema.physical_type() != Physical::BYTE_ARRAY || schema.max_rep_level() > 0 {
            // Tiles may have numbers as names.
            let mut labels = LabelColumn::default();
            self.numbers(column)?.iter().for_each(|number| labels.push(&number.to_string()));
            return Ok(labels.finish());
        }
        let mut labels = LabelColumn::default();
        for reader in self.readers(column) {
            let ColumnReader::ByteArrayColumnReader(mut reader) = reader? else {
                return Err(damaged("the type of a column differs from the schema"));
            };
            batches(&mut reader, schema.max_def_level(), |value| {
                let text = value.map(|value| String::from_utf8_lossy(value.data()).into_owned());
                labels.push(&text.unwrap_or_default());
                labels.len()
            })?;
        }
        Ok(labels.finish())
    }
}

/// A missing number: a distinct NaN, so that it differs from a NaN in the file.
const MISSING: u64 = 0x7ff8_0000_6e75_6c6c;

fn is_no_number(number: f64) -> bool {
    !number.is_finite() && number.to_bits() != MISSING
}

/// Returns whether the numbers of a column are unsigned. Returns `None` for a column without numbers.
fn numeric(schema: &ColumnDescriptor) -> Option<bool> {
    let plain = schema.max_rep_level() == 0 && schema.path().parts().len() == 1;
    match (schema.physical_type(), schema.logical_type_ref()) {
        _ if !plain => None,
        (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _) => Some(false),
        (Physical::INT32 | Physical::INT64, None) => {
            use parquet::basic::ConvertedType as Old;
            match schema.converted_type() {
                Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64 => Some(false),
                Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64 => Some(true),
                _ => None,
            }
        }
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(of))) => Some(!of.is_signed),
        _ => None,
    }
}

fn content_of(schema: &ColumnDescriptor) -> String {
    match schema.physical_type() {
        _ if schema.max_rep_level() > 0 || schema.path().parts().len() > 1 => {
            "lists or structures".to_owned()
        }
        Physical::BYTE_ARRAY => "texts".to_owned(),
        _ => match schema.logical_type_ref() {
            Some(logical) => format!("values of the type {}", word(&format!("{logical:?}"))),
            None => format!("values of the type {:?}", schema.converted_type()),
        },
    }
}

/// Returns the first word of a description.
fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

/// Appends all numbers of a row group's column. Missing ones become [`MISSING`].
fn drain<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    nulls: i16,
    all: &mut Vec<f64>,
    number: impl Fn(&T::T) -> f64,
) -> Result<(), TableProblem> {
    batches(reader, nulls, |value| {
        all.push(value.map_or(f64::from_bits(MISSING), &number));
        all.len()
    })
}

/// Calls `each` with every value of a row group's column, or with `None` for a null. `each` returns the number of rows
/// so far.
fn batches<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    nulls: i16,
    mut each: impl FnMut(Option<&T::T>) -> usize,
) -> Result<(), TableProblem> {
    let (mut values, mut levels): (Vec<T::T>, Vec<i16>) = Default::default();
    loop {
        values.clear();
        levels.clear();
        let (rows, found, _) =
            reader.read_records(BATCH, Some(&mut levels), None, &mut values).map_err(damaged)?;
        if rows == 0 {
            return Ok(());
        }
        let mut found = values.iter().take(found);
        for row in 0..rows {
            let is_null = nulls > 0 && levels.get(row).is_some_and(|level| *level < nulls);
            if each(if is_null { None } else { found.next() }) > MAX_ROWS {
                return Err(TableProblem::TooManyRows);
            }
        }
    }
}

/// A Parquet file being written.
pub(crate) struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
    /// Rows held before a row group is written.
    group_rows: usize,
}

enum Buffer {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

impl<W: Write + Send> ParquetWriter<W> {
    pub(crate) fn create(file: W, columns: &[(String, ValueType)]) -> Result<Self, ParquetError> {
        let field = |(name, value_type): &(String, ValueType)| {
            let physical = match value_type {
                ValueType::Integer => Physical::INT64,
                ValueType::Real => Physical::DOUBLE,
            };
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        let group_rows = group_rows(columns.len());
        let buffer = |(_, value_type): &(String, ValueType)| match value_type {
            ValueType::Integer => Buffer::Integers(Vec::new()),
            ValueType::Real => Buffer::Reals(Vec::new()),
        };
        Ok(Self { writer, columns: columns.iter().map(buffer).collect(), rows: 0, group_rows })
    }

    pub(crate) fn row(&mut self, values: impl Iterator<Item = Value>) -> Result<(), ParquetError> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, value) {
                (Buffer::Integers(numbers), Value::Integer(number)) => numbers.push(number),
                (Buffer::Integers(numbers), Value::Real(number)) => numbers.push(number.get() as i64),
                (Buffer::Reals(numbers), value) => numbers.push(value.as_f64()),
            }
        }
        self.rows += 1;
        if self.rows == self.group_rows { self.group() } else { Ok(()) }
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
                Buffer::Reals(numbers) => {
                    writer.typed::<DoubleType>().write_batch(numbers, None, None)?;
                    numbers.clear();
                }
            }
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Writes the remaining rows and the end of the file.
    pub(crate) fn finish(mut self) -> Result<W, ParquetError> {
        if self.rows > 0 {
            self.group()?;
        }
        self.writer.into_inner()
    }
}
