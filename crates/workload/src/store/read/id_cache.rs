//! Looks up the ids of names and demand vectors through a direct-mapped cache.
//!
//! A trace of millions of rows has a few hundred users and a few thousand vectors. A cache hit costs one comparison;
//! the hash map behind the cache is used only on a miss.

use std::collections::HashMap;

use evenhand_model::{DemandId, NO_ID, Names, Nano};

/// The slots of the cache: a power of two, several times the users or vectors of a trace.
const SLOTS: usize = 1 << 13;

struct Cache(Vec<u32>);

impl Cache {
    fn new() -> Cache {
        Cache(vec![NO_ID; SLOTS])
    }

    /// Returns the slot of a key. Multiplication with a large odd number mixes the upper bits.
    fn slot(&mut self, key: u64) -> &mut u32 {
        const BITS: u32 = SLOTS.trailing_zeros();
        &mut self.0[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize]
    }
}

pub(super) struct NameIds {
    names: Names,
    cache: Cache,
}

impl Default for NameIds {
    fn default() -> NameIds {
        NameIds { names: Names::default(), cache: Cache::new() }
    }
}

impl NameIds {
    /// Returns the id of a name; `None` if it is not UTF-8.
    pub(super) fn id(&mut self, name: &[u8]) -> Option<u32> {
        let eight = |bytes: &[u8]| bytes.iter().fold(0u64, |key, &b| key << 8 | u64::from(b));
        let (head, tail) = (&name[..name.len().min(8)], &name[name.len().saturating_sub(8)..]);
        let slot = self.cache.slot(eight(head) ^ eight(tail).rotate_left(29) ^ name.len() as u64);
        if *slot != NO_ID && self.names.list()[*slot as usize].as_bytes() == name {
            return Some(*slot);
        }
        *slot = self.names.intern(std::str::from_utf8(name).ok()?);
        Some(*slot)
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }
}

pub(super) struct DemandIds {
    width: usize,
    rows: Vec<Nano>,
    ids: HashMap<Box<[Nano]>, u32>,
    cache: Cache,
}

impl DemandIds {
    pub(super) fn new(width: usize) -> DemandIds {
        DemandIds { width, rows: Vec::new(), ids: HashMap::new(), cache: Cache::new() }
    }

    pub(super) fn id(&mut self, row: &[Nano]) -> DemandId {
        let key = row.iter().fold(0u64, |key, &v| key.rotate_left(21).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ v as u64);
        let slot = self.cache.slot(key);
        if *slot != NO_ID && self.rows[*slot as usize * self.width..][..self.width] == *row {
            return DemandId(*slot);
        }
        *slot = match self.ids.get(row) {
            Some(&id) => id,
            None => {
                let id = u32::try_from(self.ids.len()).expect("a row group has fewer than 2^32 vectors");
                self.ids.insert(row.into(), id);
                self.rows.extend_from_slice(row);
                id
            }
        };
        DemandId(*slot)
    }

    pub(super) fn into_rows(self) -> Vec<Nano> {
        self.rows
    }
}
