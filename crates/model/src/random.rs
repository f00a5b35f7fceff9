//! Seeded random numbers that are the same on every machine and for any number of threads.
//!
//! A stream is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), seeded by
//! SplitMix64 from the master seed, the stream's name and its index, so that streams are independent of each other.
//! Distributions invert their cumulative distribution function with `libm`; the platform's own functions differ in
//! their last bits.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream([u64; 4]);

impl Stream {
    /// Creates the stream `name`/`index` of a master seed.
    pub fn new(seed: u64, name: &str, index: u64) -> Stream {
        // FNV-1a over the name; SplitMix64 removes the structure that is left.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut mixed = seed ^ hash;
        let mut state = split_mix(&mut mixed);
        state = state.wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95));
        Stream(std::array::from_fn(|_| split_mix(&mut state)))
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Draws from the uniform distribution on the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Draws uniformly from `0..n`; returns 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias is n / 2^64, too small to be observed.
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }

    /// Draws from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Draws from the Pareto distribution with tail index `alpha`, truncated to `min..max`.
    pub fn pareto(&mut self, alpha: f64, min: f64, max: f64) -> f64 {
        let cut = 1.0 - libm::pow(min / max, alpha);
        min * libm::pow(1.0 - self.uniform() * cut, -1.0 / alpha)
    }

    /// Shuffles a list (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the quantile of the standard normal distribution for a probability `p` in (0, 1), to about 16 digits
/// (Wichura, algorithm AS 241, 1988).
#[expect(clippy::excessive_precision, reason = "the coefficients as published")]
pub fn normal_quantile(p: f64) -> f64 {
    fn ratio(r: f64, above: [f64; 8], below: [f64; 8]) -> f64 {
        let horner = |c: [f64; 8]| c.into_iter().rev().fold(0.0, |sum, c| sum * r + c);
        horner(above) / horner(below)
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let above = [
            3.387132872796366608,
            133.14166789178437745,
            1971.5909503065514427,
            13731.693765509461125,
            45921.953931549871457,
            67265.770927008700853,
            33430.575583588128105,
            2509.0809287301226727,
        ];
        let below = [
            1.0,
            42.313330701600911252,
            687.1870074920579083,
            5394.1960214247511077,
            21213.794301586595867,
            39307.89580009271061,
            28729.085735721942674,
            5226.495278852545925,
        ];
        return q * ratio(0.180625 - q * q, above, below);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let score = if r <= 5.0 {
        let above = [
            1.42343711074968357734,
            4.6303378461565452959,
            5.7694972214606914055,
            3.64784832476320460504,
            1.27045825245236838258,
            0.24178072517745061177,
            0.0227238449892691845833,
            7.7454501427834140764e-4,
        ];
        let below = [
            1.0,
            2.05319162663775882187,
            1.6763848301838038494,
            0.68976733498510000455,
            0.14810397642748007459,
            0.0151986665636164571966,
            5.475938084995344946e-4,
            1.05075007164441684324e-9,
        ];
        ratio(r - 1.6, above, below)
    } else {
        let above = [
            6.6579046435011037772,
            5.4637849111641143699,
            1.7848265399172913358,
            0.29656057182850489123,
            0.026532189526576123093,
            0.0012426609473880784386,
            2.71155556874348757815e-5,
            2.01033439929228813265e-7,
        ];
        let below = [
            1.0,
            0.59983220655588793769,
            0.13692988092273580531,
            0.0148753612908506148525,
            7.868691311456132591e-4,
            1.8463183175100546818e-5,
            1.4215117583164458887e-7,
            2.04426310338993978564e-15,
        ];
        ratio(r - 5.0, above, below)
    };
    if q < 0.0 { -score } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_outputs() {
        // First outputs of xoshiro256++ for the state 1, 2, 3, 4, from the authors' C code.
        let mut s = Stream([1, 2, 3, 4]);
        let expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205];
        assert_eq!(std::array::from_fn(|_| s.bits()), expected);
        // SplitMix64 for the state 1234567, as in its authors' test.
        let mut state = 1_234_567;
        assert_eq!(std::array::from_fn(|_| split_mix(&mut state)), [6457827717110365317, 3203168211198807973]);
    }

    #[test]
    fn normal_quantiles_match_published_values() {
        for (p, z) in [(0.975, 1.959963984540054), (0.5, 0.0), (0.05, -1.6448536269514722), (1e-12, -7.034483825301131)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-12, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn streams_differ_by_seed_name_and_index() {
        let first = |seed, name, index| Stream::new(seed, name, index).bits();
        let all = [first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1), first(1, "", 0)];
        for (i, x) in all.iter().enumerate() {
            assert!(!all[..i].contains(x));
        }
        assert_eq!(first(7, "jobs", 3), first(7, "jobs", 3));
    }

    #[test]
    fn the_outputs_of_a_stream_never_change() {
        // A change of these values changes every generated workload that was ever cited.
        let mut s = Stream::new(42, "golden", 7);
        assert_eq!([s.bits(), s.bits()], GOLDEN_BITS);
        let drawn = [s.uniform(), s.exponential(3.0), s.normal(), s.pareto(0.61, 11.0, 20_000.0)];
        assert_eq!(drawn.map(f64::to_bits), GOLDEN_FLOATS);
        assert_eq!(s.below(1000), GOLDEN_BELOW);
    }
    const GOLDEN_BITS: [u64; 2] = [1873621116599349023, 1005795429706807897];
    const GOLDEN_FLOATS: [u64; 4] =
        [4588471648483310032, 4607056049901822694, 4599134869853419937, 4631623496223753502];
    const GOLDEN_BELOW: u64 = 226;

    #[test]
    fn draws_have_their_means() {
        let mut s = Stream::new(1, "means", 0);
        let n = 200_000;
        let mut mean = |draw: fn(&mut Stream) -> f64| (0..n).map(|_| draw(&mut s)).sum::<f64>() / f64::from(n);
        assert!((mean(Stream::uniform) - 0.5).abs() < 0.003);
        assert!((mean(|s| s.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!(mean(Stream::normal).abs() < 0.01);
        assert!((mean(|s| s.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(|s| s.below(11) as f64) - 5.0).abs() < 0.03);
        assert!((mean(|s| f64::from(u8::from(s.pareto(1.0, 1.0, 100.0) > 10.0))) - 0.0909).abs() < 0.003);
    }
}
