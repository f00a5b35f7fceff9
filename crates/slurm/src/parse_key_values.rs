//! Parses records of `Key=Value`, as `scontrol show node` and `scontrol show partition` print them, on one line each (`-o`)
//! or on several.

use crate::parse_table::Field;

/// One record.
pub(crate) struct Record<'a> {
    source: &'static str,
    lines: Vec<(usize, &'a str)>,
}

/// Splits a text into records; each begins with a line that begins with `first=`.
pub(crate) fn records<'a>(source: &'static str, text: &'a str, first: &str) -> Vec<Record<'a>> {
    let mut records: Vec<Record<'a>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let begins = line.trim_start().strip_prefix(first).is_some_and(|rest| rest.starts_with('='));
        if begins {
            records.push(Record { source, lines: Vec::new() });
        }
        if let Some(record) = records.last_mut() {
            record.lines.push((at + 1, line));
        }
    }
    records
}

impl<'a> Record<'a> {
    /// Returns the value of a key, up to the next blank; `None` if it is missing or empty. Of several the first, since free
    /// text (Comment, Reason, Extra) is at the end.
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.raw(key)?.non_empty()
    }

    fn raw(&self, key: &str) -> Option<Field<'a>> {
        self.lines.iter().find_map(|&(line, text)| {
            let mut from = 0;
            while let Some(found) = text[from..].find(key) {
                let at = from + found;
                let is_key =
                    text[at + key.len()..].starts_with('=') && !text[..at].ends_with(|c| c != ' ' && c != '\t');
                if is_key {
                    let begin = at + key.len() + 1;
                    let end = text[begin..].find([' ', '\t', '\r']).map_or(text.len(), |n| begin + n);
                    return Some(Field { source: self.source, line, column: begin + 1, text: &text[begin..end] });
                }
                from = at + key.len();
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_on_one_line_or_several() {
        let text =
            "NodeName=a CPUTot=8 State=IDLE Comment=State=DOWN\nNodeName=b\n   CPUAlloc=1 CPUTot=16\n   Gres=(null)\n";
        let found = records("scontrol", text, "NodeName");
        let get = |i: usize, key: &str| found[i].get(key).map(|f| f.text);
        assert_eq!(found.len(), 2);
        assert_eq!((get(0, "CPUTot"), get(0, "State"), get(0, "Tot")), (Some("8"), Some("IDLE"), None));
        assert_eq!((get(1, "CPUTot"), get(1, "Gres")), (Some("16"), None));
        assert_eq!(found[1].get("CPUTot").map(|f| (f.line, f.column)), Some((3, 22)));
    }
}
