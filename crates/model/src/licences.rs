//! Licences: counts of things that no machine has, of which running jobs hold some.

/// The licences of a site of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Licence {
    /// The name, as jobs ask for it.
    pub name: String,
    /// How many there are.
    pub count: u64,
}

/// Parses licences as slurm.conf(5) and sbatch(1) write them: names with counts, separated by commas or semicolons; without a
/// count it is 1. `None` for a text of another form. Names that come twice are added up, and those of none left out.
///
/// ```
/// use evenhand_model::parse_licences;
/// let found = parse_licences("matlab:2,ansys,matlab").unwrap();
/// let found: Vec<(&str, u64)> = found.iter().map(|l| (l.name.as_str(), l.count)).collect();
/// assert_eq!(found, [("matlab", 3), ("ansys", 1)]);
/// assert_eq!(parse_licences("a:1|b:1"), None);
/// ```
pub fn parse_licences(text: &str) -> Option<Vec<Licence>> {
    let mut found: Vec<Licence> = Vec::new();
    for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, count) = match part.rsplit_once(':') {
            Some((name, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => (name, count.parse().ok()?),
            _ => (part, 1),
        };
        let is_name = |c: char| !c.is_whitespace() && !c.is_control() && !"|*=\"'()".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        match found.iter_mut().find(|licence| licence.name == name) {
            Some(licence) => licence.count = licence.count.checked_add(count)?,
            None => found.push(Licence { name: name.to_string(), count }),
        }
    }
    found.retain(|licence| licence.count > 0);
    Some(found)
}
