//! Terms that a query creates (query-local terms, such as counts), and decoding of ids.

use crate::batch::OperatorCharge;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use jindou_dictionary::STRINGS_FILE;
use jindou_graph::{Graph, TermDecoding, Vocabulary};
use jindou_model::scope::worked;
use jindou_model::sync;
use jindou_model::{
    Error, FIRST_QUERY_ID, Holder, MemoryBudget, NO_VERTEX, Resource, Result, VertexId, term,
};
use jindou_values::Temporal;
use oxrdf::Term;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::SystemTime;

/// Number of shards of a query's dictionary, so that workers which insert different terms rarely wait for each other.
const SHARDS: usize = 16;
/// Bytes per term in addition to its text: its end, and its entry in the hash table.
const OVERHEAD: usize = 24;
/// Length in bytes from which on terms are stored separately.
const LONG: usize = 1 << 16;
/// Initial capacity of a shard for terms, in bytes.
const LEAST: usize = 256;
/// Memory is charged to the query in steps of this many bytes.
const CHARGE_STEP: usize = 1 << 16;

/// The query-local dictionary, with ids from `FIRST_QUERY_ID` on. Each query has its own, which is needed until all
/// results are decoded.
pub struct QueryTerms {
    /// Created with the first term. Most queries create no terms, and creating the shards takes longer than some of
    /// them.
    shards: OnceLock<Box<[RwLock<Shard>; SHARDS]>>,
    /// The time that `NOW()` returns; set when it is first needed.
    now: OnceLock<Temporal>,
}

/// Concatenated terms, with a hash table of their numbers.
#[derive(Default)]
struct Shard {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Terms of at least [`LONG`] bytes by number; their parts of `bytes` are empty. Readers share them.
    long: FxHashMap<u32, Arc<[u8]>>,
    long_bytes: usize,
    table: HashTable<u32>,
    /// Created by the first insertion that is charged to a query.
    charge: Option<OperatorCharge>,
    charged: usize,
}

impl Shard {
    fn term(&self, at: u32) -> Option<&[u8]> {
        term(&self.bytes, &self.ends, &self.long, at)
    }

    /// The number of a term, which is added if it is new. Needs one lookup in the table.
    fn insert(
        &mut self,
        hash: u64,
        canonical: &[u8],
        budget: Option<&MemoryBudget>,
    ) -> Result<u32> {
        let Self {
            bytes,
            ends,
            long,
            long_bytes,
            table,
            charge,
            charged,
        } = self;
        let known = |at: u32| term(bytes, ends, long, at).unwrap_or(&[]);
        let entry = table.entry(hash, |&at| known(at) == canonical, |&at| hash_of(known(at)));
        let vacant = match entry {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let at = ends.len();
        if at as u64 >= u64::from(u32::MAX - FIRST_QUERY_ID) / SHARDS as u64 {
            return Err(Error::limit(
                Resource::Numbers,
                "the query creates too many distinct terms",
            ));
        }
        let is_long = canonical.len() >= LONG;
        let more = bytes.len() + if is_long { 0 } else { canonical.len() };
        let room = match more > bytes.capacity() {
            true => more.max(bytes.capacity() * 3 / 2).max(LEAST),
            false => bytes.capacity(),
        };
        let apart = *long_bytes + if is_long { canonical.len() } else { 0 };
        let held = room + apart + (at + 1) * OVERHEAD;
        if held > *charged
            && let Some(budget) = budget
        {
            // The table and the vector of ends may double.
            let want = (held + at * OVERHEAD / 2).next_multiple_of(CHARGE_STEP);
            charge
                .get_or_insert_with(|| OperatorCharge::for_holder(Holder::Terms, budget))
                .set(want)?;
            *charged = want;
        }
        worked(canonical.len())?;
        if is_long {
            long.insert(at as u32, canonical.into());
            *long_bytes = apart;
        } else {
            bytes.reserve_exact(room - bytes.len());
            bytes.extend_from_slice(canonical);
        }
        ends.push(bytes.len());
        vacant.insert(at as u32);
        Ok(at as u32)
    }
}

/// Canonical bytes of a shard's term, which are never empty. An empty part of `bytes` therefore stands for a long term.
#[inline]
fn term<'t>(
    bytes: &'t [u8],
    ends: &[usize],
    long: &'t FxHashMap<u32, Arc<[u8]>>,
    at: u32,
) -> Option<&'t [u8]> {
    let end = *ends.get(at as usize)?;
    let start = match at.checked_sub(1) {
        Some(before) => *ends.get(before as usize)?,
        None => 0,
    };
    match start == end {
        false => bytes.get(start..end),
        true => long.get(&at).map(|term| &**term),
    }
}

fn hash_of(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

impl Default for QueryTerms {
    fn default() -> Self {
        Self::new()
    }
}

impl QueryTerms {
    /// An empty dictionary.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: OnceLock::new(),
            now: OnceLock::new(),
        }
    }

    /// The time that `NOW()` returns in this query.
    #[must_use]
    pub fn now(&self) -> Temporal {
        // Only when it is needed, since reading the clock takes longer than many a query.
        *self.now.get_or_init(|| {
            let since = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            Temporal::date_time(since.as_secs() as i64, since.subsec_nanos())
                .unwrap_or(Temporal::EPOCH)
        })
    }

    /// The query-local id of a term, which is added if it is new. The term must not be in the store; see
    /// [`Self::resolve`].
    ///
    /// # Errors
    /// `Limit` if the query has used up all query-local ids (almost 2^28).
    pub fn insert(&self, canonical: &[u8]) -> Result<VertexId> {
        self.insert_charged(canonical, None)
    }

    fn insert_charged(&self, canonical: &[u8], budget: Option<&MemoryBudget>) -> Result<VertexId> {
        let hash = hash_of(canonical);
        // The table uses the high and the low bits of the hash, so the shard is chosen by bits between them.
        let shard = (hash >> 32) as usize % SHARDS;
        let id = |at: u32| VertexId(FIRST_QUERY_ID + at * SHARDS as u32 + shard as u32);
        // Takes the write lock at once, since workers cache the ids of terms, so that most terms that get here are new.
        let shards = self.shards.get_or_init(Box::default);
        sync::write(&shards[shard])
            .insert(hash, canonical, budget)
            .map(id)
    }

    /// The id of a computed term: the store's id if the store has the term, so that equal terms have equal ids;
    /// otherwise a query-local id, charged to `budget`.
    ///
    /// # Errors
    /// `Limit` if the budget is exhausted or the ids are used up.
    pub fn resolve(
        &self,
        vocabulary: Vocabulary<'_>,
        canonical: &[u8],
        budget: &MemoryBudget,
    ) -> Result<VertexId> {
        match vocabulary.lookup(canonical) {
            Some(v) => Ok(v),
            None => self.insert_charged(canonical, Some(budget)),
        }
    }

    /// A query-local id of an `xsd:integer`, which must not be used as a join key, since the store may have the term,
    /// too.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn integer(&self, n: u64) -> Result<VertexId> {
        let mut bytes = vec![term::FIRST_DATATYPE];
        bytes.extend_from_slice(n.to_string().as_bytes());
        self.insert(&bytes)
    }

    /// Appends a query-local term's canonical bytes; returns false for an unknown id.
    pub fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        self.with(v, |term| out.extend_from_slice(term)).is_some()
    }

    /// A query-local term of at least [`LONG`] bytes, without copying it; `None` for other ids.
    fn long(&self, v: VertexId) -> Option<Arc<[u8]>> {
        let n = v.0.checked_sub(FIRST_QUERY_ID)?;
        let shard = sync::read(&self.shards.get()?[n as usize % SHARDS]);
        shard.long.get(&(n / SHARDS as u32)).map(Arc::clone)
    }

    /// Calls `f` with a query-local term's canonical bytes; `None` for an unknown id. Meanwhile, insertions into the
    /// same shard wait.
    pub(crate) fn with<T>(&self, v: VertexId, f: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let n = v.0.checked_sub(FIRST_QUERY_ID)?;
        let shard = sync::read(&self.shards.get()?[n as usize % SHARDS]);
        shard.term(n / SHARDS as u32).map(f)
    }
}

/// Decodes the ids of results into terms. Keeps the most recently decoded dictionary block, so that ids near each other
/// are decoded cheaply. Each thread has its own.
pub struct TermDecoder<'a> {
    terms: &'a QueryTerms,
    decoding: TermDecoding<'a>,
    scratch: Vec<u8>,
    /// The last long query-local term that was decoded.
    long: Option<Arc<[u8]>>,
}

impl<'a> TermDecoder<'a> {
    /// Creates a decoder for results over this snapshot.
    #[must_use]
    pub fn new(snapshot: &'a dyn Graph, terms: &'a QueryTerms) -> Self {
        Self {
            terms,
            decoding: snapshot.vocabulary().decoding(),
            scratch: Vec::new(),
            long: None,
        }
    }

    /// The canonical bytes of an id's term; `None` for 0 (unbound).
    ///
    /// # Errors
    /// For an id that has no term: the store is damaged.
    pub fn canonical(&mut self, id: u32) -> Result<Option<&[u8]>> {
        let v = VertexId(id);
        // This comparison is sufficient for nearly all ids.
        if (1..FIRST_QUERY_ID).contains(&id) {
            return match self.decoding.term(v) {
                Some(t) => Ok(Some(t)),
                None => Err(no_term(id)),
            };
        }
        match id {
            NO_VERTEX => Ok(None),
            _ => self.query_term(v).map(Some),
        }
    }

    /// As [`Self::canonical`], for a query-local id.
    #[inline(never)]
    fn query_term(&mut self, v: VertexId) -> Result<&[u8]> {
        let scratch = &mut self.scratch;
        scratch.clear();
        let is_short = self.terms.with(v, |term| {
            let is_short = term.len() < LONG;
            if is_short {
                scratch.extend_from_slice(term);
            }
            is_short
        });
        if is_short == Some(true) {
            return Ok(&self.scratch);
        }
        self.long = self.terms.long(v);
        self.long.as_deref().ok_or_else(|| no_term(v.0))
    }

    /// Prefetches the memory that [`Self::canonical`] reads for these ids. Call it with some tens of ids before
    /// decoding them.
    pub fn prefetch(&mut self, ids: &[u32]) {
        self.decoding.prefetch(ids);
    }

    /// The term of an id; `None` for 0 (unbound).
    ///
    /// # Errors
    /// As [`Self::canonical`].
    pub fn term(&mut self, id: u32) -> Result<Option<Term>> {
        match self.canonical(id)? {
            None => Ok(None),
            Some(bytes) => term::decode(bytes).map(Some).ok_or_else(|| no_term(id)),
        }
    }
}

fn no_term(id: u32) -> Error {
    Error::damaged(
        STRINGS_FILE,
        format!("damaged: it has no readable term for vertex {id}; `jindou check` shows where"),
    )
}
