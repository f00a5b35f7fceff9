//! Numbers of results: how they are written in JSON and in tables.

use evenhand_mechanisms::Number;
use evenhand_model::{Rational, to_f64};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A number of a result: computed in 64 bits (in JSON a number), or exact (in JSON a fraction as text).
#[derive(Clone, Debug)]
pub(crate) enum Figure {
    Float(f64),
    Exact(Rational),
}

/// Conversion of computed numbers to figures.
pub(crate) trait Shown: Number {
    /// Returns the number as results print it.
    fn figure(&self) -> Figure;
}

impl<N: Number> Shown for N {
    fn figure(&self) -> Figure {
        match N::EXACT.then(|| self.to_exact()).flatten() {
            Some(exact) => Figure::Exact(exact),
            // -0 is written as 0.
            None => Figure::Float(self.to_f64() + 0.0),
        }
    }
}

impl Figure {
    pub(crate) fn to_f64(&self) -> f64 {
        match self {
            Figure::Float(x) => *x,
            Figure::Exact(x) => to_f64(x),
        }
    }

    /// For a table: exact ones as fractions as long as these are short.
    pub(crate) fn short(&self) -> String {
        const LONGEST: usize = 12;
        match self {
            Figure::Exact(x) => Some(x.to_string()).filter(|t| t.len() <= LONGEST),
            Figure::Float(_) => None,
        }
        .unwrap_or_else(|| short(self.to_f64()))
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Figure::Float(x) => serializer.serialize_f64(*x),
            Figure::Exact(x) => serializer.collect_str(x),
        }
    }
}

/// How tables write the amounts of a resource: as sizes, if the capacity is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale(Option<(f64, &'static str)>);

impl Scale {
    /// A capacity of whole Mi is a size, in the largest unit of which there is at least one.
    pub(crate) fn of(capacity: &Rational) -> Scale {
        let mi = Rational::from(1u64 << 20);
        if capacity.is_zero() || !(capacity / &mi).is_int() {
            return Scale(None);
        }
        let units = [(50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi")];
        let units = units.map(|(bits, unit)| ((1u64 << bits) as f64, unit));
        Scale(units.into_iter().find(|(size, _)| to_f64(capacity) >= *size))
    }

    /// The amount for a table.
    pub(crate) fn short(self, amount: &Figure) -> String {
        match self.0 {
            Some((size, unit)) if amount.to_f64() != 0.0 => format!("{}{unit}", short(amount.to_f64() / size)),
            _ => amount.short(),
        }
    }
}

/// Names with values, written as an object in this order.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(String, T)>);

impl<T> Named<T> {
    pub(crate) fn new(names: &[String], values: impl IntoIterator<Item = T>) -> Named<T> {
        Named(names.iter().cloned().zip(values).collect())
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Four digits where that says enough: `3`, `2.5`, `0.6667`, `19327352832`, `1.2e-7`.
pub(crate) fn short(x: f64) -> String {
    let size = x.abs();
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return trimmed(format!("{x:.3e}"));
    }
    let decimals = match size {
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        _ => 4,
    };
    trimmed(format!("{x:.decimals$}"))
}

/// Without zeros at the end of a decimal.
fn trimmed(text: String) -> String {
    let (mantissa, exponent) = text.split_once('e').map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    exponent.map_or_else(|| mantissa.to_string(), |e| format!("{mantissa}e{e}"))
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Quantity, Rational};

    use super::{Figure, Scale, short};

    #[test]
    fn sizes_stay_sizes() {
        let shown = |capacity: &str, amount: f64| {
            Scale::of(Quantity::parse(capacity).unwrap().exact()).short(&Figure::Float(amount))
        };
        assert_eq!(shown("18Gi", (12u64 << 30) as f64), "12Gi");
        assert_eq!(shown("1.5Ti", (1u64 << 39) as f64), "0.5Ti");
        assert_eq!(shown("18Gi", 0.0), "0");
        assert_eq!(shown("1000000", 500.0), "500");
        assert_eq!(shown("0", 0.0), "0");
        let third = Figure::Exact(Rational::ONE / Rational::from(3u8));
        assert_eq!(Scale::of(&Rational::from(18u8)).short(&third), "1/3");
    }

    #[test]
    fn short_numbers() {
        for (x, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (2.5, "2.5"),
            (2.0 / 3.0, "0.6667"),
            (1234.6, "1235"),
            (100.0, "100"),
            (19_327_352_832.0, "19327352832"),
            (1.2e-7, "1.2e-7"),
            (1e300, "1e300"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
