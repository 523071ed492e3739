//! Consumers of result rows: one behind a lock, or one part for each worker.

use crate::executor::RowBlock;
use crate::options::ExecOptions;
use jindou_model::sync;
use jindou_model::{NO_VERTEX, Result};
use std::sync::{Mutex, PoisonError};

/// Receives result batches of one worker (or of all, one at a time).
pub trait Sink: Send {
    /// Takes `rows` rows: one slice of ids for each output column, in the plan's order, all `rows` long. 0 is unbound;
    /// ids from `FIRST_QUERY_ID` on are in the query's `QueryTerms`. The slices are overwritten after the call. An
    /// error ends the query with that error (`Error::SinkClosed` when the reader went away).
    ///
    /// Called inside the query's scope, if it has one: memory that outlives the query is to be taken
    /// [outside](jindou_model::scope::outside).
    ///
    /// # Errors
    /// Any failure of the sink to take rows.
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()>;

    /// As [`Self::batch`], with rows that stay valid until they are dropped: a sink may keep some blocks, and process
    /// them on other threads.
    ///
    /// # Errors
    /// As [`Self::batch`].
    fn block(&mut self, rows: Box<dyn RowBlock>) -> Result<()> {
        let columns: Vec<&[u32]> = (0..rows.width()).map(|at| rows.column(at)).collect();
        self.batch(&columns, rows.rows())
    }
}

/// Makes one sink for each worker, so that no lock is taken while rows flow, and combines them.
pub trait ParallelSink: Sync {
    /// One worker's part.
    type Local: Sink;

    /// Creates a part for a worker.
    fn local(&self) -> Self::Local;

    /// Merges the part of a worker that ended without error.
    ///
    /// # Errors
    /// Any failure that makes the result incomplete.
    fn merge(&self, local: Self::Local) -> Result<()>;
}

/// A [`ParallelSink`] whose type the driver does not need to know.
pub(crate) trait SinkFactory: Sync {
    fn worker<'s>(&'s self) -> Box<dyn WorkerSink + 's>;
}

/// One worker's sink.
pub(crate) trait WorkerSink: Sink {
    /// Merges the worker's rows into the query's sink.
    fn done(self: Box<Self>) -> Result<()>;
}

struct LocalSink<'s, P: ParallelSink> {
    whole: &'s P,
    local: P::Local,
}

impl<P: ParallelSink> Sink for LocalSink<'_, P> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.local.batch(columns, rows)
    }
}

impl<P: ParallelSink> WorkerSink for LocalSink<'_, P> {
    fn done(self: Box<Self>) -> Result<()> {
        self.whole.merge(self.local)
    }
}

impl<P: ParallelSink> SinkFactory for P {
    fn worker<'s>(&'s self) -> Box<dyn WorkerSink + 's> {
        Box::new(LocalSink {
            whole: self,
            local: self.local(),
        })
    }
}

/// One consumer that receives the batches of all workers, one batch at a time, for writers of a stream. Batches of some
/// thousand rows keep the lock cheap compared with the writing.
pub struct Streaming<'s, S: Sink + ?Sized> {
    sink: Mutex<&'s mut S>,
    options: &'s ExecOptions,
}

impl<'s, S: Sink + ?Sized> Streaming<'s, S> {
    /// Wraps a sink.
    pub fn new(sink: &'s mut S, options: &'s ExecOptions) -> Self {
        Self {
            sink: Mutex::new(sink),
            options,
        }
    }
}

impl<S: Sink + ?Sized> SinkFactory for Streaming<'_, S> {
    fn worker<'s>(&'s self) -> Box<dyn WorkerSink + 's> {
        Box::new(SharedSink { shared: self })
    }
}

struct SharedSink<'t, 's, S: Sink + ?Sized> {
    shared: &'t Streaming<'s, S>,
}

impl<S: Sink + ?Sized> Sink for SharedSink<'_, '_, S> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let mut sink = self.shared.options.lock(&self.shared.sink)?;
        sink.batch(columns, rows)
    }
}

impl<S: Sink + ?Sized> WorkerSink for SharedSink<'_, '_, S> {
    fn done(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Reads every binding and folds it into a checksum that does not depend on the order of rows, so that engines and
/// thread counts can be compared without storing results.
///
/// A row's hash is a multiply-and-carry chain over its columns, 64 bits wide; the checksum is the wrapping sum of all
/// rows' hashes. It depends on ids, so it is comparable only within one store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChecksumSink {
    /// Rows seen.
    pub rows: u64,
    /// Sum of the rows' hashes.
    pub checksum: u64,
}

/// Rows hashed together: their hashes stay in the first-level cache.
const LANES: usize = 256;

/// Odd 32-bit multiplier of the row hash (from xxHash's primes).
const MULTIPLIER: u64 = 0x85EB_CA77;

impl ChecksumSink {
    /// Hash of one row: the definition that the vectorised loop follows.
    #[must_use]
    pub fn row_hash(row: &[u32]) -> u64 {
        row.iter().fold(0, |h, &v| mix(h, v)) ^ row.len() as u64
    }
}

#[inline(always)]
fn mix(h: u64, v: u32) -> u64 {
    let t = h ^ u64::from(v.wrapping_add(0x9E37_79B9));
    (t & 0xFFFF_FFFF) * MULTIPLIER + (t >> 32)
}

#[inline(always)]
fn fold(columns: &[&[u32]], from: usize, to: usize) -> u64 {
    let mut hashes = [0u64; LANES];
    let hashes = &mut hashes[..to - from];
    for column in columns {
        let part = &column[from..to];
        for (h, &v) in hashes.iter_mut().zip(part) {
            *h = mix(*h, v);
        }
    }
    let width = columns.len() as u64;
    hashes
        .iter()
        .fold(0u64, |sum, &h| sum.wrapping_add(h ^ width))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fold_all_avx2(columns: &[&[u32]], rows: usize) -> u64 {
    fold_all(columns, rows)
}

#[inline(always)]
fn fold_all(columns: &[&[u32]], rows: usize) -> u64 {
    let mut sum = 0u64;
    let mut at = 0;
    while at < rows {
        let to = rows.min(at + LANES);
        sum = sum.wrapping_add(fold(columns, at, to));
        at = to;
    }
    sum
}

impl Sink for ChecksumSink {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.rows += rows as u64;
        #[cfg(target_arch = "x86_64")]
        if crate::processor::has_avx2() {
            // SAFETY: the processor has AVX2, as tested just before.
            let sum = unsafe { fold_all_avx2(columns, rows) };
            self.checksum = self.checksum.wrapping_add(sum);
            return Ok(());
        }
        self.checksum = self.checksum.wrapping_add(fold_all(columns, rows));
        Ok(())
    }
}

/// A sink whose parts are added up.
#[derive(Debug, Default)]
pub struct Summed<S> {
    whole: Mutex<S>,
}

impl<S> Summed<S> {
    /// The sum of the parts that were handed back.
    pub fn into_inner(self) -> S {
        self.whole
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParallelSink for Summed<ChecksumSink> {
    type Local = ChecksumSink;

    fn local(&self) -> ChecksumSink {
        ChecksumSink::default()
    }

    fn merge(&self, local: ChecksumSink) -> Result<()> {
        let mut whole = sync::lock(&self.whole);
        whole.rows += local.rows;
        whole.checksum = whole.checksum.wrapping_add(local.checksum);
        Ok(())
    }
}

/// Counts rows; reads nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountSink {
    /// Number of rows.
    pub rows: u64,
}

impl Sink for CountSink {
    fn batch(&mut self, _: &[&[u32]], rows: usize) -> Result<()> {
        self.rows += rows as u64;
        Ok(())
    }
}

/// Stores all rows, for small results and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectSink {
    /// Columns a row.
    pub width: usize,
    /// Number of rows (also without columns).
    pub rows: usize,
    /// `width` ids per row; [`NO_VERTEX`] is unbound.
    pub ids: Vec<u32>,
}

impl CollectSink {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.rows).map(|r| &self.ids[r * self.width..(r + 1) * self.width])
    }
}

impl Sink for CollectSink {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.width = columns.len();
        self.rows += rows;
        let at = self.ids.len();
        self.ids.resize(at + rows * self.width, NO_VERTEX);
        for (c, column) in columns.iter().enumerate() {
            for (row, &v) in self.ids[at..].chunks_exact_mut(self.width).zip(*column) {
                row[c] = v;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_reads_every_cell_and_forgets_the_order() {
        let a: Vec<u32> = (0..1000)
            .map(|i: u32| i.wrapping_mul(2_654_435_761))
            .collect();
        let b: Vec<u32> = (0..1000).collect();
        let of = |a: &[u32], b: &[u32]| {
            let mut s = ChecksumSink::default();
            s.batch(&[a, b], a.len()).unwrap();
            s
        };
        let whole = of(&a, &b);
        let direct = a.iter().zip(&b).fold(0u64, |s, (&x, &y)| {
            s.wrapping_add(ChecksumSink::row_hash(&[x, y]))
        });
        assert_eq!(whole.checksum, direct);
        let back = |v: &[u32]| v.iter().rev().copied().collect::<Vec<_>>();
        assert_eq!(of(&back(&a), &back(&b)), whole);
        // Cells that change places between rows or columns change the sum.
        assert_ne!(of(&a, &back(&b)), whole);
        assert_ne!(of(&b, &a), whole);
        for i in [0, 500, 999] {
            let mut c = b.clone();
            c[i] ^= 1;
            assert_ne!(of(&a, &c), whole);
        }
    }
}
