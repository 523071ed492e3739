//! A toy store in shards: bases, changes since, terms with ids that are freed and reused.
//!
//! Each register of the store without shards is two quads here: `key → id of a term`, with keys of two shards. A base has
//! the quads of a snapshot by shard, under the keys and under the ids. A view is a base with all changes since, as every
//! server has them. Its rules are those of `jindou-store`: `delta/{merges,free}.rs`, `merge/{shards,rebase}.rs`.

use super::super::Fault;
use super::super::state::{State, mix};
use crate::machine::group::{Blob, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// First bytes of records and requests that do not set a register.
pub const MERGE_STARTED: u8 = 0xf8;
pub const MERGE_COMMITTED: u8 = 0xf9;
pub const FREED: u8 = 0xfa;
/// A record without changes.
pub const NOTHING: u8 = 0xff;

/// Registers of a [`State`], each with two keys.
pub const REGISTERS: u8 = 4;

/// The shard that has a key. Those of a register's keys differ if there are several.
pub fn shard_of(key: u8, shards: usize) -> usize {
    usize::from(key + key / REGISTERS) % shards
}

/// The register that an update sets, if there is one.
pub fn is_register(body: &[u8]) -> Option<u8> {
    let register = body.first()? & 15;
    (register < REGISTERS).then_some(register)
}

/// Encodes a record or a request: its kind, then numbers.
pub fn encode(kind: u8, numbers: &[u64]) -> Blob {
    let numbers = numbers.iter().flat_map(|n| n.to_le_bytes());
    std::iter::once(kind).chain(numbers).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The numbers of a record or a request of this kind.
pub fn decode(kind: u8, bytes: &[u8]) -> Option<Vec<u64>> {
    let (_, numbers) = bytes.split_first().filter(|(first, _)| **first == kind)?;
    let numbers = numbers.chunks_exact(8).map(number);
    Some(numbers.collect())
}

/// The files of a shard in a base.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Terms by key.
    entries: BTreeMap<u8, u32>,
    /// By term that the shard owns: the keys that have it, as bits.
    uses: BTreeMap<u32, u8>,
}

/// Result of merging a shard.
#[derive(Clone, Debug)]
pub struct ShardResult {
    pub hash: u64,
    keys: u64,
    /// Terms that the shard owns and that have no quads left.
    idle: Vec<u32>,
}

impl Files {
    fn merged(&self, shard: usize, shards: usize, patch: &BTreeMap<u8, Change>) -> Self {
        let mut files = self.clone();
        let owned = |id: u32| id > 0 && id as usize % shards == shard;
        for (&key, change) in patch {
            if owned(change.was) {
                let uses = files.uses.entry(change.was).or_default();
                *uses &= !(1 << key);
            }
            if owned(change.is) {
                *files.uses.entry(change.is).or_default() |= 1 << key;
            }
            if shard_of(key, shards) == shard {
                files.entries.insert(key, change.is);
            }
        }
        files.entries.retain(|_, id| *id > 0);
        files.uses.retain(|_, keys| *keys > 0);
        files
    }

    fn result(&self, shard: usize, view: &View) -> ShardResult {
        let owned = (view.used.iter()).filter(|id| **id as usize % view.shards() == shard);
        let idle: Vec<u32> = (owned.filter(|id| !self.uses.contains_key(id)))
            .copied()
            .collect();
        let entries = self.entries.iter().map(|(key, id)| (u64::from(*key), *id));
        let uses = self.uses.iter().map(|(id, keys)| (u64::from(*keys), *id));
        let all = entries.chain(uses).chain(idle.iter().map(|id| (0, *id)));
        let hash = all.fold(shard as u64, |hash, (a, b)| {
            mix(mix(hash ^ a) ^ u64::from(b))
        });
        ShardResult {
            hash,
            keys: self.entries.len() as u64,
            idle,
        }
    }
}

/// A base, with the files of some shards.
#[derive(Clone, Debug, Default)]
pub struct ShardedBase {
    /// The last snapshot that it contains: the number of records until then.
    pub number: u64,
    /// The group of that snapshot.
    pub group: u64,
    pub files: Vec<Option<Rc<Files>>>,
    /// Number of keys in all shards.
    pub keys: u64,
}

impl ShardedBase {
    pub fn empty(shards: usize) -> Self {
        Self {
            files: vec![Some(Rc::default()); shards],
            ..Self::default()
        }
    }

    /// The base with the files of these shards only.
    pub fn held(&self, held: &[usize]) -> Rc<Self> {
        let mut base = self.clone();
        for (shard, files) in base.files.iter_mut().enumerate() {
            files.take_if(|_| !held.contains(&shard));
        }
        Rc::new(base)
    }

    pub fn shards(&self) -> impl Iterator<Item = (usize, &Rc<Files>)> {
        let all = self.files.iter().enumerate();
        all.filter_map(|(shard, files)| Some((shard, files.as_ref()?)))
    }
}

/// The change of a key since the base: its term in the base and now; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change {
    was: u32,
    is: u32,
}

/// A snapshot of a store in shards, as a server has it.
#[derive(Clone, Debug)]
pub struct View {
    pub base: Rc<ShardedBase>,
    patch: Rc<BTreeMap<u8, Change>>,
    /// Keys added since the base, less those removed.
    added: i64,
    /// Terms of the ids from 1 on; 0 if the id is free.
    terms: Rc<Vec<u64>>,
    /// Ids that may have quads.
    used: Rc<BTreeSet<u32>>,
    /// The snapshot that started the open merge.
    pub open: Option<u64>,
    /// Free ids up to this one are not reused; 0 without the fault.
    forgotten: usize,
}

impl View {
    pub fn new(base: Rc<ShardedBase>) -> Self {
        Self {
            base,
            patch: Rc::default(),
            added: 0,
            terms: Rc::default(),
            used: Rc::default(),
            open: None,
            forgotten: 0,
        }
    }

    pub fn shards(&self) -> usize {
        self.base.files.len()
    }

    /// A term; `None` if the id is free.
    pub fn term(&self, id: u32) -> Option<u64> {
        let at = (id as usize).checked_sub(1)?;
        self.terms.get(at).copied().filter(|term| *term > 0)
    }

    /// A key's term, if it changed since the base; 0 if the key is gone.
    pub fn changed(&self, key: u8) -> Option<u64> {
        let change = self.patch.get(&key)?;
        Some(self.term(change.is).unwrap_or(0))
    }

    /// The rows that one shard has: keys with ids. New keys are rows of the shard to which they are assigned.
    pub fn rows(&self, shard: usize, files: &Files, fault: Option<Fault>) -> Vec<(u8, u32)> {
        let lost = |key: &u8| fault == Some(Fault::NewKeysLost) && !files.entries.contains_key(key);
        let here = |key: &u8| shard_of(*key, self.shards()) == shard && !lost(key);
        let base = files.entries.iter().map(|(key, id)| (*key, *id));
        let base = base.filter(|(key, _)| !self.patch.contains_key(key));
        let patch = self.patch.iter().filter(|(key, c)| here(key) && c.is > 0);
        base.chain(patch.map(|(key, change)| (*key, change.is)))
            .collect()
    }

    /// Number of keys of all shards.
    pub fn keys(&self) -> i64 {
        self.base.keys as i64 + self.added
    }

    /// The terms that no quad uses.
    pub fn unused(&self) -> Vec<u64> {
        let ids = 1..=self.terms.len() as u32;
        ids.filter(|id| self.term(*id).is_some() && !self.used.contains(id))
            .map(u64::from)
            .collect()
    }

    /// Applies the record of snapshot `number`. `results` are those of the merge that it commits.
    pub fn apply(
        &mut self,
        record: &Record,
        number: u64,
        results: &BTreeMap<u64, ShardResult>,
    ) -> Result<(), &'static str> {
        let bytes = &record.bytes;
        if decode(MERGE_STARTED, bytes).is_some() {
            return match self.open.replace(number) {
                None => Ok(()),
                Some(_) => Err("a merge is started while another one is open"),
            };
        }
        if let Some(ids) = decode(FREED, bytes) {
            let terms = Rc::make_mut(&mut self.terms);
            for id in ids {
                match terms.get_mut(id as usize - 1).map(std::mem::take) {
                    None | Some(0) => return Err("an id is freed that is free"),
                    Some(_) => {}
                }
            }
            return Ok(());
        }
        if let Some(committed) = decode(MERGE_COMMITTED, bytes) {
            let (merged, hashes) = committed.split_first().ok_or("an empty record")?;
            let open = self.open.take();
            if open.is_none_or(|open| open > *merged) || *merged != self.base.number {
                return Err("a merge is committed that is not the open one");
            }
            // Terms that got quads since are used again.
            let used = Rc::make_mut(&mut self.used);
            let idle = hashes.iter().filter_map(|hash| results.get(hash));
            for id in idle.flat_map(|result| &result.idle) {
                if self.patch.values().all(|change| change.is != *id) {
                    used.remove(id);
                }
            }
            return Ok(());
        }
        if bytes.first() != Some(&NOTHING) {
            self.set(record);
        }
        Ok(())
    }

    /// Sets a register.
    fn set(&mut self, record: &Record) {
        let register = record.bytes.first().map_or(0, |byte| byte & 15);
        let new = record.bytes.get(1..).map_or(0, number);
        let old = number(&record.report);
        let was = self.id_of(old).unwrap_or(0);
        let is = match new {
            0 => 0,
            _ => self.id_of(new).unwrap_or_else(|| self.add(new)),
        };
        if is > 0 {
            Rc::make_mut(&mut self.used).insert(is);
        }
        let patch = Rc::make_mut(&mut self.patch);
        for key in [register, register + REGISTERS] {
            patch.entry(key).or_insert(Change { was, is }).is = is;
        }
        self.added += 2 * (i64::from(new > 0) - i64::from(old > 0));
    }

    fn id_of(&self, term: u64) -> Option<u32> {
        let at = self.terms.iter().position(|of| *of == term && term > 0)?;
        Some(at as u32 + 1)
    }

    /// Adds a term under the first free id.
    fn add(&mut self, term: u64) -> u32 {
        let terms = Rc::make_mut(&mut self.terms);
        let mut ids = terms.iter().enumerate().skip(self.forgotten);
        let at = ids
            .find(|(_, of)| **of == 0)
            .map_or(terms.len(), |(at, _)| at);
        match terms.get_mut(at) {
            Some(place) => *place = term,
            None => terms.push(term),
        }
        at as u32 + 1
    }

    /// Files and results of the shards that are here, merged from this snapshot.
    pub fn merge(&self) -> BTreeMap<usize, (Rc<Files>, ShardResult)> {
        let one = |(shard, files): (usize, &Rc<Files>)| {
            let files = files.merged(shard, self.shards(), &self.patch);
            let result = files.result(shard, self);
            (shard, (Rc::new(files), result))
        };
        self.base.shards().map(one).collect()
    }

    /// The same content over the base that was merged from `then`.
    pub fn rebase(&self, then: &Self, base: &Rc<ShardedBase>) -> Self {
        let since = self.patch.iter().filter_map(|(key, change)| {
            let before = then.patch.get(key).copied();
            let was = before.map_or(change.was, |before| before.is);
            (before != Some(*change)).then_some((*key, Change { was, is: change.is }))
        });
        Self {
            base: Rc::clone(base),
            patch: Rc::new(since.collect()),
            added: self.added - then.added,
            ..self.clone()
        }
    }

    /// This snapshot over its own base, whose shards have these results.
    pub fn over(&self, base: ShardedBase, results: &[&ShardResult]) -> Self {
        let keys = results.iter().map(|result| result.keys).sum();
        Self {
            base: Rc::new(ShardedBase { keys, ..base }),
            patch: Rc::default(),
            added: 0,
            ..self.clone()
        }
    }

    /// With the fault, free ids are not part of a base.
    pub fn opened(&self, base: Rc<ShardedBase>, fault: Option<Fault>) -> Self {
        let mut view = Self {
            base,
            ..self.clone()
        };
        if fault == Some(Fault::FreeListDiffers) {
            view.forgotten = view.terms.len();
        }
        view
    }
}

/// A snapshot: that of the store without shards, or counts of records with the shards' view.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub state: State,
    pub view: Option<Rc<View>>,
}
