//! Writes parameter sets to a file with atomic publish.

use crate::frame::{cause, with_type_order};
use crate::parquet::{ParquetWriter, writer_bytes as parquet_bytes};
use crate::{FileError, Format, TableProblem};
use pleach_workflow::{Value, ValueType};
use std::fs::{self, File};
use std::io::{BufWriter, Error, Write};
use std::path::{Path, PathBuf};

/// Writes rows to a temporary file, which replaces the file at the end. A writer dropped before the end leaves no file.
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
    /// Starts a table of these columns. The file extension selects the format.
    ///
    /// # Errors
    /// Returns a [`FileError`] if the file cannot be created.
    pub fn create(file: &Path, columns: &[(String, ValueType)]) -> Result<Self, FileError> {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = file.with_file_name(name);
        let fail = |error| TableProblem::Unwritable(error).at(file);
        if file.is_dir() {
            return Err(fail(Error::other("it is a folder")));
        }
        // In the folder of the result, because a rename cannot cross file systems.
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

    /// Returns the maximum bytes held while writing a table of this size: 0 except for row groups of Parquet.
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
        // Names may contain separators and need quotes. Numbers do not.
        let mut header = csv::WriterBuilder::new().delimiter(separator as u8).from_writer(opened);
        header.write_record(columns.iter().map(|(name, _)| name))?;
        let file = header.into_inner().map_err(|error| Error::other(error.to_string()))?;
        Ok(Sink::Text { file, separator })
    }

    /// Writes a row: one value per column, in their order.
    ///
    /// # Errors
    /// Returns a [`FileError`] if the row cannot be written.
    pub fn row(&mut self, values: impl Iterator<Item = Value>) -> Result<(), FileError> {
        let written = match &mut self.sink {
            Some(Sink::Text { file, separator }) => text_row(file, *separator, values),
            Some(Sink::Parquet(sink)) => sink.row(values).map_err(cause),
            None => Ok(()),
        };
        written.map_err(|error| TableProblem::Unwritable(error).at(&self.file))
    }

    /// Publishes the file.
    ///
    /// # Errors
    /// Returns a [`FileError`] if the rest cannot be written.
    pub fn finish(mut self) -> Result<(), FileError> {
        let written = match self.sink.take() {
            Some(Sink::Text { file, .. }) => Ok(file),
            Some(Sink::Parquet(sink)) => {
                let columns = sink.columns();
                sink.finish().map_err(cause).and_then(|mut file| {
                    with_type_order(&mut file, columns)?;
                    Ok(file)
                })
            }
            None => return Ok(()),
        };
        let published = written.and_then(|file| {
            // Sync before the rename: the file name must never refer to incomplete content.
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&self.part, &self.file)?;
            // The rename is durable once the folder is synced. A bare file name is in the current folder.
            let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        });
        published.map_err(|error| TableProblem::Unwritable(error).at(&self.file))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After a successful `finish` the temporary file no longer exists.
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
        // The shortest form that parses to the same value.
        write!(file, "{value}")?;
    }
    writeln!(file)
}
