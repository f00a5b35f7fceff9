//! Programs of processes: phases of steps, each the use of one resource (Zeldes and Feitelson, 2013, section 4.1).

use std::fmt;

use evenhand_model::random::Stream;
use evenhand_model::{Quantity, Span};

/// Name of a pure delay: no resource, no queue, no accounting.
pub const IDLE: &str = "idle";

/// Program of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Relative priority (entitlement), greater than 0.
    pub priority: Quantity,
    /// Phases, in order.
    pub phases: Vec<Phase>,
}

/// Steps that are repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Number of repetitions, at least 1.
    pub iterations: u64,
    /// Steps of each repetition; at least one.
    pub steps: Vec<Step>,
}

/// Use of a resource, or a delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the resource, or [`IDLE`].
    pub resource: String,
    /// Mean service time.
    pub mean: Span,
    /// Standard deviation (NORM), half the range (UNIF); ignored for EXP.
    pub width: Span,
    /// Distribution of the service time.
    pub distribution: Distribution,
}

/// Distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Normal.
    Norm,
    /// Uniform.
    Unif,
    /// Exponential.
    Exp,
}

impl Distribution {
    /// All distributions, in the order of the paper's text.
    pub const ALL: [Distribution; 3] = [Distribution::Unif, Distribution::Exp, Distribution::Norm];

    /// Returns the name used in programs.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Norm => "NORM",
            Distribution::Unif => "UNIF",
            Distribution::Exp => "EXP",
        }
    }
}

/// Shortest service, in nanoseconds: a normal or uniform draw may be negative, which the paper does not discuss.
pub(crate) const TICK: u64 = 1;

/// Draws a service time in nanoseconds. Uses the stream only if the time is random.
pub(crate) fn draw(mean: u64, width: u64, distribution: Distribution, stream: &mut Stream) -> u64 {
    let (m, w) = (mean as f64, width as f64);
    let drawn = match distribution {
        Distribution::Norm | Distribution::Unif if width == 0 => return mean.max(TICK),
        Distribution::Norm => m + w * stream.normal(),
        Distribution::Unif => m + w * (2.0 * stream.uniform() - 1.0),
        Distribution::Exp => stream.exponential(m),
    };
    // `as` saturates at both ends of u64; + 0.5 rounds to the nearest.
    ((drawn + 0.5) as u64).clamp(TICK, Span::MAX.nanos() >> 8)
}

impl Program {
    /// Returns whether no service time is random.
    pub fn is_deterministic(&self) -> bool {
        let mut steps = self.phases.iter().flat_map(|p| &p.steps);
        steps.all(|s| s.distribution != Distribution::Exp && s.width == Span::ZERO)
    }

    /// Returns the mean service and delay of the whole program, in nanoseconds, if it never waits.
    pub fn mean_length(&self) -> u128 {
        let phase = |p: &Phase| p.steps.iter().map(|s| u128::from(s.mean.nanos())).sum::<u128>();
        self.phases.iter().map(|p| u128::from(p.iterations) * phase(p)).sum()
    }

    /// Describes the program in words: one line for the priority, one per phase and one for the sum.
    ///
    /// ```
    /// let text = "# Priority:\n34\n# Requests:\nloop 40\nDISK_CS 0.1 0.05 NORM\nCPU_CS 0.1 0 NORM\n";
    /// let program = evenhand_processes::Program::parse("p.prog", text).unwrap();
    /// assert_eq!(
    ///     program.explain(),
    ///     "entitlement 34 (relative to the others)\n\
    ///      40 times: DISK_CS for 0.1 s on average (normal, standard deviation 0.05 s; in quanta), \
    ///      then CPU_CS for exactly 0.1 s (in quanta)\n\
    ///      in all 8 s if it never waits (mean; service times are random): DISK_CS 4 s, CPU_CS 4 s"
    /// );
    /// ```
    pub fn explain(&self) -> String {
        let mut lines = vec![format!("entitlement {} (relative to the others)", quantity(&self.priority))];
        for phase in &self.phases {
            let steps: Vec<String> = phase.steps.iter().map(explain_step).collect();
            let times = match phase.iterations {
                1 => "once".to_string(),
                2 => "twice".to_string(),
                n => format!("{n} times"),
            };
            lines.push(format!("{times}: {}", steps.join(", then ")));
        }
        let mut sums: Vec<(&str, u128)> = Vec::new();
        for phase in &self.phases {
            for step in &phase.steps {
                let time = u128::from(step.mean.nanos()) * u128::from(phase.iterations);
                match sums.iter_mut().find(|(name, _)| *name == step.resource) {
                    Some((_, sum)) => *sum += time,
                    None => sums.push((&step.resource, time)),
                }
            }
        }
        let each: Vec<String> = sums.iter().map(|(name, sum)| format!("{name} {} s", seconds(*sum))).collect();
        let kind = if self.is_deterministic() { "" } else { " (mean; service times are random)" };
        lines.push(format!("in all {} s if it never waits{kind}: {}", seconds(self.mean_length()), each.join(", ")));
        lines.join("\n")
    }
}

fn explain_step(step: &Step) -> String {
    let time = match step.distribution {
        Distribution::Exp => format!("{} s on average (exponential)", step.mean),
        _ if step.width == Span::ZERO => format!("exactly {} s", step.mean),
        Distribution::Norm => format!("{} s on average (normal, standard deviation {} s)", step.mean, step.width),
        Distribution::Unif => format!("{} s on average (uniform, {} s to either side)", step.mean, step.width),
    };
    if step.resource == IDLE {
        return format!("idle for {time}");
    }
    if !step.resource.ends_with(crate::scenario::PREEMPTIVE_SUFFIX) {
        return format!("{} for {time}", step.resource);
    }
    match time.strip_suffix(')') {
        Some(open) => format!("{} for {open}; in quanta)", step.resource),
        None => format!("{} for {time} (in quanta)", step.resource),
    }
}

/// Formats nanoseconds, possibly more than a [`Span`] holds, as seconds.
fn seconds(nanos: u128) -> String {
    let rest = format!("{:09}", nanos % 1_000_000_000);
    let whole = nanos / 1_000_000_000;
    match rest.trim_end_matches('0') {
        "" => whole.to_string(),
        rest => format!("{whole}.{rest}"),
    }
}

/// Formats a quantity as a decimal number if it is one, else as a fraction.
pub(crate) fn quantity(quantity: &Quantity) -> String {
    quantity.nano().map_or_else(|| quantity.exact().to_string(), seconds)
}

impl fmt::Display for Program {
    /// Writes the program as a `.prog` file that parses to the same program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Priority:\n{}\n# Requests:", quantity(&self.priority))?;
        for phase in &self.phases {
            writeln!(f, "loop {}", phase.iterations)?;
            for Step { resource, mean, width, distribution } in &phase.steps {
                writeln!(f, "{resource} {mean} {width} {}", distribution.name())?;
            }
        }
        Ok(())
    }
}
