//! Comparisons of numbers on the device: a table with the value rank of each number by its id, and the interval of
//! ranks for which a comparison is true.
//!
//! Ids of numbers are grouped by predicate, not ordered by value. So `?x < 5` is not an interval of ids, but it is an
//! interval of value ranks. The ranks are stored by id in pages of 1024; a page without numbers takes 4 bytes. The
//! table is uploaded once. Terms added by updates have no rank: when a plan is compiled, the host compares each of
//! them, and the device gets one bit per term.

use crate::buffer::{DeviceBuffer, Packer};
use crate::cache::SegmentCache;
use crate::device::Device;
use crate::params::{self, NO_KEY, RANK_SHIFT};
use jindou_dictionary::{Comparison, Dictionary, NAN_RANK, NO_RANK};
use jindou_graph::Graph;
use jindou_model::{Error, FIRST_TAIL_ID, Result, VertexId, term};
use jindou_plan::Relation;
use jindou_values::{Number, equal_values, order, value};
use std::sync::Arc;

/// Largest number of terms added by updates that are compared when a plan is compiled.
const MOST_TAIL: u32 = 1 << 16;
/// Number of ids in a page of the table.
const PAGE: u32 = 1 << RANK_SHIFT;

/// The ranks of a store's numbers, by id.
pub(crate) struct RankTable {
    /// The array of pages, followed by the ranks.
    buffer: Option<DeviceBuffer>,
    pages: u64,
    ranks: u64,
    page_count: u32,
    /// One more than the largest rank of a number; NaN does not count.
    last: u32,
}

impl RankTable {
    /// Computes and uploads the table. O(ids).
    fn bring(device: &Arc<Device>, dictionary: &Dictionary, ids: u32) -> Result<Self> {
        let page_count = (u64::from(ids) + 1).div_ceil(u64::from(PAGE)) as u32;
        let (mut pages, mut ranks): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut last = 0;
        let (mut some, mut found) = (Vec::with_capacity(PAGE as usize), Vec::new());
        for page in 0..page_count {
            some.clear();
            found.clear();
            some.extend((page * PAGE..=ids).take(PAGE as usize));
            dictionary.numeric_rank_many(&some, &mut found);
            if found.iter().all(|&r| r == NO_RANK) {
                pages.push(NO_KEY);
                continue;
            }
            let ranks_of = found.iter().filter(|&&r| r < NAN_RANK);
            last = ranks_of.fold(last, |last, &r| last.max(r + 1));
            found.resize(PAGE as usize, NO_RANK);
            pages.push((ranks.len() / PAGE as usize) as u32);
            ranks.extend_from_slice(&found);
        }
        let mut packed = Packer::default();
        let (pages_at, ranks_at) = (packed.add(&pages), packed.add(&ranks));
        let buffer = packed.finish(device)?;
        Ok(Self {
            pages: pages_at.in_buffer(buffer.as_ref()),
            ranks: ranks_at.in_buffer(buffer.as_ref()),
            page_count,
            last,
            buffer,
        })
    }

    /// One more than the largest rank of a number, NaN aside; 0 if there are no numbers.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Kernel parameters for the ranks of the base's numbers. Terms added by updates have none.
    pub fn params(&self) -> params::RanksParams {
        params::RanksParams {
            pages: self.pages,
            ranks: self.ranks,
            page_count: self.page_count,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    pub fn bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |b| b.len() as u64)
    }
}

/// A comparison with a constant in the form that a kernel tests.
#[derive(Clone)]
pub(crate) struct DeviceRanks {
    pub params: params::RanksParams,
    _table: Arc<RankTable>,
    _tail: Option<Arc<DeviceBuffer>>,
}

/// The comparison, and the constant as a number. `None` for comparisons that are true for other terms than an interval
/// of ranks.
fn number(relation: Relation, constant: &[u8]) -> Option<(Comparison, Number)> {
    let comparison = match relation {
        Relation::Equal => Comparison::Equal,
        Relation::Less => Comparison::Less,
        Relation::LessOrEqual => Comparison::LessOrEqual,
        Relation::Greater => Comparison::Greater,
        Relation::GreaterOrEqual => Comparison::GreaterOrEqual,
        // `!=` is true for many terms that are not numbers.
        Relation::NotEqual => return None,
    };
    match term::parts(constant) {
        Some(term::Parts::Coded(lexical, tag)) if term::NUMERIC_TAGS.contains(&tag) => {
            let number = Number::parse(tag, lexical)?;
            (!number.to_f64().is_nan()).then_some((comparison, number))
        }
        _ => None,
    }
}

/// True for comparisons that the device can test by rank.
pub(crate) fn is_by_rank(relation: Relation, constant: &[u8]) -> bool {
    number(relation, constant).is_some()
}

/// True if a comparison with a constant is true for a term, given by its canonical bytes.
fn is_true(bytes: &[u8], relation: Relation, constant: &[u8]) -> bool {
    let (Some(own), Some(other)) = (value(bytes), value(constant)) else {
        return false;
    };
    let ordered =
        |holds: fn(std::cmp::Ordering) -> bool| order(&own, &other).flatten().is_some_and(holds);
    match relation {
        Relation::Equal => equal_values(bytes, &own, constant, &other) == Some(true),
        Relation::NotEqual => equal_values(bytes, &own, constant, &other) == Some(false),
        Relation::Less => ordered(std::cmp::Ordering::is_lt),
        Relation::LessOrEqual => ordered(std::cmp::Ordering::is_le),
        Relation::Greater => ordered(std::cmp::Ordering::is_gt),
        Relation::GreaterOrEqual => ordered(std::cmp::Ordering::is_ge),
    }
}

/// Number of terms in the tail.
pub(crate) fn tail_of(snapshot: &dyn Graph) -> u32 {
    snapshot.vertices().saturating_sub(snapshot.dense_ids())
}

impl DeviceRanks {
    /// Uploads the ranks of a snapshot's numbers unless they are on the device, and compares the tail's terms on the
    /// host.
    ///
    /// # Errors
    /// `Unsupported` if ranks do not decide for which terms the comparison is true, or if the tail has too many terms;
    /// errors of the device.
    pub fn new(
        device: &Arc<Device>,
        cache: &SegmentCache,
        snapshot: &dyn Graph,
        relation: Relation,
        constant: &[u8],
    ) -> Result<Self> {
        let unsupported = |what: &str| Error::Unsupported(format!("{what} on the GPU"));
        let Some((comparison, bound)) = number(relation, constant) else {
            return Err(unsupported(
                "a comparison with something that is not a number",
            ));
        };
        let Some(dictionary) = snapshot.vocabulary().ranks() else {
            return Err(unsupported("comparisons without value ranks"));
        };
        let bounds = dictionary.numeric_bounds(comparison, &bound);
        let Some(range) = bounds.uniform() else {
            return Err(unsupported(
                "a comparison that each type of number has its own bounds for",
            ));
        };
        let tail = tail_of(snapshot);
        if tail > MOST_TAIL {
            return Err(unsupported("a comparison with many terms of updates"));
        }
        let mut bits = vec![0u32; tail.div_ceil(32) as usize];
        let mut bytes = Vec::new();
        for n in 0..tail {
            bytes.clear();
            if snapshot.term(VertexId(FIRST_TAIL_ID + n), &mut bytes)
                && is_true(&bytes, relation, constant)
            {
                bits[n as usize / 32] |= 1 << (n % 32);
            }
        }
        let table = cache.ranks(device, snapshot, dictionary)?;
        let tail_bits = match bits.as_slice() {
            [] => None,
            bits => Some(Arc::new(DeviceBuffer::with(device, bits)?)),
        };
        let params = params::RanksParams {
            pages: table.pages,
            ranks: table.ranks,
            tail_bits: tail_bits.as_ref().map_or(0, |b| b.at()),
            page_count: table.page_count,
            start: range.start,
            end: range.end,
            first_tail: FIRST_TAIL_ID,
            tail,
            pad: 0,
        };
        Ok(Self {
            params,
            _table: table,
            _tail: tail_bits,
        })
    }
}

impl SegmentCache {
    /// The ranks of a snapshot's numbers, uploaded unless they are cached.
    ///
    /// # Errors
    /// `Unsupported` for a graph without ranks; the device's errors.
    pub(crate) fn ranks_of(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
    ) -> Result<Arc<RankTable>> {
        match snapshot.vocabulary().ranks() {
            Some(dictionary) => self.ranks(device, snapshot, dictionary),
            None => Err(Error::Unsupported(
                "an order without value ranks on the GPU".into(),
            )),
        }
    }

    /// As [`Self::ranks_of`], for a snapshot whose base has this dictionary.
    fn ranks(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
        dictionary: &Dictionary,
    ) -> Result<Arc<RankTable>> {
        // Within an epoch, the terms of the base do not change.
        let (epoch, ids) = (snapshot.identity().epoch, snapshot.dense_ids());
        if let Some(t) = self.index().ranks.get(&(epoch, ids)) {
            return Ok(Arc::clone(t));
        }
        let brought = self.with_room(|| RankTable::bring(device, dictionary, ids))?;
        let brought = Arc::new(brought);
        self.index()
            .ranks
            .insert((epoch, ids), Arc::clone(&brought));
        Ok(brought)
    }
}
