//! Printing: results on standard output, everything else on standard error. No other module prints. A command that a host
//! runs in its own process prints into memory instead.
//!
//! Text from files and from other machines may hold sequences that control a terminal. All of them pass here, where only
//! line ends are printed as they are.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use evenhand_child_process::StopFlag;
use evenhand_model::printable::{is_control, printable_lines};
use serde::Serialize;

use crate::arguments::{Common, Format};
use crate::failure::Failure;
use crate::host::{Captured, Host, HostFile};
use crate::interrupts::{SecondSignal, on_interrupt};
use crate::output::explain::explanation;
use crate::output::fold_lines::{COLUMNS, fold_lines, fold_prose};

/// Output of one command, and the way to stop it.
#[derive(Clone)]
pub(crate) struct Console {
    format: Format,
    quiet: bool,
    /// Whether the columns of tables are explained.
    explain: bool,
    /// The command line that repeats it.
    command: String,
    /// The host that runs the command, and what the command printed; `None`: the process is the command.
    hosted: Option<(Host, Arc<Mutex<Captured>>)>,
}

impl Console {
    /// Returns the console for these options. The default format is a table, also if standard output is no terminal.
    ///
    /// `arguments` are the command line, of which the first is the program's name.
    pub(crate) fn new(common: &Common, arguments: &[OsString]) -> Console {
        let format = common.format.unwrap_or(Format::Table);
        let explain = common.explain;
        Console { format, quiet: common.quiet, explain, command: command_line(arguments), hosted: None }
    }

    /// Returns the console of a command that `host` runs: it prints into memory.
    pub(crate) fn hosted(common: &Common, arguments: &[OsString], host: &Host) -> Console {
        let command = command_line_of_host(arguments, &host.files());
        Console { command, hosted: Some((host.clone(), Arc::default())), ..Console::new(common, &[]) }
    }

    /// Returns the command line, quoted for a shell where necessary, with the program's name instead of its path.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Returns what a record states for a file of the command line: its path, or what it holds if the host removes it.
    pub(crate) fn stated(&self, path: &Path) -> String {
        let files = self.host().map_or(Vec::new(), Host::files);
        let file = files.into_iter().find(|file| Path::new(&file.path) == path);
        file.map_or_else(|| path.display().to_string(), |file| file.contents)
    }

    /// Returns the host, if the command has one.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.hosted.as_ref().map(|(host, _)| host)
    }

    /// Returns a console with other options for a part of the same command.
    #[cfg(feature = "slurm")]
    pub(crate) fn with_options(&self, common: &Common) -> Console {
        Console { command: self.command.clone(), hosted: self.hosted.clone(), ..Console::new(common, &[]) }
    }

    /// Takes what the command printed into memory so far.
    pub(crate) fn take_captured(&self) -> Captured {
        match &self.hosted {
            Some((_, captured)) => std::mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Captured::default(),
        }
    }

    /// Calls `stop` at the first interrupt: a signal, at whose second the process exits, or the host's. Returns a flag that is
    /// set just before.
    pub(crate) fn stop_on_interrupt(&self, stop: impl Fn() + Send + Sync + 'static) -> Result<StopFlag, Failure> {
        let Some(host) = self.host() else { return on_interrupt(SecondSignal::Exits, stop) };
        let flag = StopFlag::default();
        let set = flag.clone();
        host.on_interrupt(move || {
            set.set();
            stop();
        });
        Ok(flag)
    }

    /// Refuses options that change tables alone where no table is printed.
    pub(crate) fn refuse_table_options(&self, options: &[(&str, bool)]) -> Result<(), Failure> {
        match options.iter().find(|(_, given)| *given && self.is_json()) {
            None => Ok(()),
            Some((option, _)) => {
                let problem = "changes printed tables, and --format json prints none; leave one of them out";
                Err(Failure::Input(format!("{option}: {problem}")))
            }
        }
    }

    /// Returns whether results are printed as one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether progress is drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        self.hosted.is_none() && !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result. A reader that closes the pipe early (`| head`) is no error.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        let explanation = if self.explain && !self.is_json() { explanation(text) } else { String::new() };
        let explained =
            if explanation.is_empty() { text.to_string() } else { format!("{}\n{explanation}", text.trim_end()) };
        let text = explained.as_str();
        let text = match self.is_json() {
            true => printable_json(text.to_string()),
            false if self.hosted.is_none() && io::stdout().is_terminal() && colours_are_wanted() => {
                with_bold_headers(&fold_prose(&printable_lines(text)))
            }
            false => fold_prose(&printable_lines(text)),
        };
        self.result_bytes(format!("{text}\n").as_bytes())
    }

    /// Prints a document that other programs read, such as a script, as it is.
    pub(crate) fn document(&self, text: &str) -> Result<(), Failure> {
        self.result_bytes(format!("{}\n", printable_lines(text)).as_bytes())
    }

    /// Prints bytes of a result as they are.
    pub(crate) fn result_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some((_, captured)) = &self.hosted {
            captured.lock().unwrap_or_else(PoisonError::into_inner).output.extend_from_slice(bytes);
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Environment(format!("cannot write to standard output: {e}")))
            }
            _ => Ok(()),
        }
    }

    /// Prints a result as JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.result(&to_json(value)?)
    }

    /// Prints a note, unless the user asked for quiet.
    pub(crate) fn note(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.hosted {
            Some((_, captured)) => {
                captured.lock().unwrap_or_else(PoisonError::into_inner).notes.push(text.to_string());
            }
            None => self.error(text),
        }
    }

    /// Prints an error, also if the user asked for quiet. A failure to print it is ignored. On a terminal, long lines are
    /// folded between words; in a file a message stays one line, which programs can search.
    pub(crate) fn error(&self, text: &str) {
        let text = printable_lines(text);
        let is_folded = self.hosted.is_none() && io::stderr().is_terminal();
        self.error_line(&if is_folded { fold_lines(&text, COLUMNS, "  ") } else { text.into_owned() });
    }

    /// Prints why a verb failed.
    pub(crate) fn failure(&self, failure: &Failure) {
        match failure {
            // Its colours are control sequences, and its text is safe to print already.
            Failure::Document { .. } => self.error_line(&format!("error: {failure}")),
            Failure::Input(_) | Failure::Environment(_) => self.error(&format!("error: {failure}")),
        }
    }

    fn error_line(&self, text: &str) {
        match &self.hosted {
            Some((_, captured)) => {
                captured.lock().unwrap_or_else(PoisonError::into_inner).error = Some(text.to_string());
            }
            None => _ = writeln!(io::stderr().lock(), "{text}"),
        }
    }
}

/// Formats a value as indented JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(printable_json).map_err(|e| Failure::Environment(e.to_string()))
}

/// Escapes the control characters of a JSON document that JSON itself leaves as they are. The document stays the same.
fn printable_json(json: String) -> String {
    let is_escaped = |c: char| c != '\n' && is_control(c);
    if !json.contains(is_escaped) {
        return json;
    }
    let mut escaped = String::new();
    for c in json.chars() {
        if is_escaped(c) { escaped += &format!("\\u{:04x}", u32::from(c)) } else { escaped.push(c) }
    }
    escaped
}

/// Returns the command line, quoted for a shell where necessary, with the program's name instead of its path.
fn command_line(arguments: &[OsString]) -> String {
    let quoted = |argument: &OsString| {
        let argument = argument.to_string_lossy().into_owned();
        let is_safe = |c: char| c.is_alphanumeric() || "-_./,=:+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(is_safe) {
            return argument;
        }
        format!("'{}'", argument.replace('\'', "'\\''"))
    };
    let arguments = arguments.iter().skip(1).map(quoted);
    std::iter::once("evenhand".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns the command line with names in place of the paths of files that the host removes, after the command lines that
/// make them.
fn command_line_of_host(arguments: &[OsString], files: &[HostFile]) -> String {
    let named = |argument: &OsString| match argument.to_str() {
        Some(text) => files.iter().fold(text.to_string(), |text, file| text.replace(&file.path, &file.argument)).into(),
        None => argument.clone(),
    };
    let command = command_line(&arguments.iter().map(named).collect::<Vec<_>>());
    let made = files.iter().filter_map(|file| file.made_by.clone());
    made.chain([command]).collect::<Vec<_>>().join(" && ")
}

/// Returns whether `NO_COLOR` is unset or empty (<https://no-color.org>).
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Makes the header of each table bold and the rule below it dim, for a terminal.
fn with_bold_headers(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let is_rule = |line: &str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    let styled = lines.iter().enumerate().map(|(at, line)| match lines.get(at + 1) {
        Some(next) if is_rule(next) && !line.is_empty() => format!("\x1b[1m{line}\x1b[0m"),
        _ if is_rule(line) => format!("\x1b[2m{line}\x1b[0m"),
        _ => (*line).to_string(),
    });
    styled.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_and_rules_of_tables_are_styled() {
        let styled = with_bold_headers("title\n\nuser  wait\n----------\nann      1\n---");
        assert_eq!(
            styled,
            "title\n\n\x1b[1muser  wait\x1b[0m\n\x1b[2m----------\x1b[0m\n\x1b[1mann      1\x1b[0m\n\x1b[2m---\x1b[0m"
        );
        assert_eq!(with_bold_headers("a - b\n--\nc"), "a - b\n--\nc");
    }

    #[test]
    fn files_that_a_host_removes_have_names_in_the_command_line() {
        let file = |path: &str, argument: &str, made_by: Option<&str>| HostFile {
            path: path.into(),
            argument: argument.into(),
            contents: String::new(),
            made_by: made_by.map(String::from),
        };
        let files = [
            file("/tmp/a/pool.toml", "cpu=1,mem=2", None),
            file("/tmp/b/w.parquet", "w.parquet", Some("evenhand workload generate -o w.parquet")),
        ];
        let arguments =
            ["evenhand", "study", "/tmp/b/w.parquet", "--capacity=0.5,/tmp/a/pool.toml"].map(OsString::from);
        assert_eq!(
            command_line_of_host(&arguments, &files),
            "evenhand workload generate -o w.parquet && evenhand study w.parquet --capacity=0.5,cpu=1,mem=2"
        );
    }

    #[test]
    fn json_is_printed_without_control_characters_and_means_the_same() {
        let name = "\u{1b}[2J\u{9b}\u{7f}\u{202e}\n\"é\\";
        let text = to_json(&name).unwrap();
        assert!(!text.contains(is_control), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
