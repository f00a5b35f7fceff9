//! Reads the tasks of a table in memory by the same rules as those of a file.

use std::borrow::Cow;

use evenhand_model::{Workload, WorkloadBuilder, WorkloadError};

use super::presets::Notation;
use super::rows::{Fields, RowReader};
use super::{CsvColumns, TableReader};
use crate::import::Processors;
use crate::import::summary::Tally;

/// The tasks of a table in memory, which are added row by row.
///
/// A value is given as the text that a file has of it: times and spans in seconds, numbers with at most nine decimals, and nothing
/// where it is unknown. What is dropped of a file is an error here.
///
/// ```
/// use evenhand_workload::import::{CsvColumns, TaskTable};
///
/// let columns = CsvColumns::by_meaning([("submit", "", "at"), ("duration", "", "took"), ("user", "", "who"), ("cpu", "", "cpu")]);
/// let columns = columns.unwrap();
/// let mut table = TaskTable::new(&columns, &["at", "took", "who", "cpu"].map(String::from)).unwrap();
/// table.push(["0", "60", "ann", "2"].map(|text| text.as_bytes().into())).unwrap();
/// let error = table.push(["5", "60", "ann", "-1"].map(|text| text.as_bytes().into())).unwrap_err();
/// assert_eq!((error.column, error.found.as_str()), (Some(3), "\"-1\""));
/// assert_eq!(table.finish().unwrap().users(), ["ann"]);
/// ```
pub struct TaskTable<'c> {
    reader: TableReader<'c>,
}

/// Why a row of a table in memory is no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTableError {
    /// The column, if it is one that is wrong.
    pub column: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl<'c> TaskTable<'c> {
    /// Creates one without tasks. `header` has the names of the table's columns.
    ///
    /// # Errors
    /// Returns the name of the first column that the definition has and the table lacks.
    pub fn new(columns: &'c CsvColumns, header: &[String]) -> Result<TaskTable<'c>, String> {
        let mut reader = TableReader {
            columns,
            notation: Notation::Values,
            table: None,
            builder: WorkloadBuilder::new(columns.resources().cloned()),
            tally: Tally::default(),
            lenient: false,
            processors: Processors::Allocated,
        };
        reader.locate(header)?;
        Ok(TaskTable { reader })
    }

    /// Adds the task of a row, whose values are in the order of the header.
    ///
    /// # Errors
    /// Returns an error if a value is malformed, or if the row is one that an import of a file drops, as without a run time.
    pub fn push<'v>(&mut self, values: impl IntoIterator<Item = Cow<'v, [u8]>>) -> Result<(), TaskTableError> {
        // The place of a value is the number of its column, so that an error names it.
        let fields: Fields<'v> = values.into_iter().enumerate().collect();
        let width = fields.len();
        let before = self.reader.builder.len();
        let error = |column, found: String, expected: String| TaskTableError { column, found, expected };
        self.reader.row(fields, width).map_err(|problem| {
            let column = Some(problem.at).filter(|at| *at < width);
            error(column, problem.found, problem.expected.into_owned())
        })?;
        if self.reader.builder.len() > before {
            return Ok(());
        }
        let reason = self.reader.tally.dropped.0.pop().map_or(Cow::Borrowed("nothing"), |(reason, _)| reason);
        Err(error(None, format!("a row that is no task: {reason}"), "a task that ran".to_string()))
    }

    /// Returns the workload.
    ///
    /// # Errors
    /// Returns an error if there is no task, or they cannot form a workload.
    pub fn finish(self) -> Result<Workload, WorkloadError> {
        self.reader.builder.finish()
    }
}
