//! The formats of traces, and the options of their readers, by their names on the command line.

use std::fmt;
use std::str::FromStr;

use evenhand_model::{Workload, WorkloadError};
use thiserror::Error;

/// A name that is not one of the expected ones.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {what} {found:?}, expected one of {expected}")]
pub struct ParseNameError {
    what: &'static str,
    found: String,
    expected: String,
}

macro_rules! named {
    ($(#[$doc:meta])* $T:ident, $what:literal, $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $T {
            $($(#[$variant_doc])* $variant),+
        }

        impl $T {
            /// All values, in the order of the documentation.
            pub const ALL: &[$T] = &[$($T::$variant),+];

            /// Returns the name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($T::$variant => $name),+
                }
            }
        }

        impl fmt::Display for $T {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $T {
            type Err = ParseNameError;
            fn from_str(text: &str) -> Result<$T, ParseNameError> {
                $T::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| ParseNameError {
                    what: $what,
                    found: text.to_string(),
                    expected: $T::ALL.iter().map(|v| v.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

named!(
    /// The format of a trace.
    Format, "format",
    /// Detected from the content.
    #[default] Auto = "auto",
    /// The Standard Workload Format of the Parallel Workloads Archive, version 2.2.
    Swf = "swf",
    /// The `task_events` of Google's ClusterData2011_2.
    Google2011 = "google2011",
    /// The instance and collection events of Google's ClusterData2019.
    Google2019 = "google-2019",
    /// The seven columns of the SDRF authors' simulator.
    SdrfCsv = "sdrf-csv",
    /// What Slurm's `sacct -X -P --noconvert` prints.
    Sacct = "sacct",
    /// What Slurm's `sacct --json` and `squeue --json` print.
    SlurmJson = "slurm-json",
    /// The accounting logs of PBS Pro, OpenPBS and TORQUE.
    Pbs = "pbs",
    /// The `accounting` file of Grid Engine.
    GridEngine = "grid-engine",
    /// LSF's `lsb.acct`.
    Lsf = "lsf",
    /// The history of HTCondor, as text or as JSON.
    HtCondor = "htcondor",
    /// What OAR's `oarstat --json` prints.
    Oar = "oar",
    /// What Flux's `flux jobs -a --json` prints.
    Flux = "flux",
    /// The event files of the University at Buffalo's Slurm simulator.
    SlurmSimulator = "slurm-simulator",
    /// A Batsim JSON workload with delay profiles.
    Batsim = "batsim",
    /// The `jobs.csv` that Batsim writes, and job sets of evalys.
    EvalysCsv = "evalys-csv",
    /// Alibaba's GPU trace of 2020: `pai_task_table.csv`, with `pai_job_table.csv` for the users.
    AlibabaGpu2020 = "alibaba-gpu-2020",
    /// The list of pods of Alibaba's GPU trace of 2023.
    AlibabaGpu2023 = "alibaba-gpu-2023",
    /// The instances of Alibaba's GPU trace of 2025.
    AlibabaGpu2025 = "alibaba-gpu-2025",
    /// Azure's trace for packing of 2020, as a table.
    AzurePacking = "azure-packing",
    /// The job log of Microsoft's Philly cluster.
    Philly = "philly",
    /// The job logs of SenseTime's Helios.
    Helios = "helios",
    /// The job logs of Shanghai AI Laboratory's Acme.
    Acme = "acme",
    /// The job table of MIT's Supercloud, and of any Slurm database.
    Supercloud = "supercloud",
    /// The jobs of Marconi100 (PM100).
    Pm100 = "pm100",
    /// The jobs of Fugaku (F-DATA).
    FData = "f-data",
    /// The jobs of NREL's Eagle.
    Eagle = "eagle",
    /// The jobs of NLR's Kestrel.
    Kestrel = "kestrel",
    /// The jobs of the computing centre of IN2P3 in 2024.
    In2p3 = "in2p3",
    /// The logs of OLCF's Frontier.
    Frontier = "frontier",
    /// Any table with a header, whose columns [`CsvColumns`](super::CsvColumns) defines.
    Csv = "csv"
);

named!(
    /// The unit of the memory fields of an SWF log; kilobytes in the standard.
    MemoryUnit, "memory unit",
    /// Bytes.
    B = "B",
    /// Kilobytes.
    #[default] KB = "KB",
    /// Megabytes.
    MB = "MB"
);

named!(
    /// What the memory fields of an SWF log refer to; each processor in the standard.
    MemoryPer, "memory per",
    /// Each processor.
    #[default] Processor = "processor",
    /// Each node; column 21 gives the number of nodes (`2:ppn=8`), which is 1 without it.
    Node = "node",
    /// The whole job.
    Job = "job"
);

named!(
    /// Which processors of a job a log is read for, where it has both numbers.
    Processors, "processors",
    /// Those that the job held.
    #[default] Allocated = "allocated",
    /// Those that the job asked for.
    Requested = "requested"
);

impl Processors {
    /// Returns a workload whose tasks hold these amounts, from one that keeps both where they differ.
    ///
    /// # Errors
    /// Returns an error if amounts of a resource have more than 18 digits with the decimals that all together need.
    pub fn of(self, workload: Workload) -> Result<Workload, WorkloadError> {
        match self {
            Processors::Allocated => Ok(workload),
            Processors::Requested => workload.with_requested_amounts(),
        }
    }
}

impl Format {
    /// Returns whether nearly each line is a task.
    pub(crate) const fn is_line_per_task(self) -> bool {
        !matches!(
            self,
            Format::Auto
                | Format::Google2011
                | Format::Google2019
                | Format::AlibabaGpu2020
                | Format::SlurmJson
                | Format::Pbs
                | Format::HtCondor
                | Format::Oar
                | Format::Flux
                | Format::Philly
                | Format::Batsim
        )
    }

    /// Returns whether files of the format may be Parquet.
    pub(crate) const fn may_be_parquet(self) -> bool {
        !matches!(
            self,
            Format::Swf
                | Format::Google2011
                | Format::SdrfCsv
                | Format::Sacct
                | Format::SlurmJson
                | Format::Pbs
                | Format::GridEngine
                | Format::Lsf
                | Format::HtCondor
                | Format::Oar
                | Format::Flux
                | Format::SlurmSimulator
                | Format::Batsim
                | Format::Frontier
                | Format::Philly
        )
    }

    /// Returns whether jobs have amounts that they requested beside those that they were allocated; of tables it depends
    /// on their columns.
    pub(crate) const fn has_requested_amounts(self) -> bool {
        matches!(self, Format::Swf | Format::Sacct | Format::SlurmJson | Format::Pbs)
    }

    /// Returns whether an import can put the tasks on disk. The others hold a whole document in memory, or what was seen of
    /// each task so far.
    pub(crate) const fn can_overflow(self) -> bool {
        self.is_line_per_task() || matches!(self, Format::Pbs | Format::HtCondor)
    }

    /// Returns what to do about jobs that a trace has several times.
    pub(crate) const fn remedy_for_repeated_jobs(self) -> &'static str {
        match self {
            Format::Sacct | Format::SlurmJson => {
                "sacct lists every job that overlaps its period: pass each of its outputs as a file of its own, so that jobs \
                 that several have are kept once."
            }
            _ => "Import each file once, and periods that do not overlap.",
        }
    }

    /// Returns what files of the format are, for messages: `"an accounting log of PBS"`.
    pub const fn description(self) -> &'static str {
        match self {
            Format::Auto => "a trace",
            Format::Swf => "a log in the Standard Workload Format",
            Format::Google2011 => "task events of Google's trace of 2011",
            Format::Google2019 => "events of Google's trace of 2019",
            Format::SdrfCsv => "a table of the SDRF authors' simulator",
            Format::Sacct => "output of Slurm's sacct",
            Format::SlurmJson => "jobs of Slurm as JSON",
            Format::Pbs => "an accounting log of PBS or TORQUE",
            Format::GridEngine => "an accounting file of Grid Engine",
            Format::Lsf => "LSF's lsb.acct",
            Format::HtCondor => "a history of HTCondor",
            Format::Oar => "jobs of OAR as JSON",
            Format::Flux => "jobs of Flux as JSON",
            Format::SlurmSimulator => "an event file of the Slurm simulator",
            Format::Batsim => "a Batsim workload",
            Format::EvalysCsv => "a job set of evalys",
            Format::AlibabaGpu2020 | Format::AlibabaGpu2023 | Format::AlibabaGpu2025 => {
                "a table of Alibaba's GPU trace"
            }
            Format::AzurePacking => "a table of Azure's trace for packing",
            Format::Philly => "the job log of Philly",
            Format::Helios => "a job log of Helios",
            Format::Acme => "a job log of Acme",
            Format::Supercloud => "a job table of Slurm's database",
            Format::Pm100 => "the jobs of PM100",
            Format::FData => "the jobs of F-DATA",
            Format::Eagle => "the jobs of Eagle",
            Format::Kestrel => "the jobs of Kestrel",
            Format::In2p3 => "the jobs of CC-IN2P3",
            Format::Frontier => "a log of Frontier",
            Format::Csv => "a table",
        }
    }

    /// Returns the extensions of its files, before `.gz`, `.zst`, `.bz2` or `.xz`.
    pub(crate) const fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Auto => &["swf", "csv", "txt", "sacct", "json", "jsonl", "log", "acct", "events"],
            Format::Swf => &["swf"],
            Format::Google2011 | Format::SdrfCsv | Format::AlibabaGpu2020 | Format::Supercloud => &["csv"],
            Format::Frontier => &["swf"],
            Format::Philly => &["json"],
            Format::Csv
            | Format::EvalysCsv
            | Format::AlibabaGpu2023
            | Format::AlibabaGpu2025
            | Format::AzurePacking
            | Format::Helios
            | Format::Acme
            | Format::Pm100
            | Format::FData
            | Format::Eagle
            | Format::Kestrel
            | Format::In2p3
            | Format::Google2019 => &["csv", "tsv", "json", "jsonl", "parquet"],
            Format::Sacct => &["txt", "sacct", "csv", "psv", "log"],
            Format::Pbs | Format::GridEngine | Format::Lsf => &["txt", "log", "acct", "accounting", "anon"],
            Format::HtCondor => &["json", "jsonl", "txt", "log", "history"],
            Format::Batsim | Format::SlurmJson | Format::Oar | Format::Flux => &["json", "jsonl"],
            Format::SlurmSimulator => &["events"],
        }
    }
}
