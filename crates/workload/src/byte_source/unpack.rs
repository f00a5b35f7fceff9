//! Unpacks streams and tar archives.

use std::fs::{self, File};
#[cfg(feature = "formats")]
use std::io;
use std::io::Read;
use std::path::Path;

use super::{BLOCK, Blocks};
use crate::import::ImportError;

/// Returns what a stream of zstd, bzip2 or xz holds, and the name of that compression; any other stream as it is.
#[cfg(feature = "formats")]
pub(super) fn unpacked(raw: impl Read + Send + 'static, magic: &[u8], name: &str) -> Result<Unpacked, ImportError> {
    if magic.starts_with(&ZSTD) {
        let decoder = zstd::Decoder::new(raw).map_err(|source| ImportError::Io { file: name.to_string(), source })?;
        return Ok((Box::new(decoder), Some("zstd")));
    }
    let buffered = |raw| io::BufReader::with_capacity(64 * 1024, raw);
    Ok(if magic.starts_with(BZIP2) {
        (Box::new(::bzip2::bufread::MultiBzDecoder::new(buffered(raw))), Some("bzip2"))
    } else if magic.starts_with(&XZ) {
        (Box::new(lzma_rust2::XzReader::new(buffered(raw), true)), Some("xz"))
    } else {
        (Box::new(raw), None)
    })
}

/// Returns a stream as it is, and an error about one of zstd, bzip2 or xz.
#[cfg(not(feature = "formats"))]
pub(super) fn unpacked(raw: impl Read + Send + 'static, magic: &[u8], name: &str) -> Result<Unpacked, ImportError> {
    match [(&ZSTD[..], "zstd"), (BZIP2, "bzip2"), (&XZ, "xz")].iter().find(|(start, _)| magic.starts_with(start)) {
        Some((_, compression)) => Err(ImportError::not_built(name, &format!("a file packed by {compression}"))),
        None => Ok((Box::new(raw), None)),
    }
}

/// A stream, and the name of the compression that it had.
pub(super) type Unpacked = (Box<dyn Read + Send>, Option<&'static str>);

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BZIP2: &[u8] = b"BZh";
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// The files of an archive: their names and contents.
pub(super) type Members = Vec<(String, Vec<u8>)>;

/// Returns the regular files of a tar archive, compressed or not, in the order of their names; `None` for any other
/// file. Their content is held in memory.
pub(super) fn archive_members(path: &Path) -> Result<Option<Members>, ImportError> {
    let file = path.display().to_string();
    if !fs::metadata(path).is_ok_and(|m| m.is_file()) {
        return Ok(None);
    }
    let open = || {
        let raw = File::open(path).map_err(|source| ImportError::Io { file: file.clone(), source })?;
        Blocks::new(file.clone(), Box::new(raw), BLOCK)
    };
    let head = open()?.head()?.to_vec();
    // The magic number of a header, of POSIX and of GNU tar.
    if head.get(257..262) != Some(b"ustar") {
        return Ok(None);
    }
    let blocks = open()?;
    members(file, blocks).map(Some)
}

#[cfg(feature = "formats")]
fn members(file: String, blocks: Blocks) -> Result<Members, ImportError> {
    let compression = blocks.compression;
    let failed = |source: io::Error| match compression {
        Some(compression) if source.raw_os_error().is_none() => {
            let truncated = source.kind() == io::ErrorKind::UnexpectedEof;
            ImportError::Compression { file: file.clone(), compression, truncated, detail: source.to_string() }
        }
        _ => ImportError::Io { file: file.clone(), source },
    };
    let mut archive = tar::Archive::new(blocks.reader);
    let mut members = Vec::new();
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = format!("{file}/{}", String::from_utf8_lossy(&entry.path_bytes()));
        let mut data = Vec::new();
        entry.read_to_end(&mut data).map_err(failed)?;
        // Archives hold empty files where a day had no record.
        if !data.is_empty() {
            members.push((name, data));
        }
    }
    if members.is_empty() {
        return Err(ImportError::EmptyFile { file });
    }
    members.sort();
    Ok(members)
}

#[cfg(not(feature = "formats"))]
fn members(file: String, _: Blocks) -> Result<Members, ImportError> {
    Err(ImportError::not_built(&file, "a tar archive"))
}
