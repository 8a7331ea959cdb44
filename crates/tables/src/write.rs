//! Parameter sets on their way into a file, which is there whole or not at all.

use crate::parquet::{ParquetWriter, writer_bytes as parquet_bytes};
use crate::{FileError, Format, TableProblem};
use parquet::errors::ParquetError;
use pleach_workflow::{Value, ValueType};
use std::fs::{self, File};
use std::io::{BufWriter, Error, Write};
use std::path::{Path, PathBuf};

/// Writes rows beside the file, and puts them in its place at the end. Without an end nothing is left.
pub struct Writer {
    file: PathBuf,
    part: PathBuf,
    sink: Option<Sink>,
}

enum Sink {
    Text { file: BufWriter<File>, separator: char },
    Parquet(Box<ParquetWriter<BufWriter<File>>>),
}

impl Writer {
    /// Begins a table of these columns, by the ending of the file's name.
    ///
    /// # Errors
    /// [`FileError`] when nothing can be written there.
    pub fn create(file: &Path, columns: &[(String, ValueType)]) -> Result<Self, FileError> {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = file.with_file_name(name);
        let fail = |error| TableProblem::Unwritable(error).at(file);
        if file.is_dir() {
            return Err(fail(Error::other("it is a folder")));
        }
        let opened = BufWriter::new(File::create(&part).map_err(fail)?);
        let mut writer = Self { file: file.to_owned(), part, sink: None };
        writer.sink = Some(match Format::of(file) {
            Format::Parquet => {
                let sink = ParquetWriter::create(opened, columns).map_err(|error| fail(cause(error)))?;
                Sink::Parquet(Box::new(sink))
            }
            _ => Self::text(file, opened, columns).map_err(fail)?,
        });
        Ok(writer)
    }

    /// Most bytes that writing a table of so many rows and columns holds: little, but for row groups of Parquet.
    #[must_use]
    pub fn bytes(file: &Path, rows: u64, columns: usize) -> u64 {
        match Format::of(file) {
            Format::Parquet => parquet_bytes(rows, columns),
            _ => 0,
        }
    }

    fn text(file: &Path, opened: BufWriter<File>, columns: &[(String, ValueType)]) -> std::io::Result<Sink> {
        let tabs = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tsv"));
        let separator = if tabs { '\t' } else { ',' };
        // Names may hold anything; numbers need no quotes.
        let mut header = csv::WriterBuilder::new().delimiter(separator as u8).from_writer(opened);
        header.write_record(columns.iter().map(|(name, _)| name))?;
        let file = header.into_inner().map_err(|error| Error::other(error.to_string()))?;
        Ok(Sink::Text { file, separator })
    }

    /// Writes a row: a value a column, in their order.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn row(&mut self, values: impl Iterator<Item = Value>) -> Result<(), FileError> {
        let written = match &mut self.sink {
            Some(Sink::Text { file, separator }) => text_row(file, *separator, values),
            Some(Sink::Parquet(sink)) => sink.row(values).map_err(cause),
            None => Ok(()),
        };
        written.map_err(|error| TableProblem::Unwritable(error).at(&self.file))
    }

    /// Puts the file in its place, for good.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written to its end.
    pub fn finish(mut self) -> Result<(), FileError> {
        let written = match self.sink.take() {
            Some(Sink::Text { file, .. }) => Ok(file),
            Some(Sink::Parquet(sink)) => sink.finish().map_err(cause),
            None => return Ok(()),
        };
        let published = written.and_then(|file| {
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&self.part, &self.file)?;
            // The rename is durable once the folder is. That of a mere name is this one.
            let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        });
        published.map_err(|error| TableProblem::Unwritable(error).at(&self.file))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After the end it is not there.
        let _ = fs::remove_file(&self.part);
    }
}

fn text_row(
    file: &mut BufWriter<File>,
    separator: char,
    values: impl Iterator<Item = Value>,
) -> std::io::Result<()> {
    for (place, value) in values.enumerate() {
        if place > 0 {
            write!(file, "{separator}")?;
        }
        // The shortest form that reads back.
        write!(file, "{value}")?;
    }
    writeln!(file)
}

fn cause(error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::other(cause),
        },
        other => Error::other(other),
    }
}
