//! Jobs that could be submitted, of `slurm when --shape` and `--script`: what they ask for, and whether a partition of the site can
//! ever start them.

use evenhand_documents::did_you_mean;
use evenhand_forecast::StartRecord;
use evenhand_model::{Requirements, Span, Time};
use evenhand_slurm::{BatchRequest, Configuration, NeverStarts, NewRequest, Node, Partition, Pools, Queue};

use crate::arguments::SlurmWhenArgs;
use crate::failure::Failure;
use crate::inputs::job_shape::JobShape;

/// A job that could be submitted, as it was asked for.
pub(super) struct Wanted {
    /// The shape, or the name of the script.
    pub(super) name: String,
    /// How many CPUs it needs in all.
    cpus: u64,
    /// How much memory it needs in all, in bytes; 0 if it names none.
    memory: u64,
    /// What it asks of nodes; its wall time counts where one is named.
    request: NewRequest,
    /// The wall time, if it names one.
    limit: Option<Span>,
    /// The partitions, as given.
    pub(super) partition: Option<String>,
    /// The option or the file that names the partitions.
    partition_from: String,
    pub(super) account: Option<String>,
}

/// A job that partitions of the site can start.
pub(super) struct Admitted<'a> {
    pub(super) wanted: &'a Wanted,
    /// What it asks of nodes, with the wall time and the memory that it has in the first of the partitions.
    pub(super) request: NewRequest,
    /// How many CPUs it has in all: of nodes that it has for itself all.
    pub(super) cpus: u64,
    /// How much memory it has in all, in bytes.
    pub(super) memory: u64,
    partitions: Vec<&'a Partition>,
}

/// The wall time of a script that names none, where the partition sets none either.
const DEFAULT_LIMIT: Span = Span::from_secs(86_400);

/// Reads the jobs that the options describe.
pub(super) fn wanted(args: &SlurmWhenArgs) -> Result<Vec<Wanted>, Failure> {
    let mut found = Vec::new();
    if let Some(path) = &args.script {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("--script: {name}: {e}"), e.kind() != std::io::ErrorKind::NotFound))?;
        let asked = BatchRequest::parse(&name, &text).map_err(Failure::input)?;
        found.push(Wanted {
            cpus: asked.cpus(),
            memory: asked.memory(),
            request: asked.request(asked.limit.unwrap_or(DEFAULT_LIMIT)),
            limit: asked.limit,
            partition_from: if args.partition.is_some() { "--partition".into() } else { name.clone() },
            partition: args.partition.clone().or(asked.partition),
            account: asked.account,
            name,
        });
    }
    for text in &args.shape {
        let shape = JobShape::parse("--shape", text, "cpu")?;
        let request = NewRequest {
            nodes: 1,
            chunks: u64::from(shape.chunks),
            cpus_per_chunk: u64::from(shape.per_chunk),
            memory_per_node: 0,
            gpus_per_node: 0,
            gpus: 0,
            gpu_type: None,
            requires: Requirements::default(),
            limit: shape.wall,
        };
        found.push(Wanted {
            name: text.clone(),
            cpus: shape.total(),
            memory: 0,
            request,
            limit: Some(shape.wall),
            partition: args.partition.clone(),
            partition_from: "--partition".into(),
            account: None,
        });
    }
    Ok(found)
}

/// Finds the partitions that can start a job: of those that it names, else of all. Refuses one that none ever starts. A job that
/// names no memory has that of the partition by `with_memory`, the site's configuration, if Slurm counts memory.
pub(super) fn admitted<'a>(
    wanted: &'a Wanted,
    partitions: &'a [Partition],
    nodes: &[Node],
    with_memory: Option<&Configuration>,
) -> Result<Admitted<'a>, Failure> {
    let named = match &wanted.partition {
        None => {
            // That of a job which names none comes first.
            let mut all: Vec<&Partition> = partitions.iter().collect();
            all.sort_by_key(|partition| !partition.is_default);
            all
        }
        Some(names) => {
            let find = |name| partition(name, &wanted.partition_from, partitions);
            names.split(',').map(find).collect::<Result<Vec<_>, _>>()?
        }
    };
    let mut refused: Option<NeverStarts> = None;
    let mut can: Vec<(&Partition, NewRequest, u64)> = Vec::new();
    for partition in named {
        let of_partition = || partition.default_time.span().or(partition.max_time.span());
        let limit = wanted.limit.or_else(of_partition).unwrap_or(DEFAULT_LIMIT);
        let request = NewRequest { limit, ..wanted.request.clone() };
        let (request, memory) = match with_memory.filter(|_| wanted.memory == 0) {
            Some(configuration) => {
                let default = partition.memory_of_jobs_that_name_none(configuration);
                request.with_default_memory(default, partition, nodes)
            }
            None => (request, wanted.memory),
        };
        match request.check(partition, nodes) {
            Ok(()) => can.push((partition, request, memory)),
            Err(never) => refused = refused.or(Some(never)),
        }
    }
    match (can.first(), refused) {
        (Some((first, request, memory)), _) => {
            let (request, memory) = (request.clone(), *memory);
            let cpus = request.cpus_of_whole_nodes(first, nodes).unwrap_or(0).max(wanted.cpus);
            let partitions = can.into_iter().map(|(partition, ..)| partition).collect();
            Ok(Admitted { wanted, request, cpus, memory, partitions })
        }
        (None, Some(never)) => Err(Failure::Input(format!("{}: {never}", wanted.name))),
        (None, None) => Err(Failure::Environment("scontrol show partition: the site shows no partition to you".into())),
    }
}

fn partition<'a>(name: &str, from: &str, partitions: &'a [Partition]) -> Result<&'a Partition, Failure> {
    partitions.iter().find(|partition| partition.name == name).ok_or_else(|| {
        let known: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
        let near = did_you_mean(name, known.iter().copied());
        Failure::Input(format!(
            "{from}: found the partition {name:?}, expected one of the site: {}{near}",
            known.join(", ")
        ))
    })
}

impl Admitted<'_> {
    /// Puts what is free beside the forecast of the start: the job does not start now if what it asks for is not free. `starts_now` is
    /// whether it does by the replays, that is by what the pools count.
    pub(super) fn bounded(
        &self,
        record: StartRecord,
        starts_now: bool,
        pools: &Pools,
        nodes: &[Node],
        queue: &Queue,
        now: Time,
    ) -> Result<StartRecord, Failure> {
        let free_in = self.partitions.iter().filter_map(|p| self.request.free_in(p, nodes, queue, now)).min();
        let free_in = free_in.ok_or_else(|| {
            Failure::Environment(format!(
                "{}: the nodes of its partitions that are up cannot start it, so that no start can be forecast; ask again when those \
                 that are down or drained are back (sinfo --list-reasons)",
                self.wanted.name
            ))
        })?;
        if free_in == 0 {
            return Ok(record);
        }
        if !record.is_contradicted_by(free_in, starts_now) {
            let mut record = record.not_before(1);
            record.caveats.push(format!(
                "What it asks for is not free now. The forecast counts {}: not {}.",
                pools.counts(),
                pools.misses()
            ));
            return Ok(record);
        }
        let mut record = record.planned(free_in, "limits");
        record.caveats.push(format!(
            "The forecast, which counts {}, counts on a start at once, but what it asks for is not free: the start shown is when jobs \
             that run have reached their limits on enough nodes. It is earlier if they end before, and later if others that wait come \
             first.",
            pools.counts()
        ));
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use evenhand_forecast::Forecast;
    use evenhand_slurm::{Counted, Nodes, Partitions};

    use super::*;

    const NODES: &str = "NodeName=n1 CPUTot=8 CPUAlloc=8 RealMemory=1000 Partitions=main,express State=ALLOCATED\n";
    const PARTITIONS: &str = "PartitionName=express MaxTime=1:00:00 DefaultTime=10:00\n\
        PartitionName=main Default=YES MaxTime=UNLIMITED\n";

    fn shape(cpus: u64, hours: Option<u64>, partition: Option<&str>) -> Wanted {
        let limit = hours.map(|hours| Span::from_secs(3600 * hours));
        let request = NewRequest {
            nodes: 1,
            chunks: 1,
            cpus_per_chunk: cpus,
            memory_per_node: 0,
            gpus_per_node: 0,
            gpus: 0,
            gpu_type: None,
            requires: Requirements::default(),
            limit: limit.unwrap_or(DEFAULT_LIMIT),
        };
        let partition = partition.map(String::from);
        Wanted {
            name: "job".into(),
            cpus,
            memory: 0,
            request,
            limit,
            partition,
            partition_from: "--partition".into(),
            account: None,
        }
    }

    #[test]
    fn a_job_that_no_partition_starts_is_refused() {
        let (nodes, partitions) =
            (Nodes::parse(NODES).unwrap().nodes, Partitions::parse(PARTITIONS).unwrap().partitions);
        let limit = |wanted: Wanted| match admitted(&wanted, &partitions, &nodes, None) {
            Ok(job) => Ok((job.partitions.len(), job.request.limit.nanos() / 60_000_000_000)),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(limit(shape(2, Some(2), None)), Ok((1, 120)), "in main, not in express");
        assert_eq!(limit(shape(2, None, Some("express"))), Ok((1, 10)), "by the partition's DefaultTime");
        assert_eq!(limit(shape(2, Some(2), Some("express,main"))), Ok((1, 120)));
        assert_eq!(
            limit(shape(2, Some(2), Some("expres"))).unwrap_err(),
            "--partition: found the partition \"expres\", expected one of the site: express, main; did you mean \"express\"?"
        );
        assert_eq!(
            limit(shape(2, Some(2), Some("express"))).unwrap_err(),
            "job: found a wall time of 02:00:00, expected at most 01:00:00, which is the MaxTime of partition express; ask for less time"
        );
        let error = limit(shape(200, Some(2), None)).unwrap_err();
        assert!(
            error.starts_with("job: found 1 task or chunk of 200 CPUs, expected what the nodes of partition main"),
            "{error}"
        );
    }

    #[test]
    fn a_job_does_not_start_now_where_nothing_is_free() {
        let (nodes, partitions) =
            (Nodes::parse(NODES).unwrap().nodes, Partitions::parse(PARTITIONS).unwrap().partitions);
        let queue = "JOBID|USER|STATE|START_TIME|TIME_LIMIT|NODES|TRES_ALLOC|NODELIST\n\
            1|ann|RUNNING|900|10:00|1|cpu=8,node=1|n1\n";
        let queue = Queue::parse(queue).unwrap();
        let wanted = shape(2, Some(2), None);
        let job = admitted(&wanted, &partitions, &nodes, None).unwrap();
        let start = |quantiles: [i64; 3], nodes: &[Node]| {
            let forecast = Forecast { quantiles, interval: (quantiles[0], quantiles[2]), weights: [1.0, 0.0, 0.0] };
            let record = StartRecord::new(1000, 0, &forecast, "job".into());
            let pools = Pools::new(nodes, Counted::default(), &BTreeSet::new());
            job.bounded(record, false, &pools, nodes, &queue, Time::from_secs(1000))
        };
        let planned = start([0, 0, 0], &nodes).unwrap();
        assert_eq!((planned.median_s, planned.planned_by), (500, Some("limits")));
        assert_eq!(start([0, 50, 90], &nodes).unwrap().planned_by, Some("limits"));
        let later = start([20, 50, 90], &nodes).unwrap();
        assert_eq!((later.interval_80_s, later.planned_by, later.caveats.len()), ([20, 90], None, 1));
        let idle = Nodes::parse(&NODES.replace("CPUAlloc=8", "CPUAlloc=0")).unwrap().nodes;
        assert_eq!(start([0, 0, 0], &idle).unwrap().median_s, 0);
        let down = Nodes::parse(&NODES.replace("ALLOCATED", "DOWN")).unwrap().nodes;
        assert!(start([0, 0, 0], &down).unwrap_err().to_string().contains("sinfo --list-reasons"));
    }

    #[test]
    fn a_job_that_names_no_memory_has_that_of_its_partition() {
        let partitions =
            "PartitionName=main DefMemPerCPU=100 MaxTime=UNLIMITED\nPartitionName=whole MaxTime=UNLIMITED\n";
        let nodes = NODES.replace("main,express", "main,whole");
        let (nodes, partitions) =
            (Nodes::parse(&nodes).unwrap().nodes, Partitions::parse(partitions).unwrap().partitions);
        let site = Configuration::parse("SelectTypeParameters=CR_Core_Memory\n").unwrap();
        let memory = |name: &str, site: Option<&Configuration>| {
            let wanted = shape(2, None, Some(name));
            let job = admitted(&wanted, &partitions, &nodes, site).unwrap();
            (job.memory >> 20, job.request.memory_per_node >> 20)
        };
        assert_eq!(memory("main", Some(&site)), (200, 200));
        assert_eq!(memory("whole", Some(&site)), (1000, 1000), "the whole memory of a node");
        assert_eq!(memory("main", None), (0, 0));
    }
}
