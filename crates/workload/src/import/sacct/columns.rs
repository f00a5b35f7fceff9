//! Locates the columns of the output of `sacct`.

use super::Row;
use super::times::{is_epoch, with_zone};
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
    ReqGRES,
    AllocCPUS,
    NCPUS,
    ReqCPUS,
    ReqMem,
    AllocNodes,
    NNodes,
    ReqNodes,
    QOS,
    Reservation,
    Eligible,
    NodeList,
    Constraints,
    Licenses,
    SubmitLine
);

/// The columns of outputs without a header that are recognised by the shape of their fields: what this crate's own
/// command prints, and what XDMoD's helper stores.
pub(super) const LAYOUTS: [(&str, &str); 2] = [
    (
        "the columns that evenhand asks for",
        "JobID|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES",
    ),
    (
        "the columns of XDMoD",
        "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|State|\
         NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName",
    ),
];

/// Returns whether a line is a row of sacct and not its header: it has a time, or a number that may be one, and a job's
/// state.
pub(in crate::import) fn looks_headerless(line: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(line) else { return false };
    let Some(delimiter) = delimiter_of_row(text) else { return false };
    let fields: Vec<&str> = text.split(delimiter).collect();
    fields.iter().any(|f| is_time(f) || is_recent_epoch(f)) && fields.iter().any(|f| is_state(f))
}

/// Returns the first character that separates two fields of a row of times.
fn delimiter_of_row(row: &str) -> Option<char> {
    let field = |c: char| c.is_ascii_alphanumeric() || "_.-:+[]%/@ ".contains(c);
    row.chars().find(|c| !field(*c) && *c != ',' && *c != '=')
}

fn is_time(field: &str) -> bool {
    let text = field.trim().as_bytes();
    evenhand_model::calendar::parse_date_time(text).or_else(|| with_zone(text)).is_some()
}

/// Whether a field may be a time in seconds since 1970, after 2001: that has ten digits.
fn is_recent_epoch(field: &str) -> bool {
    let text = field.trim().as_bytes();
    text.len() == 10 && is_epoch(text)
}

fn is_state(field: &str) -> bool {
    const STATES: [&str; 13] = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PENDING",
        "PREEMPTED",
        "REQUEUED",
        "RUNNING",
        "SUSPENDED",
        "TIMEOUT",
    ];
    field.split_whitespace().next().is_some_and(|word| STATES.contains(&word))
}

/// The columns of a header line.
pub(super) struct Columns {
    header: Vec<u8>,
    delimiter: Vec<u8>,
    width: usize,
    /// The position of each [`Column`].
    indexes: [Option<usize>; ALL.len()],
    /// The position of Constraints, if only they can hold the delimiter.
    alternatives: Option<usize>,
}

/// Columns that hold any text.
const FREE_TEXT: [&str; 11] = [
    "AdminComment",
    "Comment",
    "Container",
    "Extra",
    "JobName",
    "StdErr",
    "StdIn",
    "StdOut",
    "SubmitLine",
    "SystemComment",
    "WorkDir",
];

/// An error in the header line.
pub(super) struct HeaderError {
    pub(super) found: String,
    pub(super) expected: String,
    /// The remedy, if it is not the command that prints all columns.
    pub(super) remedy: Option<&'static str>,
}

impl Columns {
    /// Parses a header line.
    pub(super) fn find(line: &[u8]) -> Result<Columns, HeaderError> {
        let text = str::from_utf8(line).map_err(|_| not_a_header(line))?;
        let name_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
        let delimiter = text.trim_start().chars().find(|c| !name_part(*c)).ok_or_else(|| not_a_header(line))?;
        if delimiter == ' ' {
            let found = format!("a header {} that is padded with spaces", quoted(line));
            let expected = "columns separated by |, as -P prints them".to_string();
            return Err(HeaderError { found, expected, remedy: None });
        }
        let mut columns = Columns {
            header: line.to_vec(),
            delimiter: delimiter.to_string().into_bytes(),
            width: 0,
            indexes: [None; ALL.len()],
            alternatives: None,
        };
        let names: Vec<&str> = text.split(delimiter).map(str::trim).collect();
        columns.locate(&names)?;
        Ok(columns)
    }

    /// Locates the columns of an output without a header, whose names are given.
    pub(super) fn named(names: &[String], row: &[u8]) -> Result<Columns, HeaderError> {
        let delimiter = str::from_utf8(row).ok().and_then(delimiter_of_row);
        let delimiter = delimiter.map_or("|".to_string(), |c| c.to_string()).into_bytes();
        let mut columns =
            Columns { header: Vec::new(), delimiter, width: 0, indexes: [None; ALL.len()], alternatives: None };
        let names: Vec<&str> = names.iter().map(|n| n.trim()).collect();
        columns.locate(&names)?;
        // `sacct -p` ends each row with a delimiter.
        let fields = memchr::memmem::find_iter(row, &columns.delimiter).count() + 1;
        if fields == columns.width + 1 && row.ends_with(&columns.delimiter) {
            columns.width = fields;
        }
        if fields != columns.width {
            return Err(HeaderError {
                found: format!("a first row of {}", counted(fields as u64, "column", "columns")),
                expected: format!("{}, as --columns names", counted(columns.width as u64, "column", "columns")),
                remedy: Some("name every column in its order, as the option -o of sacct did"),
            });
        }
        Ok(columns)
    }

    /// Recognises the columns of an output without a header by the shape of its first row; also returns whose they are.
    pub(super) fn recognised(row: &[u8]) -> Option<(Columns, &'static str)> {
        let text = str::from_utf8(row).ok()?;
        let delimiter = delimiter_of_row(text)?;
        LAYOUTS.iter().find_map(|(whose, names)| {
            let names: Vec<String> = names.split('|').map(str::to_string).collect();
            let columns = Columns::named(&names, row).ok()?;
            let fields: Vec<&str> = text.split(delimiter).map(str::trim).collect();
            let no_time = |f: &str| matches!(f, "Unknown" | "None" | "");
            let fits = names.iter().zip(&fields).all(|(name, field)| match name.as_str() {
                "JobID" | "JobIDRaw" => field.starts_with(|c: char| c.is_ascii_digit()),
                "Submit" | "Eligible" | "Start" | "End" => is_time(field) || is_recent_epoch(field) || no_time(field),
                "State" => is_state(field),
                "ElapsedRaw" | "NNodes" | "NCPUS" | "ReqCPUS" => field.bytes().all(|b| b.is_ascii_digit()),
                "Elapsed" => field.contains(':'),
                "ReqTRES" | "AllocTRES" => field.is_empty() || field.contains('='),
                _ => !is_time(field),
            });
            fits.then_some((columns, *whose))
        })
    }

    /// Locates the columns by the names, and checks that they define a task.
    fn locate(&mut self, names: &[&str]) -> Result<(), HeaderError> {
        let columns = self;
        columns.width = names.len();
        for (column, name) in ALL {
            columns.indexes[*column as usize] = names.iter().position(|n| n.eq_ignore_ascii_case(name));
        }
        let is_free_text = |name: &&str| FREE_TEXT.iter().any(|free| free.eq_ignore_ascii_case(name));
        columns.alternatives = columns.index(Column::Constraints).filter(|_| !names.iter().any(is_free_text));
        let has = |column: &Column| columns.index(*column).is_some();
        use Column::*;
        let needed: [(&[Column], &str); 5] = [
            (&[JobID, JobIDRaw], "JobID"),
            (&[Submit], "Submit"),
            (&[Start], "Start"),
            (&[End, Elapsed, ElapsedRaw], "End or ElapsedRaw"),
            (&[AllocTRES, ReqTRES, AllocCPUS, NCPUS, ReqCPUS], "AllocTRES or ReqTRES"),
        ];
        if !has(&JobID) && !has(&JobIDRaw) && names.iter().filter(|n| ALL.iter().any(|(_, a)| a == *n)).count() < 2 {
            return Err(not_a_header(names.join("|").as_bytes()));
        }
        let missing: Vec<&str> = needed.iter().filter(|(any, _)| !any.iter().any(has)).map(|(_, name)| *name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(HeaderError {
            found: format!("a header without {}", missing.join(", ")),
            expected: "the columns that define a task".to_string(),
            remedy: None,
        })
    }

    pub(super) fn index(&self, column: Column) -> Option<usize> {
        self.indexes[column as usize]
    }

    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        line == self.header && !self.header.is_empty()
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
        // `-C a|b` is printed as it is.
        if let Some(first) = self.alternatives.filter(|_| fields.len() > self.width && self.delimiter == b"|") {
            let last = first + fields.len() - self.width;
            let (begin, end) = (fields[first].0, fields[last].0 + fields[last].1.len());
            fields.splice(first..=last, [(begin, &line[begin..end])]);
        }
        if fields.len() != self.width {
            let whose = if self.header.is_empty() { "the first row" } else { "the header" };
            let expected = format!("{}, as {whose} has", counted(self.width as u64, "column", "columns"));
            let error = FieldError::described(line.len(), counted(fields.len() as u64, "column", "columns"), expected);
            return Err(error.remedy(
                "omit columns whose text can hold the delimiter (JobName, Comment), call sacct with another --delimiter, or \
                 pass --lenient to skip such rows",
            ));
        }
        Ok(Row { columns: self, fields })
    }
}

fn not_a_header(line: &[u8]) -> HeaderError {
    HeaderError {
        found: format!("a first line {}", quoted(line)),
        expected: "the header line of sacct with the names of the columns".to_string(),
        remedy: None,
    }
}

/// The error for rows without a header whose columns are not recognised.
pub(super) fn no_header(line: &[u8]) -> HeaderError {
    let delimiter = str::from_utf8(line).ok().and_then(delimiter_of_row);
    let fields = delimiter.map_or(1, |c| String::from_utf8_lossy(line).split(c).count());
    HeaderError {
        found: format!("rows of {} without a header", counted(fields as u64, "column", "columns")),
        expected: "the header line of sacct with the names of the columns".to_string(),
        remedy: Some("name the columns in the order of the option -o of sacct: --columns JobID,User,Account,…"),
    }
}
