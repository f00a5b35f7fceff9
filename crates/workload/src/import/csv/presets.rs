//! The columns of public traces, by their published schemas.

use std::sync::LazyLock;

use super::CsvColumns;
use crate::import::Format;

/// The columns of one table of a public trace.
pub(in crate::import) struct Preset {
    pub(in crate::import) format: Format,
    columns: &'static str,
    pub(super) notation: Notation,
}

/// How a table writes sizes, states and missing limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// Sizes as Kubernetes writes them (`64Gi`, `64G`), states as they are.
    Plain,
    /// As Slurm's accounting writes them: `64G` is 64 GiB, `64` is 64 MiB; `CANCELLED by 1000`; `UNLIMITED`.
    Slurm,
    /// As [`Notation::Plain`], with the states of Batsim: `COMPLETED_KILLED`.
    Batsim,
    /// Values of a table in memory, which are typed there: nothing but an empty field is unknown, and texts are as they are.
    Values,
}

const fn table(format: Format, columns: &'static str) -> Preset {
    Preset { format, columns, notation: Notation::Plain }
}

const fn slurm_table(format: Format, columns: &'static str) -> Preset {
    Preset { format, columns, notation: Notation::Slurm }
}

/// Demands of the tables: processors and GPUs as they were held, memory with its unit. A job of several identical
/// instances has a count.
const PRESETS: [Preset; 11] = [
    // The processors that were held, where evalys counted them. Batsim has no users; an export has them as metadata.
    Preset {
        format: Format::EvalysCsv,
        columns: "submit=submission_time,start=starting_time?,wait=waiting_time?,end=finish_time?,duration=execution_time?,\
                  requested=requested_time?,user=user|user_id|metadata?,outcome=final_state?,\
                  cpu=proc_alloc|requested_number_of_resources,cpu_requested=requested_number_of_resources?",
        notation: Notation::Batsim,
    },
    table(
        Format::AlibabaGpu2023,
        "submit=creation_time,start=scheduled_time,end=deletion_time,queue=qos,gpu_type=gpu_spec?,cpu=cpu_milli*0.001,\
         mem:MiB=memory_mib,gpu=num_gpu*gpu_milli*0.001",
    ),
    table(
        Format::AlibabaGpu2025,
        "submit=creation_time,start=scheduled_time,end=deletion_time,user=app_name,queue=role,cpu=cpu_request,\
         mem:GiB=memory_request,gpu=gpu_request,rdma=rdma_request,disk:GiB=disk_request",
    ),
    table(
        Format::AzurePacking,
        "submit=starttime*86400,start=starttime*86400,end=endtime*86400,user=tenantId,queue=priority?,cpu=core,mem=memory,\
         ssd=ssd?,nic=nic?",
    ),
    // The column `queue` of this one and the next is the time that a job waited, in seconds.
    slurm_table(
        Format::Helios,
        "submit=submit_time,start=start_time,end=end_time,user=user,account=vc,outcome=state?,nodes=node_num?,\
         cpu=cpu_num,gpu=gpu_num",
    ),
    slurm_table(
        Format::Acme,
        "submit=submit_time,start=start_time,end=end_time,user=user,account=type?,outcome=state?,nodes=node_num?,\
         cpu=cpu_num,gpu=gpu_num",
    ),
    table(
        Format::Pm100,
        "submit=submit_time,start=start_time,end=end_time,requested=time_limit*60,user=user_id|user?,account=group_id?,\
         queue=partition?,cpu=num_cores_alloc,mem:GB=mem_alloc,gpu=num_gpus_alloc,\
         cpu_requested=num_cores_req?,gpu_requested=num_gpus_req?",
    ),
    table(
        Format::FData,
        "submit=adt,start=sdt,end=edt,requested=elpl,user=usr,cpu=cnumat|cnumr,nodes=nnuma,cpu_requested=cnumr?",
    ),
    // The memory has a unit, so that Slurm's notation is only that of states.
    slurm_table(
        Format::Eagle,
        "submit=submit_time*0.001,start=start_time*0.001,end=end_time*0.001,requested=wallclock_req,user=user,\
         account=account,queue=partition,qos=qos?,outcome=state?,nodes=nodes_req?,cpu=processors_req,mem:MB=mem_req?,\
         gpu=gpus_req?",
    ),
    // Requested wall times are an Arrow duration, which Parquet holds as nanoseconds.
    slurm_table(
        Format::Kestrel,
        "submit=submit_time,start=start_time,end=end_time,requested=wallclock_req*0.000000001,user=user_hash,\
         account=account_hash?,queue=partition?,qos=qos?,outcome=state_simple?,nodes=nodes_used|nodes_req?,\
         cpu=processors_used|processors_req,mem:GiB=memory_req?,gpu=gpus_requested?,cpu_requested=processors_req?",
    ),
    slurm_table(
        Format::In2p3,
        "submit=submit,start=start,end=end,requested=timelimit,user=user,account=account?,queue=partition?,\
         outcome=state?,cpu=alloccpus,gpu=allocgpus?",
    ),
];

impl Preset {
    /// Returns the definition of the columns.
    ///
    /// # Panics
    /// Never: a test parses each definition.
    #[allow(clippy::expect_used)]
    pub(super) fn columns(&self) -> CsvColumns {
        self.columns.parse().expect("a test parses each definition")
    }

    /// Returns the preset whose columns a table has; that with the most columns, if there are several.
    pub(in crate::import) fn of_table(names: &[String]) -> Option<&'static Preset> {
        let has = |name: &String| names.contains(name);
        let needs = |columns: &CsvColumns| {
            let all = columns.required().all(|column| column.names.iter().any(has) && column.by.iter().all(has));
            all.then(|| columns.required().count())
        };
        // Parsed once, because every file that cannot be read is compared with all of them.
        static DEFINITIONS: LazyLock<Vec<CsvColumns>> = LazyLock::new(|| PRESETS.iter().map(Preset::columns).collect());
        let fits = PRESETS.iter().zip(&*DEFINITIONS).filter_map(|(preset, columns)| Some((needs(columns)?, preset)));
        fits.max_by_key(|(columns, _)| *columns).map(|(_, preset)| preset)
    }

    /// Returns the preset of a format.
    pub(in crate::import) fn of(format: Format) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.format == format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_definitions_of_columns_and_are_recognised() {
        for preset in &PRESETS {
            let columns = preset.columns();
            let names: Vec<String> = columns.all_names().map(str::to_string).collect();
            let found = Preset::of_table(&names).map(|p| p.format);
            assert_eq!(found, Some(preset.format), "{}", preset.format);
            assert!(Preset::of(preset.format).is_some());
        }
        assert!(Preset::of_table(&["name".to_string()]).is_none());
    }
}
