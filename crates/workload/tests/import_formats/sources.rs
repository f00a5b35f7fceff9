//! Compression, folders, pipes, threads, and options that concern every format.

use super::*;
use crate::google2011::google;
use crate::swf::LOG;

#[test]
fn compressed_and_plain_are_the_same() {
    let text = LOG.as_bytes().to_vec();
    let gzip = |data: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    };
    let zst = |data: &[u8]| zstd::encode_all(data, 3).unwrap();
    let plain = import(&bytes(text.clone()), &ImportOptions::default()).unwrap();
    let (a, b) = text.split_at(text.len() / 2);
    // Concatenated gzip members or zstd frames are one stream.
    for data in [gzip(&text), zst(&text), [gzip(a), gzip(b)].concat(), [zst(a), zst(b)].concat()] {
        assert_eq!(import(&bytes(data.clone()), &ImportOptions::default()).unwrap(), plain);
    }
    for (data, what) in [(gzip(&text), "gzip"), (zst(&text), "zstd")] {
        let cut = refused(&options(Format::Swf), &data[..data.len() - 5]);
        assert!(cut.starts_with(&format!("trace: found truncated {what} data")), "{cut}");
        let mut damaged = data.clone();
        let middle = damaged.len() / 2;
        damaged[middle..].iter_mut().for_each(|b| *b ^= 0x55);
        let damaged = refused(&options(Format::Swf), damaged);
        assert!(damaged.starts_with("trace: found ") && damaged.ends_with("fetch the file again"), "{damaged}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut swf = Vec::new();
    let mut google_shards = Vec::new();
    for k in 0..7u64 {
        let jobs: String = (1..200)
            .map(|j| {
                format!(
                    "{j} {} 3 {} 2 -1 -1 2 -1 -1 1 {} 1 1 {} 1 -1 -1\n",
                    (j * 7919 + k) % 1000,
                    j % 9,
                    j % (k + 3),
                    j % 4
                )
            })
            .collect();
        swf.push(Source::Bytes { name: format!("log{k}"), data: jobs.into_bytes() });
        let rows: String = (0..300u64)
            .map(|i| {
                let (task, code) = ((i + k) % 11, [0, 1, 4, 3, 2][((i + k) / 11 % 5) as usize]);
                format!("{},,5,{task},,{code},u{},2,0,0.5,0.25,0,0\n", k * 1000 + i + 1, task % 5)
            })
            .collect();
        google_shards.push(Source::Bytes { name: format!("part{k}"), data: rows.into_bytes() });
    }
    for sources in [swf, google_shards] {
        let with = |n| {
            let options = ImportOptions { threads: NonZeroUsize::new(n), ..ImportOptions::default() };
            import(&sources, &options).unwrap()
        };
        let one = with(1);
        assert!(one.workload.len() > 100);
        assert_eq!(with(2), one);
        assert_eq!(with(5), one);
    }
}

#[test]
fn folders_files_and_missing_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = |first: u32| format!("{first} {first} 0 5 1 -1 -1 1 -1 -1 1 {first} 1 1 1 1 -1 -1\n");
    let of_folder = |format| import(&[Source::from_argument(folder.path())], &options(format));
    let message = |r: Result<Imported, ImportError>| {
        let error = r.unwrap_err();
        (error.to_string().replace(&folder.path().display().to_string(), "DIR"), error.is_environment())
    };
    std::fs::write(path("README"), "not a trace").unwrap();
    std::fs::write(path(".hidden.swf"), "not a trace").unwrap();
    let none = "DIR: found no file to read in this folder, expected *.swf (also with .gz, .zst, .bz2 or .xz); name the files explicitly if they have other extensions";
    assert_eq!(message(of_folder(Format::Swf)), (none.to_string(), false));
    std::fs::write(path("b.swf"), log(2)).unwrap();
    std::fs::write(path("a.swf.zst"), zstd::encode_all(log(1).as_bytes(), 1).unwrap()).unwrap();
    let found = of_folder(Format::Auto).unwrap();
    assert_eq!(found.workload.users(), ["1", "2"]);
    assert_eq!(found.summary.files, 2);
    std::fs::write(path("c.swf"), "").unwrap();
    let empty = "DIR/c.swf: found an empty file, expected a trace; check that it was written completely";
    assert_eq!(message(of_folder(Format::Auto)), (empty.to_string(), false));

    let missing = message(import(&[Source::from_argument(path("d.swf"))], &options(Format::Swf)));
    assert_eq!(missing, ("DIR/d.swf: No such file or directory (os error 2); check the path".to_string(), false));
    let nothing = message(import(&[], &options(Format::Auto)));
    assert!(nothing.0.starts_with("found no input"), "{}", nothing.0);
    let unclear = message(import(&[Source::from_argument(path("README"))], &options(Format::Auto)));
    let names: Vec<&str> = Format::ALL.iter().filter(|f| **f != Format::Auto).map(|f| f.name()).collect();
    let expected = format!(
        "DIR/README: found a first line \"not a trace\" of unknown format, expected one of {}; name the format with --from",
        names.join(", ")
    );
    assert_eq!(unclear, (expected, false));
    assert_eq!(Source::from_argument("-"), Source::Stdin);
}

/// A pipe can be read only once, although the import reads its head for the format and the order.
#[cfg(unix)]
#[test]
fn pipes_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = google(&[(0, 0), (0, 1), (1, 0), (1, 1), (0, 4), (1, 4)]);
    let (early, late) = text.split_at(text.match_indices('\n').nth(2).unwrap().0 + 1);
    let pipe = |name: &str, content: &str| {
        let (path, content) = (folder.path().join(name), content.to_string());
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let to = path.clone();
        std::thread::spawn(move || std::fs::write(to, content).unwrap());
        Source::Path(path)
    };
    let found = import(&[pipe("late", late), pipe("early", early)], &ImportOptions::default()).unwrap();
    assert_eq!(found.workload, read(Format::Google2011, &text).workload);
}

#[test]
fn a_refusal_of_the_system_is_the_environments_fault() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let error = ImportError::Io { file: "f".to_string(), source: denied };
    assert!(error.is_environment() && error.to_string().ends_with("make it readable for this user"), "{error}");
}

#[test]
fn nothing_left_says_why() {
    let error = refused(&options(Format::Swf), "1 0 0 -1 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n");
    let expected =
        "trace: no task is left. Read 1 row of swf from 1 file; kept 0 tasks. Dropped: unknown run time (1).";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.ends_with("Export jobs that have ended, with the fields that the dropped rows lack"), "{error}");
    let empty = refused(&options(Format::Swf), "; only a header\n");
    assert!(empty.contains("Read 0 rows") && empty.ends_with("check that it was exported completely"), "{empty}");
    let lenient = ImportOptions { lenient: true, ..options(Format::SdrfCsv) };
    let malformed = import(&bytes("1,2,3\n1,2,1\n"), &lenient).unwrap_err().to_string();
    assert!(malformed.ends_with("Without --lenient the first malformed row is an error with its place"), "{malformed}");
    let two = ["a.swf", "b.swf"].map(|name| Source::Bytes { name: name.into(), data: b"; no job\n".to_vec() });
    let error = import(&two, &options(Format::Swf)).unwrap_err().to_string();
    assert!(error.starts_with("a.swf and 1 more file: no task is left."), "{error}");
    assert!(refused(&options(Format::Swf), "").starts_with("trace: found an empty file"));
    assert!(refused(&options(Format::Batsim), "").starts_with("trace: found an empty file"));
    let endless = refused(&options(Format::Swf), vec![b'1'; 20 << 20]);
    assert!(endless.starts_with("trace: found more than 16777216 bytes without a line end"), "{endless}");
}

#[test]
fn lenient_skips_and_counts() {
    let text = "1,2,3,u,t,1,1\n1,2,3,u,t,1\n1,2,1,u,t,1,1\n1,2,3\n";
    let options = ImportOptions { lenient: true, ..options(Format::SdrfCsv) };
    let found = import(&bytes(text), &options).unwrap();
    assert_eq!((found.summary.rows_read, found.summary.tasks), (4, 1));
    let columns = "malformed, expected 7 columns: submit,start,finish,user,task,cpu,mem";
    let finish = "malformed, expected a finish that is not before the start";
    assert_eq!(dropped(&found), [(columns, 2), (finish, 1)]);
}

#[test]
fn progress_reaches_the_total() {
    use std::sync::Mutex;
    let latest = Mutex::new(None);
    let data = zstd::encode_all(LOG.as_bytes(), 1).unwrap();
    let size = data.len() as u64;
    import_with_progress(&bytes(data), &ImportOptions::default(), &|p| *latest.lock().unwrap() = Some(p)).unwrap();
    let latest = latest.lock().unwrap().unwrap();
    assert_eq!((latest.read, latest.total), (size, Some(size)));
}

#[test]
fn names_of_formats_and_options_are_read_back() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(*format));
    }
    let error = "PBS".parse::<Format>().unwrap_err().to_string();
    assert!(error.starts_with(
        "found format \"PBS\", expected one of auto, swf, google2011, google-2019, sdrf-csv, sacct, slurm-json, pbs,"
    ));
    assert_eq!("MB".parse(), Ok(MemoryUnit::MB));
    assert_eq!("node".parse(), Ok(MemoryPer::Node));
}
