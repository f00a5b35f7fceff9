//! The comments at the beginning of a log: labels with values, each on one line or several.

/// The labels of the standard. They begin a comment however far they are indented.
const LABELS: [&str; 24] = [
    "Version",
    "Computer",
    "Installation",
    "Acknowledge",
    "Information",
    "Conversion",
    "MaxJobs",
    "MaxRecords",
    "Preemption",
    "UnixStartTime",
    "TimeZone",
    "TimeZoneString",
    "StartTime",
    "EndTime",
    "MaxNodes",
    "MaxProcs",
    "MaxRuntime",
    "MaxMemory",
    "AllowOveruse",
    "MaxQueues",
    "Queue",
    "MaxPartitions",
    "Partition",
    "Note",
];

/// The width of a tab, in blanks.
const TAB: usize = 8;

/// The header comments of a log, in their order.
#[derive(Default)]
pub(super) struct Header {
    entries: Vec<(String, String)>,
    /// The blanks before the last label; `None` before the first label.
    indent: Option<usize>,
}

impl Header {
    /// Adds a comment line, without its semicolon: `Label: value` with a label of one word. Other lines continue the value
    /// before. So do lines that are indented further than the label before, since their text may have a colon too.
    pub(super) fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        let indent = line.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { TAB } else { 1 }).sum();
        let is_deeper = self.indent.is_some_and(|label| indent > label);
        let begins = |label: &str| {
            let is_word = !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_word && (!is_deeper || LABELS.iter().any(|known| known.eq_ignore_ascii_case(label)))
        };
        // The colon of an address follows no label.
        let labelled = text.split_once(':').filter(|(label, value)| begins(label.trim()) && !value.starts_with("//"));
        match (labelled, self.entries.last_mut()) {
            (Some((label, value)), _) => {
                self.entries.push((label.trim().to_string(), value.trim().to_string()));
                self.indent = Some(indent);
            }
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(text);
            }
            (None, None) => self.entries.push(("Comment".to_string(), text.to_string())),
        }
    }

    /// Returns the labels and values.
    pub(super) fn entries(&self) -> &[(String, String)] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(lines: &[&str]) -> Vec<(String, String)> {
        let mut header = Header::default();
        lines.iter().for_each(|line| header.add(line.as_bytes()));
        header.entries
    }

    #[test]
    fn lines_that_are_indented_further_continue_a_value_whatever_colons_they_have() {
        let found = entries(&[
            "   --- converted from sacct ---",
            " Version: 2.2",
            "",
            " Note: three types of nodes,",
            "\tsee: http://a.example/b",
            "       and: the manual",
            " Information: http://a.example/",
            "              http://b.example/",
            " https://c.example/",
            " Other: value",
        ]);
        let expected = [
            ("Comment", "--- converted from sacct ---"),
            ("Version", "2.2"),
            ("Note", "three types of nodes, see: http://a.example/b and: the manual"),
            ("Information", "http://a.example/ http://b.example/ https://c.example/"),
            ("Other", "value"),
        ];
        assert_eq!(found, expected.map(|(label, value)| (label.to_string(), value.to_string())));
    }

    #[test]
    fn labels_of_the_standard_begin_a_comment_however_far_they_are_indented() {
        let found = entries(&["Version: 2.2", "   MaxProcs: 64", "   maxprocs : 65"]);
        let expected = [("Version", "2.2"), ("MaxProcs", "64"), ("maxprocs", "65")];
        assert_eq!(found, expected.map(|(label, value)| (label.to_string(), value.to_string())));
    }
}
