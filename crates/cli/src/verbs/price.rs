//! `evenhand price`: the cost of a job on the machines of a cluster.

use evenhand_documents::did_you_mean;
use evenhand_model::duration_text::interval;
use evenhand_model::{Chunk, Cluster, Queue, Rational, Resource, Span, to_f64};
use evenhand_policies::equivalents::{Combine, Equivalents, Weakness};
use evenhand_study::read_cluster;
use serde::Serialize;

use crate::arguments::PriceArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};
use crate::output::named_values::NamedValues;
use crate::output::numbers::four_digits;
use crate::output::output_number::{AmountFormat, OutputNumber};
use crate::output::table::{Table, printable};

/// What `price` prints as JSON.
#[derive(Debug, Serialize)]
struct PriceRecord {
    job: String,
    queue: Option<String>,
    queue_price: f64,
    walltime_s: f64,
    combine: &'static str,
    chunks: Vec<ChunkRecord>,
    /// The price under every rule that combines resources, side by side.
    rules: Vec<RuleRecord>,
    /// Sum over all chunks; absent if a chunk fits on no machine.
    processors: Option<f64>,
    /// The same if the whole cluster counts as one machine, as in Maui.
    maui_processors: f64,
    /// Processor-seconds charged, on the slowest and on the fastest machines on which the job fits.
    penalty: Option<[f64; 2]>,
    /// Reasons why the job is not admitted.
    refused: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RuleRecord {
    combine: &'static str,
    /// Sum over all chunks; absent if a chunk fits on no machine.
    processors: Option<f64>,
    /// The price of one unit of each optional resource, such as a GPU, on each group of machines that has it.
    unit_prices: Vec<UnitPriceRecord>,
}

#[derive(Debug, Serialize)]
struct UnitPriceRecord {
    resource: String,
    machines: String,
    processors: f64,
    /// The processors of one machine of the group.
    machine_processors: f64,
}

#[derive(Debug, Serialize)]
struct ChunkRecord {
    count: u32,
    wants: NamedValues<f64>,
    /// The requested amounts as text.
    #[serde(skip)]
    amounts: String,
    machines: Vec<MachineRecord>,
    /// The group with the lowest price.
    cheapest: Option<String>,
    processors: Option<f64>,
}

#[derive(Debug, Serialize)]
struct MachineRecord {
    name: String,
    count: u32,
    speed: f64,
    processors: Option<f64>,
    /// The resource of which the chunk takes the largest part.
    decided_by: Option<String>,
    /// The part of `processors` for optional resources, by resource.
    besides: NamedValues<f64>,
    /// The reason why the chunk cannot run there.
    unsuitable: Option<String>,
}

/// The job and the cluster, in the cluster's units.
struct Pricing<'a> {
    cluster: &'a Cluster,
    queue: Option<&'a Queue>,
    resources: Vec<Resource>,
    properties: Vec<&'a str>,
    prices: Equivalents,
    chunks: Vec<(u32, Vec<Rational>)>,
    walltime: Span,
}

pub(crate) fn run(args: &PriceArgs, console: &Console) -> Result<Outcome, Failure> {
    let chunks = Chunk::parse_all(&args.job).map_err(|e| Failure::Input(format!("JOB: {e}")))?;
    let walltime = Span::parse(&args.walltime).map_err(|e| Failure::Input(format!("--walltime: {e}"))).and_then(
        |span| match span {
            Span::ZERO => Err(Failure::Input("--walltime: found 0, expected a time above 0".into())),
            span => Ok(span),
        },
    )?;
    let cluster = read_cluster(&args.cluster).map_err(Failure::document)?.ok_or_else(|| {
        Failure::Input(format!("{}: found no [[machines]], expected at least one", args.cluster.display()))
    })?;
    let pricing = Pricing::new(args, &cluster, &chunks, walltime)?;
    let record = pricing.record(args);
    if console.is_json() {
        console.json(&record)?;
    } else {
        console.result(&tables(&record))?;
    }
    Ok(if record.refused.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}

impl<'a> Pricing<'a> {
    fn new(
        args: &'a PriceArgs,
        cluster: &'a Cluster,
        chunks: &[Chunk],
        walltime: Span,
    ) -> Result<Pricing<'a>, Failure> {
        let names = || cluster.resources.iter().map(String::as_str);
        let queue =
            match &args.queue {
                None => None,
                Some(name) => Some(cluster.queue(name).ok_or_else(|| {
                    Failure::unknown("--queue", name, cluster.queues.iter().map(|q| q.name.as_str()))
                })?),
            };
        // A resource that the job or the cluster writes as a size is in bytes; the others have no unit.
        let wanted = || chunks.iter().flat_map(|c| &c.demand);
        let resources: Vec<Resource> = names()
            .enumerate()
            .map(|(r, name)| {
                let of_machines = cluster.groups.iter().any(|g| g.capacity[r].is_bytes);
                let is_bytes = of_machines || wanted().any(|(n, amount)| n == name && amount.is_bytes);
                Resource::new(name, if is_bytes { "B" } else { "" })
            })
            .collect();
        let properties: Vec<&str> =
            args.property.iter().chain(queue.iter().flat_map(|q| &q.properties)).map(String::as_str).collect();
        for property in &args.property {
            let known = || cluster.groups.iter().flat_map(|g| &g.properties).map(String::as_str);
            if !known().any(|k| k == property) {
                let near = did_you_mean(property, known());
                return Err(Failure::Input(format!("--property: no machine has {property:?}{near}")));
            }
        }
        let units = |chunk: &Chunk| {
            let mut row = vec![Rational::ZERO; resources.len()];
            for (name, amount) in &chunk.demand {
                let r = resources
                    .iter()
                    .position(|r| r.name == *name)
                    .ok_or_else(|| Failure::unknown("JOB", name, names()))?;
                row[r] = amount.in_unit(&resources[r].unit);
            }
            Ok((chunk.count, row))
        };
        let chunks = chunks.iter().map(units).collect::<Result<Vec<_>, Failure>>()?;
        let prices = Equivalents::of_cluster(cluster, &resources, args.combine)
            .map_err(|e| Failure::Input(format!("{}: {e}", args.cluster.display())))?;
        Ok(Pricing { cluster, queue, resources, properties, prices, chunks, walltime })
    }

    fn lacks(&self, kind: usize) -> Option<&str> {
        let has = &self.cluster.groups[kind].properties;
        self.properties.iter().copied().find(|p| !has.iter().any(|h| h == p))
    }

    fn suits(&self, kind: usize) -> bool {
        self.lacks(kind).is_none()
    }

    fn amount(&self, r: usize, amount: &Rational) -> String {
        let is_bytes = !self.resources[r].unit.is_empty();
        let number = if is_bytes {
            AmountFormat::for_capacity(amount).format(&OutputNumber::Float(to_f64(amount)))
        } else {
            four_digits(to_f64(amount))
        };
        format!("{number} {}", self.resources[r].name)
    }

    fn amounts(&self, row: &[Rational]) -> String {
        let wanted = (0..row.len()).filter(|r| !row[*r].is_zero());
        wanted.map(|r| self.amount(r, &row[r])).collect::<Vec<_>>().join(", ")
    }

    fn chunk(&self, (count, row): &(u32, Vec<Rational>)) -> ChunkRecord {
        let name = |r: usize| self.resources[r].name.clone();
        let machine = |kind: usize| {
            let group = &self.cluster.groups[kind];
            let mut record = MachineRecord {
                name: group.name.clone(),
                count: group.count,
                speed: to_f64(&group.speed),
                processors: None,
                decided_by: None,
                besides: NamedValues(Vec::new()),
                unsuitable: self.lacks(kind).map(|p| format!("lacks {p}")),
            };
            match self.prices.on(kind, row) {
                _ if record.unsuitable.is_some() => (),
                Ok(price) => {
                    record.processors = Some(to_f64(&price.processors));
                    record.decided_by = Some(name(price.decides));
                    let besides = price.besides.iter().enumerate().filter(|(_, p)| !p.is_zero());
                    record.besides = NamedValues(besides.map(|(r, p)| (name(r), to_f64(p))).collect());
                }
                Err(why) => record.unsuitable = Some(format!("has {}", self.amount(why.resource, &why.has))),
            }
            record
        };
        let lowest = self.prices.lowest_of(row, |k| self.suits(k));
        let wants = row.iter().enumerate().filter(|(_, x)| !x.is_zero());
        ChunkRecord {
            count: *count,
            wants: NamedValues(wants.map(|(r, x)| (name(r), to_f64(x))).collect()),
            amounts: self.amounts(row),
            machines: (0..self.prices.kinds()).map(machine).collect(),
            cheapest: lowest.as_ref().map(|(k, _)| self.cluster.groups[*k].name.clone()),
            processors: lowest.map(|(_, e)| to_f64(&e.processors)),
        }
    }

    /// Returns the prices under every rule.
    fn rules(&self) -> Vec<RuleRecord> {
        let rule = |combine: Combine| {
            let prices = self.prices.clone().combined(combine);
            let lowest = |row: &[Rational]| Some(prices.lowest_of(row, |k| self.suits(k))?.1.processors);
            let mut unit_prices = Vec::new();
            for (kind, group) in self.cluster.groups.iter().enumerate() {
                for r in 0..self.resources.len() {
                    // A size is an amount of memory or of disk, of which one byte has no meaning.
                    let whole = self.resources[r].unit.is_empty() && r != prices.processors();
                    let one: Vec<Rational> = (0..self.resources.len())
                        .map(|i| if i == r { Rational::ONE } else { Rational::ZERO })
                        .collect();
                    if let Some(price) = whole.then(|| prices.on(kind, &one).ok()).flatten() {
                        unit_prices.push(UnitPriceRecord {
                            resource: self.resources[r].name.clone(),
                            machines: group.name.clone(),
                            processors: to_f64(&price.processors),
                            machine_processors: to_f64(&group.capacity[prices.processors()].in_unit("")),
                        });
                    }
                }
            }
            let processors = self.total(lowest).as_ref().map(to_f64);
            RuleRecord { combine: combine.name(), processors, unit_prices }
        };
        Combine::ALL.into_iter().map(rule).collect()
    }

    /// Returns the exact sum over all chunks.
    fn total(&self, of: impl Fn(&[Rational]) -> Option<Rational>) -> Option<Rational> {
        let mut each = self.chunks.iter().map(|(count, row)| Some(of(row)? * Rational::from(*count)));
        each.try_fold(Rational::ZERO, |sum, x| Some(sum + x?))
    }

    /// Returns what all chunks request together, by resource.
    fn together(&self) -> Vec<Rational> {
        let resources = self.chunks.first().map_or(0, |(_, row)| row.len());
        let of_all =
            |r: usize| self.chunks.iter().fold(Rational::ZERO, |sum, (n, row)| sum + &row[r] * Rational::from(*n));
        (0..resources).map(of_all).collect()
    }

    /// Returns the reasons why no machine or the queue accepts the job.
    fn refused(&self) -> Vec<String> {
        let mut refused = Vec::new();
        for (count, row) in &self.chunks {
            if self.prices.lowest_of(row, |k| self.suits(k)).is_none() {
                let of = if *count == 1 { String::new() } else { format!("{count} times ") };
                refused.push(format!("no machine suits {of}{}", self.amounts(row)));
            }
        }
        let Some(queue) = self.queue else { return refused };
        if let Some(maximum) = queue.max_wall.filter(|maximum| self.walltime > *maximum) {
            refused
                .push(format!("queue {} allows at most {maximum} s, the job requests {} s", queue.name, self.walltime));
        }
        for (name, maximum) in &queue.max_job {
            let Some(r) = self.resources.iter().position(|r| r.name == *name) else { continue };
            let maximum = maximum.in_unit(&self.resources[r].unit);
            let wants = self.total(|row| Some(row[r].clone())).unwrap_or(Rational::ZERO);
            if wants > maximum {
                let (maximum, wants) = (self.amount(r, &maximum), self.amount(r, &wants));
                refused
                    .push(format!("queue {} allows at most {maximum} per job, the job requests {wants}", queue.name));
            }
        }
        refused
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for rule in self.rules() {
            // Of what the job does not request, the price does not matter to it.
            let wanted = |name: &str| {
                self.chunks
                    .iter()
                    .any(|(_, row)| (0..row.len()).any(|r| self.resources[r].name == name && !row[r].is_zero()))
            };
            let costs_more =
                |unit: &&UnitPriceRecord| unit.processors > unit.machine_processors && wanted(&unit.resource);
            for unit in rule.unit_prices.iter().filter(costs_more) {
                warnings.push(format!(
                    "under {} one {} of {} costs {} processors, more than the {} of its whole machine",
                    rule.combine,
                    unit.resource,
                    unit.machines,
                    four_digits(unit.processors),
                    four_digits(unit.machine_processors),
                ));
            }
        }
        for (count, row) in &self.chunks {
            let Some((_, price)) = self.prices.lowest_of(row, |k| self.suits(k)) else { continue };
            let price = four_digits(to_f64(&price.processors));
            for weakness in self.prices.weaknesses(row, |k| self.suits(k)) {
                warnings.push(match weakness {
                    Weakness::OddMachines { kind, part, without } => format!(
                        "one unusual kind of machine determines the price: {} has {:.1} % of the processors; without it a chunk would cost {} \
                         instead of {price} on any machine",
                        self.cluster.groups[kind].name,
                        100.0 * to_f64(&part),
                        four_digits(to_f64(&without)),
                    ),
                    Weakness::Split { pieces, together } => {
                        let of = if *count == 1 { "the chunk" } else { "each chunk" };
                        let together = four_digits(to_f64(&together));
                        format!("splitting is profitable: {of} in {pieces} pieces would cost {together} instead of {price}")
                    }
                });
            }
        }
        if let Some((slow, fast)) = self.speeds().filter(|(slow, fast)| slow != fast) {
            warnings.push(format!(
                "the charge depends on where the job runs: the machines on which it fits are {} to {} times as fast as the reference, \
                 and only a run time that shrinks in proportion compensates for that",
                four_digits(to_f64(&slow)),
                four_digits(to_f64(&fast)),
            ));
        }
        warnings
    }

    /// Returns the speeds of the slowest and the fastest machines on which at least one chunk fits.
    fn speeds(&self) -> Option<(Rational, Rational)> {
        let takes =
            |kind: usize| self.suits(kind) && self.chunks.iter().any(|(_, row)| self.prices.on(kind, row).is_ok());
        let speeds = || (0..self.prices.kinds()).filter(|k| takes(*k)).map(|k| self.cluster.groups[k].speed.clone());
        Some((speeds().min()?, speeds().max()?))
    }

    fn record(&self, args: &PriceArgs) -> PriceRecord {
        let queue_price = self.queue.map_or(Rational::ONE, |q| q.price.clone());
        let processors = self.total(|row| Some(self.prices.lowest_of(row, |k| self.suits(k))?.1.processors));
        let seconds = Rational::from(self.walltime.nanos()) / Rational::from(1_000_000_000_u64);
        let penalty = processors.as_ref().zip(self.speeds()).map(|(processors, (slow, fast))| {
            let charge = |speed: Rational| to_f64(&(processors * &seconds * &queue_price * speed));
            [charge(slow), charge(fast)]
        });
        PriceRecord {
            job: args.job.clone(),
            queue: args.queue.clone(),
            queue_price: to_f64(&queue_price),
            walltime_s: self.walltime.secs_f64(),
            combine: args.combine.name(),
            chunks: self.chunks.iter().map(|chunk| self.chunk(chunk)).collect(),
            rules: self.rules(),
            maui_processors: to_f64(&self.prices.of_totals(&self.together()).processors),
            processors: processors.as_ref().map(to_f64),
            penalty,
            refused: self.refused(),
            warnings: self.warnings(),
        }
    }
}

fn tables(record: &PriceRecord) -> String {
    let mut blocks = Vec::new();
    for chunk in &record.chunks {
        let mut table = Table::new(1, ["machines", "count", "speed", "processors", "why"]);
        for m in &chunk.machines {
            let besides: String =
                m.besides.0.iter().map(|(name, x)| format!(", {} for {name}", four_digits(*x))).collect();
            let why = match (&m.unsuitable, &m.decided_by) {
                (Some(why), _) => why.clone(),
                (None, by) => format!("{} decides{besides}", by.as_deref().unwrap_or("nothing")),
            };
            let cheapest = chunk.cheapest.as_ref() == Some(&m.name);
            let processors = m.processors.map_or_else(|| "does not fit".to_string(), four_digits);
            let mark = if cheapest { " *" } else { "" };
            table.row(vec![
                printable(&m.name),
                m.count.to_string(),
                four_digits(m.speed),
                format!("{processors}{mark}"),
                printable(&why),
            ]);
        }
        blocks.push(format!("{} x {}\n\n{}", chunk.count, printable(&chunk.amounts), table.render()));
    }
    let units: Vec<&UnitPriceRecord> = record.rules.first().into_iter().flat_map(|rule| &rule.unit_prices).collect();
    let mut header = vec!["--combine".to_string(), "this job".to_string()];
    header
        .extend(units.iter().map(|unit| format!("one {} of {}", printable(&unit.resource), printable(&unit.machines))));
    let mut table = Table::new(1, header);
    for rule in &record.rules {
        let chosen = if rule.combine == record.combine { " (chosen)" } else { "" };
        let job = rule.processors.map_or_else(|| "-".to_string(), four_digits);
        let mut row = vec![format!("{}{chosen}", rule.combine), job];
        row.extend(rule.unit_prices.iter().map(|unit| four_digits(unit.processors)));
        table.row(row);
    }
    blocks.push(format!("Price in processors under each rule:\n\n{}", table.render()));
    let mut lines = Vec::new();
    if let (Some(processors), Some([low, high])) = (record.processors, record.penalty) {
        lines.push(format!(
            "The job is worth {} processor{} (* the lowest price of a chunk; Maui, which treats all machines as one: {}).",
            four_digits(processors),
            if processors == 1.0 { "" } else { "s" },
            four_digits(record.maui_processors)
        ));
        let charged = interval([low, high].map(four_digits));
        lines.push(format!(
            "Charged for {} s at queue price {}: {charged} processor-seconds.",
            record.walltime_s,
            four_digits(record.queue_price)
        ));
    }
    lines.extend(record.refused.iter().map(|why| format!("Refused: {}.", printable(why))));
    lines.extend(record.warnings.iter().map(|why| format!("Warning: {}.", printable(why))));
    blocks.push(fold_lines(&lines.join("\n"), COLUMNS, "  "));
    blocks.join("\n\n")
}
