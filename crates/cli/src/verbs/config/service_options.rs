//! The options of the services in `/etc/evenhand/*.env`, read as systemd reads them and parsed as the services do, so that a
//! wrong one is found before a restart.
//!
//! A unit expands `$EVENHAND_SLURM_OPTIONS` into words. Files of this kind are described in systemd.exec(5), under
//! `EnvironmentFile=`, and the division into words in systemd.service(5), under "Command lines".

use std::iter::Peekable;
use std::ops::Range;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use evenhand_agent::likely_variable;
use evenhand_documents::{DocumentError, Source, did_you_mean};
use evenhand_policies::Registry;

use super::agent_variables;
use crate::arguments::{self, Cli};
use crate::failure::Failure;
#[cfg(feature = "serve")]
use crate::verbs::serve;
#[cfg(feature = "slurm")]
use crate::verbs::slurm;

/// The variables with options, and the command to which the unit adds them.
const SERVICES: [(&str, &str); 3] = [
    ("EVENHAND_AGENT_OPTIONS", "--format json agent run"),
    ("EVENHAND_SLURM_OPTIONS", "--format json slurm run --state /var/lib/evenhand-slurm/slurm.redb"),
    ("EVENHAND_SERVE_OPTIONS", "serve --socket /run/evenhand-serve/socket"),
];
/// The beginning of our variables, and of those that set a key of the agent's configuration.
const OURS: &str = "EVENHAND_";
const KEYS: &str = "EVENHAND_AGENT__";

/// A character, and where it stands in the file.
type Placed = (usize, char);

/// A line, with the lines that continue it: the name of a variable and its value, or a line without `=`.
pub(super) struct Assignment {
    name: Vec<Placed>,
    value: Option<Vec<Placed>>,
}

impl Assignment {
    /// The name of the variable.
    pub(super) fn name(&self) -> String {
        self.name.iter().map(|(_, c)| c).collect()
    }

    /// The value, without quotation marks.
    pub(super) fn value(&self) -> String {
        self.value.iter().flatten().map(|(_, c)| c).collect()
    }

    /// Where the name stands.
    pub(super) fn place(&self) -> Range<usize> {
        self.name.first().map_or(0, |(at, _)| *at)..self.name.last().map_or(0, |(at, c)| at + c.len_utf8())
    }
}

/// A word of options, without quotation marks, and where it stands.
struct Word {
    text: String,
    span: Range<usize>,
}

/// Checks the options of every service in the file, and the variables that set keys of the agent's configuration. Returns the
/// commands of the services with their options.
pub(in crate::verbs) fn check(file: &Path, registry: &Registry) -> Result<Vec<String>, Failure> {
    let source = Source::read(file).map_err(Failure::document)?;
    let mut commands = Vec::new();
    let mut keys = Vec::new();
    for assignment in assignments(source.text()) {
        let (name, place) = (assignment.name(), assignment.place());
        let Some(value) = &assignment.value else {
            let problem =
                format!("found {name:?}, expected NAME=VALUE, or # before a comment: systemd ignores this line");
            return Err(Failure::document(source.error(place, problem)));
        };
        if let Some((_, command)) = SERVICES.iter().find(|(known, _)| *known == name) {
            let words = words(value);
            check_command(&source, command, &words, place, registry)?;
            let given: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            let verb = command.trim_start_matches("--format json ");
            let verb = verb.split(" --").next().unwrap_or(verb);
            commands.push([&[verb], &given[..]].concat().join(" "));
        } else if name.starts_with(KEYS) {
            keys.push(assignment);
        } else if name.starts_with(OURS) {
            let known = SERVICES.map(|(name, _)| name);
            let near = match likely_variable(&name) {
                Some(likely) => format!("; did you mean {likely:?}?"),
                None => did_you_mean(&name, known),
            };
            let problem = format!("unknown variable {name}, expected one of: {}{near}", known.join(", "));
            return Err(Failure::document(source.error(place, problem)));
        }
    }
    agent_variables::check(file, &source, &keys)?;
    Ok(commands)
}

/// Parses a service's command with these words, and checks the values as the service does when it starts.
fn check_command(
    source: &Source,
    command: &str,
    words: &[Word],
    name: Range<usize>,
    registry: &Registry,
) -> Result<(), Failure> {
    let fixed = std::iter::once("evenhand").chain(command.split(' '));
    let all = fixed.chain(words.iter().map(|word| word.text.as_str()));
    let error = |mentioned: &[&str], problem: &str| -> DocumentError {
        let found = mentioned.iter().find_map(|text| words.iter().find(|word| is_mentioned(&word.text, text)));
        source.error(found.map_or(name.clone(), |word| word.span.clone()), problem)
    };
    let cli = arguments::parse(registry, all).map_err(|problem| {
        use ContextKind::{InvalidArg, InvalidSubcommand, InvalidValue, PriorArg};
        let mentioned = [InvalidValue, InvalidSubcommand, InvalidArg, PriorArg]
            .map(|kind| problem.get(kind).map(first_word).unwrap_or_default());
        let mentioned: Vec<&str> = mentioned.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        Failure::document(error(&mentioned, &sentence(&arguments::with_expected(problem))))
    })?;
    check_values(&cli, registry).map_err(|failure| {
        let problem = match &failure {
            // Of a file that an option names: its place and the problem, without the lines of that file, which are not those here.
            Failure::Document { error, .. } => error.to_string().lines().next().unwrap_or_default().to_owned(),
            other => other.to_string(),
        };
        let option = problem.split([':', ' ', '=']).next().unwrap_or_default().to_owned();
        Failure::document(error(&[&option], &problem))
    })
}

/// Checks what the command line leaves to the verbs, with the files of settings that options name (`--policy-settings`,
/// `--policy-file`) and the folder of `--study`.
#[cfg_attr(not(feature = "slurm"), expect(unused_variables))]
fn check_values(cli: &Cli, registry: &Registry) -> Result<(), Failure> {
    match &cli.verb {
        #[cfg(feature = "slurm")]
        arguments::Verb::Slurm(arguments::SlurmVerb::Run(args)) => slurm::RunSettings::read(args, registry).map(|_| ()),
        #[cfg(feature = "serve")]
        arguments::Verb::Serve(args) => serve::ServeSettings::read(args, &cli.common).map(|_| ()),
        _ => Ok(()),
    }
}

/// Whether a word is the option or the value that an error is about.
fn is_mentioned(word: &str, text: &str) -> bool {
    word == text || word.split_once('=').is_some_and(|(option, value)| option == text || value == text)
}

/// Returns the first word of what clap says an error is about: of `--interval <TIME>`, the option.
fn first_word(value: &ContextValue) -> String {
    let text = match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    };
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Returns clap's text of an error in one line, without the usage of the command.
fn sentence(error: &clap::Error) -> String {
    if !error.use_stderr() {
        return "prints a help text and ends, expected options of a service".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    parts.join("; ").trim_start_matches("error: ").to_owned()
}

/// Returns the variables of a file, and its malformed lines.
fn assignments(text: &str) -> Vec<Assignment> {
    let mut rest = text.char_indices().peekable();
    let mut found = Vec::new();
    while let Some(&(_, c)) = rest.peek() {
        if c.is_whitespace() {
            rest.next();
            continue;
        }
        if matches!(c, '#' | ';') {
            skip_comment(&mut rest);
            continue;
        }
        let mut name: Vec<Placed> = Vec::new();
        while let Some(placed) = rest.next_if(|(_, c)| !matches!(c, '=' | '\n')) {
            name.push(placed);
        }
        trim_end(&mut name);
        let value = rest.next().is_some_and(|(_, c)| c == '=').then(|| value(&mut rest));
        found.push(Assignment { name, value });
    }
    found
}

/// Skips the rest of a comment, which a backslash continues on the next line.
fn skip_comment(rest: &mut Peekable<impl Iterator<Item = Placed>>) {
    while let Some((_, c)) = rest.next() {
        match c {
            '\\' => _ = rest.next(),
            '\n' => return,
            _ => {}
        }
    }
}

/// Reads a value up to the end of its line. Quotation marks at its beginning, and after others, quote.
fn value(rest: &mut Peekable<impl Iterator<Item = Placed>>) -> Vec<Placed> {
    let mut value = Vec::new();
    let mut is_start = true;
    while let Some((at, c)) = rest.next() {
        match c {
            '\n' => break,
            '\'' if is_start => value.extend(rest.by_ref().take_while(|(_, c)| *c != '\'')),
            '"' if is_start => double_quoted(rest, &mut value),
            c if is_start && c.is_whitespace() => {}
            '\\' => {
                value.extend(rest.next().filter(|(_, c)| *c != '\n'));
                is_start = false;
            }
            c => {
                value.push((at, c));
                is_start = false;
            }
        }
    }
    if !is_start {
        trim_end(&mut value);
    }
    value
}

/// Reads the rest of a text in double quotation marks, where a backslash stands before `"`, `\`, `` ` ``, `$` and line ends.
fn double_quoted(rest: &mut Peekable<impl Iterator<Item = Placed>>, value: &mut Vec<Placed>) {
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => return,
            '\\' => match rest.next() {
                Some((_, '\n')) | None => {}
                Some(escaped @ (_, '"' | '\\' | '`' | '$')) => value.push(escaped),
                Some(other) => value.extend([(at, '\\'), other]),
            },
            c => value.push((at, c)),
        }
    }
}

fn trim_end(text: &mut Vec<Placed>) {
    while text.pop_if(|(_, c)| c.is_whitespace()).is_some() {}
}

/// Divides a value into words at white space that is not quoted.
fn words(value: &[Placed]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut rest = value.iter().copied().peekable();
    while let Some(&(start, c)) = rest.peek() {
        if c.is_whitespace() {
            rest.next();
            continue;
        }
        let mut word = Word { text: String::new(), span: start..start };
        let mut quoted_by = None;
        while let Some((at, c)) = rest.next_if(|(_, c)| quoted_by.is_some() || !c.is_whitespace()) {
            word.span.end = at + c.len_utf8();
            match (c, quoted_by) {
                ('\\', _) => word.text.extend(rest.next().map(|(_, c)| c)),
                (c, Some(mark)) if c == mark => quoted_by = None,
                ('\'' | '"', None) => quoted_by = Some(c),
                _ => word.text.push(c),
            }
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables of a text, with their words.
    fn read(text: &str) -> Vec<(String, Vec<String>)> {
        let words = |value: &Vec<Placed>| words(value).into_iter().map(|word| word.text).collect();
        let found = assignments(text).into_iter();
        found.filter_map(|it| Some((it.name(), words(it.value.as_ref()?)))).collect()
    }

    fn one(text: &str) -> Vec<String> {
        let mut found = read(text);
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0).1
    }

    #[test]
    fn files_are_read_as_systemd_reads_them() {
        assert_eq!(one("A=--policy sdrf\t --apply  \n"), ["--policy", "sdrf", "--apply"]);
        assert_eq!(one("# a comment\\\nA=1\n; another\n  B = x y\n"), ["x", "y"]);
        assert_eq!(one("A=\"--policy  sdrf\" '--apply'\n"), ["--policy", "sdrf--apply"]);
        assert_eq!(one("A=--policy \\\n  sdrf\n"), ["--policy", "sdrf"]);
        assert_eq!(one("A=\n"), [""; 0]);
        assert_eq!(one("a line that is no variable\nA=1"), ["1"]);
        assert_eq!(one("A='--study \"/srv/a b\"'"), ["--study", "/srv/a b"]);
        assert_eq!(one("A=\"\\\"x y\\\" \\$z\\n\""), ["x y", "$zn"]);
    }

    #[test]
    fn a_word_knows_its_place() {
        let text = "# options\nA=\"--policy \\\n sdrf\" \n";
        let assignments = assignments(text);
        let value = assignments[0].value.as_ref().unwrap();
        let places: Vec<&str> = words(value).iter().map(|word| &text[word.span.clone()]).collect();
        assert_eq!(places, ["--policy", "sdrf"]);
    }
}
