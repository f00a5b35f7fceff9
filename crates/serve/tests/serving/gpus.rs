//! A job that waits for a GPU while CPUs are free.

use std::time::Duration;

use super::{Serving, clock};

/// Job 1 holds both GPUs, for at most another 700 s; 2 waits for both and 3 for one, 4 needs none.
const QUEUE: &str = "JOBID|USER|ACCOUNT|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC|NODELIST\n\
    1|ann|art|RUNNING|None|main|9|99000|99500|20:00|1|cpu=1,mem=100M,gres/gpu=2|n1\n\
    2|ann|art|PENDING|Resources|main|8|99800|N/A|5:00|1|cpu=1,mem=100M,gres/gpu=2|\n\
    3|bob|bio|PENDING|Priority|main|7|99900|N/A|5:00|1|cpu=1,mem=100M,gres/gpu=1|\n\
    4|bob|bio|PENDING|Priority|main|6|99950|N/A|5:00|1|cpu=1,mem=100M|\n";
const NODE: &str = "NodeName=n1 CPUAlloc=1 CPUTot=8 RealMemory=1000 AllocMem=100 Gres=gpu:2 Partitions=main State=MIXED \
    CfgTRES=cpu=8,mem=1000M,gres/gpu=2 AllocTRES=cpu=1,mem=100M,gres/gpu=2\n";

#[test]
fn a_page_states_that_gpus_are_short_and_forecasts_the_start_by_them() {
    let site = Serving::start_site([QUEUE, NODE], clock, "none", |_| ());
    let page = site.get_as("bob", "/jobs/3").2;
    for text in [
        "It asks for 1 CPU, 100 MiB of memory and 1 GPU. In its partitions 7 of 8 CPUs, 900 MiB of 1000 MiB of memory and 0 of 2 GPUs \
         are free: too few GPUs.",
        "Planned by CPUs, memory and GPUs, with all jobs running to their limits and none submitted; types of GPUs and the shapes of \
         nodes are not planned.",
        "<th scope=\"col\">GPUs</th>",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let why = site.get_as("bob", "/api/v1/jobs/3/why").2;
    assert!(why.contains("\"gpus\": 2"), "{why}");
    let when = |job: u64| site.get_as("bob", &format!("/api/v1/jobs/{job}/when"));
    while when(4).0 == 503 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // By CPUs alone it would start now, which Slurm denies, so that nothing could be forecast.
    let (status, _, start) = when(2);
    assert_eq!(status, 200, "{start}");
    assert!(
        start.contains("The forecast counts the CPUs, memory and GPUs of the whole site: not types of GPUs"),
        "{start}"
    );
    assert!(!start.contains("\"planned_by\"") && !start.contains("\"median_s\": 0,"), "{start}");
}
