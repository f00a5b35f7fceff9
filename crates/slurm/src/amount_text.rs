//! What a job asks for and what is free, in words: "2 GPUs: 1 of 8 is free".

use evenhand_model::counted;
use evenhand_model::size_units::largest;

use crate::explain_wait::WaitingJob;
use crate::pool::PoolResource;

/// Returns an amount of a resource: "1 CPU", "2.5 GiB of memory", "2 GPUs".
pub(crate) fn amount(resource: PoolResource, amount: i64) -> String {
    match resource {
        PoolResource::Cpus => counted(amount, "CPU", "CPUs"),
        PoolResource::Memory => format!("{} of memory", number(resource, amount)),
        PoolResource::Gpus => counted(amount, "GPU", "GPUs"),
    }
}

/// Returns an amount of a known resource: "1", "2.5 GiB".
pub(crate) fn number(resource: PoolResource, amount: i64) -> String {
    match resource {
        PoolResource::Memory => {
            let (size, unit) = largest(amount as f64, "MiB").unwrap_or((1.0, "MiB"));
            let text = format!("{:.1}", amount as f64 / size);
            format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
        }
        _ => amount.to_string(),
    }
}

/// Returns how much of a resource is free: "1 of 8 is free", "10 GiB of 512 GiB are free".
fn free(waiting: &WaitingJob<'_>, resource: PoolResource) -> String {
    let (free, has) = (resource.of(waiting.free), resource.of(waiting.capacity));
    let verb = if free == 1 && resource != PoolResource::Memory { "is" } else { "are" };
    format!("{} of {} {verb} free", number(resource, free), number(resource, has))
}

/// Returns for what a job waits of which too little is free.
pub(crate) fn waits_for(waiting: &WaitingJob<'_>) -> String {
    let need = waiting.need();
    let short = |resource: PoolResource| {
        let (needed, free_now) = (resource.of(need), resource.of(waiting.free));
        if resource == PoolResource::Memory && number(resource, needed) == number(resource, free_now) {
            // So close that they differ in MiB only.
            let has = resource.of(waiting.capacity);
            return format!("{needed} MiB of memory: {free_now} MiB of {has} MiB are free");
        }
        format!("{}: {}", amount(resource, needed), free(waiting, resource))
    };
    let short: Vec<String> = waiting.short().map(short).collect();
    if short.is_empty() {
        let needs_gpus = PoolResource::Gpus.of(need) > 0;
        let mut else_lacks = waiting.counted.not_counted();
        else_lacks.retain(|lacks| *lacks != "types of GPUs" || needs_gpus);
        let else_lacks = else_lacks.join(", ");
        let or = if else_lacks.is_empty() { "" } else { " or " };
        return format!("{else_lacks}{or}nodes: enough {} are free in its partitions", waiting.counted.words());
    }
    short.join("; ")
}

/// Returns what a job asks for and what is free of it, as sentences. Memory and GPUs of which it needs none are left out.
pub(crate) fn asks_for(waiting: &WaitingJob<'_>) -> String {
    let (need, has, is_free) = (waiting.need(), waiting.capacity, waiting.free);
    let asked = waiting.counted.resources().filter(|resource| resource.of(need) > 0);
    let asked: Vec<PoolResource> = asked.collect();
    if asked == [PoolResource::Cpus] {
        let cpus = PoolResource::Cpus;
        let verb = if cpus.of(is_free) == 1 { "is" } else { "are" };
        return format!(
            "It asks for {}; {} of {} in its partitions {verb} free.",
            amount(cpus, cpus.of(need)),
            cpus.of(is_free),
            cpus.of(has)
        );
    }
    let list = |text: &dyn Fn(PoolResource) -> String| {
        let mut words: Vec<String> = asked.iter().map(|resource| text(*resource)).collect();
        let last = words.pop().unwrap_or_default();
        format!("{} and {last}", words.join(", "))
    };
    let short: Vec<&str> = waiting
        .short()
        .map(|resource| match resource {
            PoolResource::Cpus => "too few CPUs",
            PoolResource::Memory => "too little memory",
            PoolResource::Gpus => "too few GPUs",
        })
        .collect();
    let colon = if short.is_empty() { "" } else { ": " };
    format!(
        "It asks for {}. In its partitions {} are free{colon}{}.",
        list(&|resource| amount(resource, resource.of(need))),
        list(&|resource| format!(
            "{} of {}",
            number(resource, resource.of(is_free)),
            amount(resource, resource.of(has))
        )),
        short.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use evenhand_model::Time;

    use super::*;
    use crate::nodes::Nodes;
    use crate::pool::Counted;
    use crate::queue::Queue;

    /// What the sentences state of a job that asks for these TRES, of 8 CPUs, 8000 MiB and 2 GPUs, of which 7, 2000 and 1 are free.
    fn sentences(counted: Counted, tres: &str) -> [String; 2] {
        let queue = format!("JOBID|USER|STATE|REASON|PARTITION|TRES_ALLOC\n1|ann|PENDING|Resources|main|{tres}\n");
        let nodes = "NodeName=g1 CPUAlloc=1 CPUTot=8 RealMemory=8000 AllocMem=6000 Gres=gpu:2 Partitions=main State=MIXED \
            CfgTRES=cpu=8,mem=8000M,gres/gpu=2 AllocTRES=cpu=1,mem=6000M,gres/gpu=1\n";
        let (queue, nodes) = (Queue::parse(&queue).unwrap(), Nodes::parse(nodes).unwrap().nodes);
        let waiting = WaitingJob::new(&queue, &nodes, counted, 0, Time::from_secs(1000));
        [asks_for(&waiting), waits_for(&waiting)]
    }

    #[test]
    fn what_is_short_is_stated_in_the_units_of_people() {
        let all = Counted { memory: true, gpus: true };
        assert_eq!(
            sentences(all, "cpu=1,mem=100M,gres/gpu=2"),
            [
                "It asks for 1 CPU, 100 MiB of memory and 2 GPUs. In its partitions 7 of 8 CPUs, 2 GiB of 7.8 GiB of memory and 1 of 2 \
                 GPUs are free: too few GPUs.",
                "2 GPUs: 1 of 2 is free"
            ]
        );
        assert_eq!(
            sentences(all, "cpu=8,mem=6G")[1],
            "8 CPUs: 7 of 8 are free; 6 GiB of memory: 2 GiB of 7.8 GiB are free"
        );
        assert_eq!(sentences(all, "cpu=1,mem=2001M")[1], "2001 MiB of memory: 2000 MiB of 8000 MiB are free");
        assert_eq!(
            sentences(all, "cpu=1,mem=100M,gres/gpu=1")[1],
            "types of GPUs or nodes: enough CPUs, memory and GPUs are free in its partitions"
        );
        assert_eq!(sentences(all, "cpu=1")[1], "nodes: enough CPUs, memory and GPUs are free in its partitions");
        assert_eq!([1, 1536, 5 << 20].map(|mib| number(PoolResource::Memory, mib)), ["1 MiB", "1.5 GiB", "5 TiB"]);
        let cpus = sentences(Counted::default(), "cpu=8,mem=6G,gres/gpu=2");
        assert_eq!(cpus, ["It asks for 8 CPUs; 7 of 8 in its partitions are free.", "8 CPUs: 7 of 8 are free"]);
        let enough = sentences(Counted::default(), "cpu=7,gres/gpu=2");
        assert_eq!(enough[1], "memory, GPUs or nodes: enough CPUs are free in its partitions");
    }
}
