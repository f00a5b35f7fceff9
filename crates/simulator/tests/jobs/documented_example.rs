//! The small log in docs/examples and its exact schedule, worked out by hand in docs/src/reference/backfilling.md.

use evenhand_simulator::{Backfill, Layout, Placement};

use crate::reference_model::{Job, Machines, ReferenceModel, World};
use crate::{optional, run};

fn lines(name: &str) -> Vec<Vec<String>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|l| !l.starts_with(';') && !l.starts_with("job"));
    rows.map(|l| l.split([' ', ',']).filter(|f| !f.is_empty()).map(String::from).collect()).collect()
}

#[test]
fn the_documented_log_has_the_documented_schedule() {
    let field = |fields: &[String], i: usize| fields[i].parse::<u64>().unwrap();
    let jobs: Vec<Job> = lines("easy.swf")
        .iter()
        .map(|f| Job {
            submit: field(f, 1),
            run: field(f, 3),
            asked: Some(field(f, 8)),
            user: field(f, 11) as usize - 1,
            queues: vec![0],
            amounts: [field(f, 4), 0],
            nodes: None,
            requires: vec![],
            sizes: vec![],
            licences: [0, 0],
            array: None,
        })
        .collect();
    let starts = lines("easy-starts.csv");
    assert_eq!((jobs.len(), starts.len()), (8, 8));
    for (column, backfill) in [Backfill::None, Backfill::Easy, Backfill::Conservative].into_iter().enumerate() {
        let world = World {
            machines: vec![Machines { count: 1, has: [4, 1], speed: (1, 1), properties: vec![] }],
            queues: vec![],
            jobs: jobs.clone(),
            licences: [0, 0],
            is_pool: true,
            policy: "fifo",
            placement: Placement::FirstFit,
            backfill,
            blocking: true,
            layout: Layout::Auto,
        };
        let documented: Vec<Option<u64>> = starts.iter().map(|f| Some(field(f, column + 1))).collect();
        assert_eq!(optional(&run(&world).1.starts), documented, "{backfill:?}");
        assert_eq!(ReferenceModel::new(&world).run().starts, documented, "{backfill:?}, the obvious program");
        // On machines of one processor each a reservation is of two of them, not of any two: job 8 would be in the
        // way of job 7's.
        let four = Machines { count: 4, has: [1, 1], ..world.machines[0].clone() };
        let apart = World { machines: vec![four], is_pool: false, ..world };
        let later = if backfill == Backfill::None { 270 } else { 190 };
        let with_later: Vec<Option<u64>> = documented.iter().take(7).copied().chain([Some(later)]).collect();
        assert_eq!(optional(&run(&apart).1.starts), with_later, "{backfill:?}, on four machines");
    }
}
