//! What every importer must keep, whatever the bytes.

use evenhand_workload::{Format, ImportError, ImportOptions, Imported, MemoryPer, Source, import};

/// Imports `data` strictly and leniently, with and without the relaxations, and holds the results
/// against each other: no panic; where strict succeeds, lenient gives the same; where strict
/// fails on a row, lenient fails only for want of tasks.
pub fn check(format: Format, data: &[u8]) {
    for relaxed in [false, true] {
        let options = ImportOptions {
            format,
            relaxed,
            swf_memory_per: if relaxed { MemoryPer::Node } else { MemoryPer::Processor },
            ..ImportOptions::default()
        };
        let strict = read(data, &options);
        let lenient = read(data, &ImportOptions { lenient: true, ..options });
        match (strict, lenient) {
            (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient),
            (Ok(strict), Err(lenient)) => panic!("strict read {}; lenient failed: {lenient}", strict.summary),
            (Err(ImportError::Row(_)), Err(lenient)) => match lenient {
                // Amounts of single rows may be fine and their decimals still not fit together.
                ImportError::NothingLeft(_) | ImportError::Workload(_) => {}
                // An error that strict did not reach.
                ImportError::LongLine { .. } | ImportError::Compression { .. } => {}
                other => panic!("lenient failed on a row: {other}"),
            },
            (Err(strict), _) => {
                assert!(!strict.is_environment());
                assert!(!strict.to_string().is_empty());
            }
        }
    }
}

fn read(data: &[u8], options: &ImportOptions) -> Result<Imported, ImportError> {
    import(&[Source::Bytes { name: "fuzz".to_string(), data: data.to_vec() }], options)
}
