//! Locates the columns of the output of `sacct`.

use super::Row;
use crate::import::counted;
use crate::import::error::{FieldError, quoted};

macro_rules! columns {
    ($($name:ident),+) => {
        /// The columns that are read, with the names of Slurm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms)]
        pub(super) enum Column {
            $($name),+
        }

        const ALL: &[(Column, &str)] = &[$((Column::$name, stringify!($name))),+];
    };
}

columns!(
    JobID,
    JobIDRaw,
    User,
    Account,
    Partition,
    State,
    Submit,
    Start,
    End,
    Elapsed,
    ElapsedRaw,
    Timelimit,
    TimelimitRaw,
    ReqTRES,
    AllocTRES,
    AllocCPUS,
    NCPUS,
    ReqCPUS,
    ReqMem,
    AllocNodes,
    NNodes,
    ReqNodes
);

/// The columns of a header line.
pub(super) struct Columns {
    header: Vec<u8>,
    delimiter: Vec<u8>,
    width: usize,
    /// The position of each [`Column`].
    indexes: [Option<usize>; ALL.len()],
}

/// An error in the header line.
pub(super) struct HeaderError {
    pub(super) found: String,
    pub(super) expected: String,
}

impl Columns {
    /// Parses a header line.
    pub(super) fn find(line: &[u8]) -> Result<Columns, HeaderError> {
        let text = str::from_utf8(line).map_err(|_| not_a_header(line))?;
        let name_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
        let delimiter = text.trim_start().chars().find(|c| !name_part(*c)).ok_or_else(|| not_a_header(line))?;
        if delimiter == ' ' {
            let found = format!("a header {} that is padded with spaces", quoted(line));
            return Err(HeaderError { found, expected: "columns separated by |, as -P prints them".to_string() });
        }
        let mut columns = Columns {
            header: line.to_vec(),
            delimiter: delimiter.to_string().into_bytes(),
            width: 0,
            indexes: [None; ALL.len()],
        };
        let names: Vec<&str> = text.split(delimiter).map(str::trim).collect();
        columns.width = names.len();
        for (column, name) in ALL {
            columns.indexes[*column as usize] = names.iter().position(|n| n.eq_ignore_ascii_case(name));
        }
        let has = |column: &Column| columns.index(*column).is_some();
        use Column::*;
        let needed: [(&[Column], &str); 6] = [
            (&[JobID, JobIDRaw], "JobID"),
            (&[User], "User"),
            (&[Submit], "Submit"),
            (&[Start], "Start"),
            (&[End, Elapsed, ElapsedRaw], "End or ElapsedRaw"),
            (&[AllocTRES, ReqTRES, AllocCPUS, NCPUS, ReqCPUS], "AllocTRES or ReqTRES"),
        ];
        if !has(&JobID) && !has(&JobIDRaw) && names.iter().filter(|n| ALL.iter().any(|(_, a)| a == *n)).count() < 2 {
            return Err(not_a_header(line));
        }
        let missing: Vec<&str> = needed.iter().filter(|(any, _)| !any.iter().any(has)).map(|(_, name)| *name).collect();
        if missing.is_empty() {
            return Ok(columns);
        }
        Err(HeaderError {
            found: format!("a header without {}", missing.join(", ")),
            expected: "the columns that define a task".to_string(),
        })
    }

    pub(super) fn index(&self, column: Column) -> Option<usize> {
        self.indexes[column as usize]
    }

    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        line == self.header
    }

    /// Splits a row into as many fields as the header has.
    pub(super) fn split<'a>(&'a self, line: &'a [u8]) -> Result<Row<'a>, Box<FieldError>> {
        let mut fields = Vec::with_capacity(self.width);
        let mut at = 0;
        for end in memchr::memmem::find_iter(line, &self.delimiter) {
            fields.push((at, &line[at..end]));
            at = end + self.delimiter.len();
        }
        fields.push((at, &line[at..]));
        if fields.len() != self.width {
            let expected = format!("{}, as the header has", counted(self.width as u64, "column", "columns"));
            let error = FieldError::described(line.len(), counted(fields.len() as u64, "column", "columns"), expected);
            return Err(error.remedy(
                "omit columns whose text can hold the delimiter (JobName, Comment), or pass --lenient to skip such rows",
            ));
        }
        Ok(Row { columns: self, fields })
    }
}

fn not_a_header(line: &[u8]) -> HeaderError {
    HeaderError {
        found: format!("a first line {}", quoted(line)),
        expected: "the header line of sacct with the names of the columns".to_string(),
    }
}
