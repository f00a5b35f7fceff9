//! Chunks as OpenPBS and PBS Professional request them: `-l select=2:ncpus=4:mem=8gb+1:ncpus=16:ngpus=2`, and
//! `-l place=scatter:excl`.

use evenhand_model::{Nano, Requirements};

use super::size as bytes;
use crate::import::node_request::{Decimal, is_property};
use crate::import::parse_number::{NANO, decimal, leading_digits};

/// A request of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Select {
    /// The distinct sizes of chunks, in the order in which they are first named.
    chunks: Vec<(u32, ChunkSize)>,
    /// What the host of every chunk must be: words of [`Requirements`].
    required: Vec<String>,
}

/// What a chunk holds, in billionths; memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkSize {
    pub(super) cpu: Nano,
    pub(super) mem: Nano,
    pub(super) gpu: Nano,
}

impl ChunkSize {
    fn times(self, count: u32) -> Option<ChunkSize> {
        let times = |amount: Nano| amount.checked_mul(Nano::from(count));
        Some(ChunkSize { cpu: times(self.cpu)?, mem: times(self.mem)?, gpu: times(self.gpu)? })
    }

    pub(super) fn plus(self, other: ChunkSize) -> Option<ChunkSize> {
        let ChunkSize { cpu, mem, gpu } = other;
        Some(ChunkSize {
            cpu: self.cpu.checked_add(cpu)?,
            mem: self.mem.checked_add(mem)?,
            gpu: self.gpu.checked_add(gpu)?,
        })
    }
}

/// How the chunks of a job lie together (`place`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// All of them on one host.
    is_packed: bool,
    /// Each on a host of its own.
    is_scattered: bool,
    /// Nobody else is on their hosts.
    is_exclusive: bool,
}

/// A faulty part of a request: where it begins, the part, and what is expected there.
pub(super) type Fault<'a> = (usize, &'a str, &'static str);

impl Select {
    /// Parses a request. A chunk without `ncpus` has one, as with the default of servers; resources other than
    /// processors, memory and GPUs are left out.
    pub(super) fn parse(text: &str) -> Result<Select, Fault<'_>> {
        let mut select = Select::default();
        let mut common: Option<Vec<String>> = None;
        let mut at = 0;
        for part in text.split('+') {
            let (count, size, required) =
                chunk(part).map_err(|(offset, found, expected)| (at + offset, found, expected))?;
            match select.chunks.iter_mut().find(|(_, known)| *known == size) {
                Some((known, _)) => {
                    *known = known.checked_add(count).ok_or((at, part, COUNT))?;
                }
                None => select.chunks.push((count, size)),
            }
            common = Some(match common {
                None => required,
                Some(common) => common.into_iter().filter(|word| required.contains(word)).collect(),
            });
            at += part.len() + 1;
        }
        select.total().ok_or((0, text, "amounts below 10^18"))?;
        select.required = common.unwrap_or_default();
        Ok(select)
    }

    /// What all chunks hold together; `None` if it is beyond all that can be computed.
    pub(super) fn total(&self) -> Option<ChunkSize> {
        self.chunks.iter().try_fold(ChunkSize::default(), |sum, (count, size)| sum.plus(size.times(*count)?))
    }

    /// The chunks in the notation of [`Chunk`](evenhand_model::Chunk); `None` if it is one.
    pub(super) fn chunks(&self, place: Place) -> Option<String> {
        if place.is_packed || matches!(self.chunks.as_slice(), [(1, _)]) {
            return None;
        }
        let text = |(count, size): &(u32, ChunkSize)| {
            let more = [("mem", size.mem), ("gpu", size.gpu)].into_iter().filter(|(_, amount)| *amount > 0);
            let more: String = more.map(|(name, amount)| format!(":{name}={}", Decimal(amount))).collect();
            format!("{count}:cpu={}{more}", Decimal(size.cpu))
        };
        Some(self.chunks.iter().map(text).collect::<Vec<_>>().join("+"))
    }

    /// What is required of every host, in the notation of [`Requirements`].
    pub(super) fn requires(&self, place: Place) -> String {
        let exclusive = place.is_exclusive.then_some(Requirements::WHOLE_MACHINES);
        let scattered = self.chunks(place).filter(|_| place.is_scattered).map(|_| Requirements::SEPARATE_MACHINES);
        let required = self.required.iter().map(String::as_str);
        required.chain(exclusive).chain(scattered).collect::<Vec<_>>().join(",")
    }
}

const COUNT: &str = "a number of chunks from 1 on";

/// A chunk: how many, of what size, and what it requires of its host.
fn chunk(part: &str) -> Result<(u32, ChunkSize, Vec<String>), Fault<'_>> {
    let mut size = ChunkSize { cpu: NANO, ..ChunkSize::default() };
    let (mut count, mut required) = (1, Vec::new());
    let mut at = 0;
    for (place, field) in part.split(':').enumerate() {
        let offset = at;
        at += field.len() + 1;
        if place == 0 && !field.contains('=') {
            let (number, digits) = leading_digits(field.as_bytes());
            let is_number = digits > 0 && digits == field.len();
            count = u32::try_from(number).ok().filter(|n| *n > 0 && is_number).ok_or((offset, field, COUNT))?;
            continue;
        }
        let Some((name, value)) = field.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())
        else {
            return Err((offset, field, "resource=value, such as ncpus=4 or mem=8gb"));
        };
        match name {
            "ncpus" => {
                let number = decimal(value.as_bytes()).map(|d| d.nano).filter(|n| *n > 0);
                size.cpu = number.ok_or((offset, field, "a number of processors above 0"))?;
            }
            "mem" => {
                size.mem = bytes(value.as_bytes()).ok_or((offset, field, "a size such as 8gb"))?;
            }
            "ngpus" | "naccelerators" => {
                size.gpu = decimal(value.as_bytes()).map(|d| d.nano).ok_or((offset, field, "a number of GPUs"))?;
            }
            _ => required.extend(
                requirement(name, value).filter(|word| !required.contains(word)).into_iter().collect::<Vec<_>>(),
            ),
        }
    }
    Ok((count, size, required))
}

/// The word for a resource that its host must have: the name of a host or a type, or a property that is true or false.
fn requirement(name: &str, value: &str) -> Option<String> {
    let is_any = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    let word = match name {
        "host" | "vnode" | "vntype" => value.to_string(),
        _ if is_any(&["true", "t", "y"]) => name.to_string(),
        _ if is_any(&["false", "f", "n"]) => format!("^{name}"),
        _ => return None,
    };
    is_property(&word).then_some(word)
}

impl Place {
    /// Parses where chunks are placed: `free`, `pack`, `scatter` or `vscatter`, and whether their hosts are shared. Vnodes
    /// are taken for hosts.
    pub(super) fn parse(text: &str) -> Result<Place, Fault<'_>> {
        let mut place = Place::default();
        let mut at = 0;
        for word in text.split(':') {
            match word {
                "pack" => place.is_packed = true,
                "excl" | "exclhost" => place.is_exclusive = true,
                "scatter" | "vscatter" => place.is_scattered = true,
                "free" | "shared" => {}
                _ if word.starts_with("group=") => {}
                _ => {
                    return Err((at, word, "free, pack, scatter, vscatter, excl, exclhost, shared or group=resource"));
                }
            }
            at += word.len() + 1;
        }
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_read_as_pbs_means_them() {
        let read = |text: &str, place: &str| {
            let (select, place) = (Select::parse(text).unwrap(), Place::parse(place).unwrap());
            (select.chunks(place), select.requires(place))
        };
        let none = String::new;
        let two = "2:ncpus=4:mem=8gb+1:ncpus=16:ngpus=2";
        let chunks = "2:cpu=4:mem=8589934592+1:cpu=16:gpu=2";
        assert_eq!(read(two, "free"), (Some(chunks.into()), none()));
        assert_eq!(read(two, "scatter:exclhost"), (Some(chunks.into()), "#excl,#scatter".into()));
        assert_eq!(read(two, "pack"), (None, none()));
        assert_eq!(read("ncpus=2+2:ncpus=2", "free:shared"), (Some("3:cpu=2".into()), none()));
        assert_eq!(read("1:mem=1gb", "free"), (None, none()));
        assert_eq!(read("3", "vscatter:group=rack"), (Some("3:cpu=1".into()), "#scatter".into()));
        let required = read("2:ncpus=1:host=n7:ssd=True:old=false:mpiprocs=1+1:ncpus=2:ssd=true", "free").1;
        assert_eq!(required, "ssd");
        assert_eq!(read("1:ncpus=1:vntype=cray_compute:ssd=T:old=n", "excl").1, "cray_compute,ssd,^old,#excl");
        let total = Select::parse(two).unwrap().total().unwrap();
        assert_eq!((total.cpu / NANO, total.mem / NANO, total.gpu / NANO), (24, 16 << 30, 2));
    }

    #[test]
    fn the_faulty_part_is_found() {
        for (text, at, found) in [
            ("", 0, ""),
            ("0:ncpus=1", 0, "0"),
            ("2x:ncpus=1", 0, "2x"),
            ("2:ncpus=x", 2, "ncpus=x"),
            ("2:ncpus=0", 2, "ncpus=0"),
            ("1:ncpus=1+2:mem=8xb", 12, "mem=8xb"),
            ("1:ncpus=1+", 10, ""),
            ("1:ncpus", 2, "ncpus"),
            ("1::ncpus=1", 2, ""),
            ("99999999999:ncpus=1", 0, "99999999999"),
        ] {
            let (place, part, _) = Select::parse(text).unwrap_err();
            assert_eq!((place, part), (at, found), "{text:?}");
        }
        let (at, found, _) = Place::parse("scatter:alone").unwrap_err();
        assert_eq!((at, found), (8, "alone"));
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[0-9a-z:=+.]{0,40}") {
            let place = Place::parse(&text).unwrap_or_default();
            let _ = Select::parse(&text).map(|s| (s.total(), s.chunks(place), s.requires(place)));
        }
    }
}
