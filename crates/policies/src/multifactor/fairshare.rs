//! The fair-share factor.

use std::fmt;
use std::str::FromStr;

/// The kind of fair-share factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fairshare {
    /// Fair Tree's rank over the number of users, Slurm's default since 19.05.
    #[default]
    FairTree,
    /// 2^(-U_E / S / d), as with `PriorityFlags=NO_FAIR_TREE`.
    Classic,
    /// 2^(-R / d) with R as with `PriorityFlags=DEPTH_OBLIVIOUS`: [`depth_oblivious_ratio`].
    DepthOblivious,
}

impl Fairshare {
    /// All kinds.
    pub const ALL: [Fairshare; 3] = [Fairshare::FairTree, Fairshare::Classic, Fairshare::DepthOblivious];

    /// Returns the name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Fairshare::FairTree => "fair-tree",
            Fairshare::Classic => "classic",
            Fairshare::DepthOblivious => "depth-oblivious",
        }
    }
}

impl fmt::Display for Fairshare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fairshare {
    type Err = String;
    fn from_str(text: &str) -> Result<Fairshare, String> {
        Fairshare::ALL.into_iter().find(|f| f.name() == text).ok_or_else(|| {
            let names = Fairshare::ALL.map(Fairshare::name).join(", ");
            format!("found {text:?}, expected one of: {names}")
        })
    }
}

/// The classic factor F = 2^(-ratio / damping), in (0, 1]: `ratio` is effective usage over normalised shares
/// (U_E / S, or R), `damping` Slurm's `FairShareDampeningFactor`.
///
/// An extreme ratio is held at the lowest `f64` above 0 that is not subnormal.
pub fn fairshare_factor(ratio: f64, damping: f64) -> f64 {
    libm::exp2(-(ratio / damping)).max(f64::MIN_POSITIVE)
}

/// The effective usage ratio R of a user or account from that of the account above it, R_p, and its local usage
/// ratio r_l: its usage over shares, divided by that of all its siblings together, itself included.
///
/// R = R_p r_l^k, with k = 1 if ln R_p ln r_l >= 0, else k = 1 / (1 + (5 ln R_p)^2). So the depth at which a user
/// stands does not matter where the accounts above used what they are entitled to. Directly under the root R is
/// usage over shares. (slurm.schedmd.com/priority_multifactor3.html.)
pub fn depth_oblivious_ratio(parent: f64, local: f64) -> f64 {
    if parent <= 0.0 || local <= 0.0 {
        return 0.0;
    }
    let (of_parent, of_local) = (libm::log(parent), libm::log(local));
    if of_parent * of_local >= 0.0 {
        return parent * local;
    }
    let away = 5.0 * of_parent;
    parent * libm::pow(local, 1.0 / (1.0 + away * away))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn a_factor_of_half_is_exactly_the_share() {
        assert_eq!(fairshare_factor(1.0, 1.0), 0.5);
        assert_eq!(fairshare_factor(0.0, 1.0), 1.0);
        assert_eq!(fairshare_factor(2.0, 1.0), 0.25);
        assert_eq!(fairshare_factor(4.0, 2.0), 0.25);
        assert!(fairshare_factor(1e9, 1.0) > 0.0);
    }

    #[test]
    fn on_target_ancestors_leave_a_user_its_own_ratio() {
        assert!(close(depth_oblivious_ratio(1.0, 3.0), 3.0));
        assert!(close(depth_oblivious_ratio(1.0, 0.25), 0.25));
        // In the same direction as the ancestors: its own ratio, R_p r_l.
        assert!(close(depth_oblivious_ratio(2.0, 1.5), 3.0));
        assert!(close(depth_oblivious_ratio(0.5, 0.5), 0.25));
        assert_eq!(depth_oblivious_ratio(2.0, 0.0), 0.0);
        assert_eq!(depth_oblivious_ratio(0.0, 0.0), 0.0);
    }

    /// "All the children have used two times their combined shares, but one only two thirds of his: the local
    /// ratio is one third." k = 1 / (1 + (5 ln 2)^2) = 1 / 13.0113...
    #[test]
    fn the_documentation_s_example_moves_toward_the_parent() {
        let (parent, own) = (2.0, 2.0 / 3.0);
        let local = own / parent;
        assert!(close(local, 1.0 / 3.0));
        let k = 1.0 / (1.0 + 25.0 * std::f64::consts::LN_2 * std::f64::consts::LN_2);
        assert!((1.0 / k - 13.0113).abs() < 1e-4);
        let found = depth_oblivious_ratio(parent, local);
        assert!(close(found, 2.0 * 3f64.powf(-k)), "{found}");
        assert!(own < found && found < parent, "between its own and its parent's");
    }

    #[test]
    fn names_are_read_back() {
        assert!(Fairshare::ALL.iter().all(|f| f.name().parse() == Ok(*f)));
        assert!("fair".parse::<Fairshare>().is_err());
    }
}
