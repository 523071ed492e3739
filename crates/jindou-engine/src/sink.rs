//! Receivers of result rows: one that all workers share, or one part for each worker.

use crate::executor::RowBlock;
use crate::options::ExecOptions;
use jindou_model::sync;
use jindou_model::{NO_VERTEX, Result};
use std::sync::{Mutex, PoisonError};

/// Receives batches of result rows, from one worker, or from all workers one at a time.
pub trait Sink: Send {
    /// Receives `rows` rows: one slice of ids for each output column, in the plan's order, each `rows` long. Id 0 is
    /// unbound; ids from `FIRST_QUERY_ID` on are in the query's `QueryTerms`. The slices are overwritten after the
    /// call. An error ends the query with that error; `Error::SinkClosed` if the reader no longer reads.
    ///
    /// Called inside the query's scope, if it has one: allocate memory that outlives the query
    /// [outside](jindou_model::scope::outside) of it.
    ///
    /// # Errors
    /// Any failure to receive the rows.
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()>;

    /// As [`Self::batch`], for rows that stay valid until the block is dropped. A sink may keep some blocks, and
    /// process them on other threads.
    ///
    /// # Errors
    /// As [`Self::batch`].
    fn block(&mut self, rows: Box<dyn RowBlock>) -> Result<()> {
        let columns: Vec<&[u32]> = (0..rows.width()).map(|at| rows.column(at)).collect();
        self.batch(&columns, rows.rows())
    }
}

/// Creates a sink for each worker, so that no lock is needed for each batch, and merges their results.
pub trait ParallelSink: Sync {
    /// One worker's sink.
    type Local: Sink;

    /// Creates a worker's sink.
    fn local(&self) -> Self::Local;

    /// Merges the sink of a worker that has ended without an error.
    ///
    /// # Errors
    /// Any failure that makes the result incomplete.
    fn merge(&self, local: Self::Local) -> Result<()>;
}

/// A [`ParallelSink`] without its associated type, so that it can be a trait object.
pub(crate) trait SinkFactory: Sync {
    fn worker<'s>(&'s self) -> Box<dyn WorkerSink + 's>;
}

/// One worker's sink.
pub(crate) trait WorkerSink: Sink {
    /// Called after the worker's last row: merges its rows into the query's sink.
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

/// One sink that gets the batches of all workers, one batch at a time: for writing a stream. With some thousand rows in
/// a batch, locking costs little compared with writing.
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

/// Computes a checksum of all rows that does not depend on their order, so that engines and numbers of threads can be
/// compared without storing results.
///
/// A row's 64-bit hash is a chain of multiplications with carry over its columns; the checksum is the wrapping sum of
/// all hashes. It depends on ids, so it can only be compared within one store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChecksumSink {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the rows' hashes.
    pub checksum: u64,
}

/// Number of rows that are hashed together, so that their hashes stay in the first-level cache.
const LANES: usize = 256;

/// Odd 32-bit multiplier of the row hash (from xxHash's primes).
const MULTIPLIER: u64 = 0x85EB_CA77;

impl ChecksumSink {
    /// The hash of one row. The vectorised loop computes the same.
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

/// A parallel sink whose parts are added up.
#[derive(Debug, Default)]
pub struct Summed<S> {
    whole: Mutex<S>,
}

impl<S> Summed<S> {
    /// The sum of all merged parts.
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

/// Counts rows without reading them.
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

/// Stores all rows; for small results and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectSink {
    /// Number of columns.
    pub width: usize,
    /// Number of rows, also of rows without columns.
    pub rows: usize,
    /// The ids of all rows, `width` for each; [`NO_VERTEX`] for unbound.
    pub ids: Vec<u32>,
}

impl CollectSink {
    /// Each row as a slice of ids.
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
        // Exchanging values between rows or columns changes the sum.
        assert_ne!(of(&a, &back(&b)), whole);
        assert_ne!(of(&b, &a), whole);
        for i in [0, 500, 999] {
            let mut c = b.clone();
            c[i] ^= 1;
            assert_ne!(of(&a, &c), whole);
        }
    }
}
