//! Traces of several files, in whatever order they are named.

use super::*;

const HASH: &str = "0d39aa867a79c16eff67daa8f6248f09af8346b177c9e3e23645c48354a8";
const JOB: &str = "4f057009a5d481acec67b088";
const TASKS: &str = "4f057009a5d481acec67b088,worker,2.0,Terminated,100.0,200.0,600.0,29.3,50.0,T4\n\
    4f057009a5d481acec67b088,ps,1.0,Waiting,,,100.0,1.0,0.0,\n";

fn source(name: &str, data: impl Into<Vec<u8>>) -> Source {
    Source::Bytes { name: name.to_string(), data: data.into() }
}

/// The tables of Alibaba's trace of 2020, in the order in which a shell lists them.
fn pai() -> Vec<Source> {
    vec![
        source("pai_group_tag_table.csv", format!("{HASH},58540f191766,,fab1,bert\n")),
        source("pai_instance_table.csv", format!("{JOB},worker,{HASH},{HASH},{HASH},Terminated,100.0,200.0,{JOB}\n")),
        source("pai_job_table.csv", format!("{JOB},{HASH},58540f191766,Terminated,90.0,200.0\n")),
        source("pai_job_table.header", "job_name,inst_id,user,status,start_time,end_time\n"),
        source("pai_machine_spec.csv", format!("{JOB},T4,96,512,2\n")),
        source("pai_task_table.csv", TASKS),
    ]
}

fn error(sources: &[Source], options: &ImportOptions) -> String {
    let error = import(sources, options).unwrap_err();
    assert!(!error.is_environment(), "{error}");
    error.to_string()
}

#[test]
fn the_tables_of_alibabas_trace_of_2020_are_recognised_in_any_order() {
    let mut files = pai();
    for format in [Format::Auto, Format::AlibabaGpu2020] {
        for turn in 0..2 * files.len() {
            let found = import(&files, &options(format)).unwrap_or_else(|e| panic!("turn {turn}: {e}"));
            assert_eq!(found.summary.format, Format::AlibabaGpu2020);
            assert_eq!(rows(&found), ["100 100 100 - 58540f191766 - T4 cpu=6 mem=29.3 gpu=0.5"]);
            assert_eq!((found.summary.files, dropped(&found)), (3, vec![("never started", 1)]));
            let summary = found.summary.to_string();
            let aside = "pai_machine_spec.csv has machines of Alibaba's GPU trace of 2020, not jobs, and is not read.";
            assert!(summary.contains(aside) && summary.matches("is not read").count() == 3, "{summary}");
            // Every file is the first once in each direction.
            files.rotate_left(1);
            if turn + 1 == files.len() {
                files.reverse();
            }
        }
    }
}

#[test]
fn a_table_of_alibabas_trace_of_2020_that_is_missing_or_given_twice_is_an_error() {
    let [jobs, spec, tasks] = [2, 4, 5].map(|at| pai().swap_remove(at));
    let found = error(std::slice::from_ref(&jobs), &ImportOptions::default());
    assert!(
        found.starts_with("pai_job_table.csv: found pai_job_table, which has only the users, expected pai_task_table")
    );
    assert!(found.ends_with("name pai_task_table.csv too, before or after it"), "{found}");
    for twice in [[&tasks, &jobs, &tasks], [&jobs, &tasks, &tasks], [&tasks, &tasks, &jobs]] {
        let found = error(&twice.map(Clone::clone), &ImportOptions::default());
        let same =
            "found the same rows as in pai_task_table.csv, expected each table of the trace once; name each file once";
        assert!(found.contains(same), "{found}");
    }
    // A table of one row.
    let found = error(&[jobs.clone(), tasks.clone(), jobs], &ImportOptions::default());
    assert!(found.contains("found the same rows as in pai_job_table.csv"), "{found}");
    let found = error(&[spec], &ImportOptions::default());
    assert!(
        found.contains("found machines of Alibaba's GPU trace of 2020") && found.contains("pai_task_table.csv"),
        "{found}"
    );
    // Without the users a workload is made, which says so.
    let found = import(&[tasks], &ImportOptions::default()).unwrap();
    assert!(found.summary.to_string().contains("1 row has no user, because pai_job_table.csv was not read"));
}

#[test]
fn nodes_beside_pods_are_left_out_in_both_orders_and_nodes_of_another_trace_are_an_error() {
    let nodes = source(
        "openb_node_list_all_node.csv",
        "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n",
    );
    let pods = source(
        "openb_pod_list_default.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
         openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0\n",
    );
    for files in [[&nodes, &pods], [&pods, &nodes]] {
        let found = import(&files.map(Clone::clone), &ImportOptions::default()).unwrap();
        assert_eq!((found.summary.format, found.workload.tasks(), found.summary.files), (Format::AlibabaGpu2023, 1, 1));
        assert!(found.summary.to_string().contains("openb_node_list_all_node.csv has nodes"));
    }
    let found = error(std::slice::from_ref(&nodes), &ImportOptions::default());
    assert!(
        found.contains("found nodes of Alibaba's GPU trace of 2023, expected a trace of jobs; pass a list of pods"),
        "{found}"
    );
    let tasks = source("pai_task_table.csv", TASKS);
    let found = error(&[nodes, tasks], &ImportOptions::default());
    let beside = "openb_node_list_all_node.csv: found nodes of Alibaba's GPU trace of 2023 beside a table of Alibaba's GPU trace";
    assert!(found.starts_with(beside) && found.ends_with("leave it out"), "{found}");
}

#[test]
fn events_of_googles_machines_and_jobs_beside_those_of_tasks_are_left_out_in_any_order() {
    let google = "HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=";
    let tasks = "5,,1,0,,0,ann,2,0,0.5,0.25,0,0\n6,,1,0,7,1,ann,2,0,0.5,0.25,0,0\n9,,1,0,7,4,ann,2,0,0.5,0.25,0,0\n";
    let mut files = vec![
        source("job_events/part-00000-of-00500.csv", format!("0,,3418309,0,{google},3,{google},{google}\n")),
        source("machine_events/part-00000-of-00001.csv", format!("0,5,0,{google},0.5,0.2493\n")),
        source("task_events/part-00000-of-00500.csv", tasks),
    ];
    for _ in 0..files.len() {
        let found = import(&files, &ImportOptions::default()).unwrap();
        assert_eq!((found.summary.format, found.workload.tasks()), (Format::Google2011, 1));
        assert_eq!(found.summary.to_string().matches("is not read").count(), 2);
        files.rotate_left(1);
    }
}
