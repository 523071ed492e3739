//! First phase: every worker interns the terms that it receives and spills its quads as run-local ids.

use crate::threads;
use jindou_dictionary::{Interner, LOCAL_DEFAULT_GRAPH, TermRun};
use jindou_model::prefixes::{DeclaredPrefixes, PrefixPlace};
use jindou_model::spill::{Spill, SpillDir, SpillReader, SpillWriter};
use jindou_model::sync::lock;
use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource, Resource, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The quads of one run: all quads that a worker received between two closings of its interner.
#[derive(Debug)]
pub(super) struct RunQuads {
    /// Run-local id → index in the run's sorted terms.
    pub position: Vec<u32>,
    /// Default graph: `[s, p, o]`, 12 bytes each.
    pub default: Spill,
    /// Named graphs: `[s, p, o, g]`, 16 bytes each.
    pub named: Spill,
    /// Entries `(run-local predicate, number of its quads in the default graph, in named graphs)`, ascending.
    pub counts: Vec<(u32, u64, u64)>,
}

/// Result of reading: runs of terms, and at the same indexes the quads of each run.
#[derive(Default)]
pub(super) struct Read {
    pub terms: Vec<TermRun>,
    pub quads: Vec<RunQuads>,
    pub total: u64,
    pub prefixes: DeclaredPrefixes,
}

struct LoadReadContext<'a> {
    spill: &'a SpillDir,
    failed: &'a AtomicBool,
    read: &'a Mutex<Read>,
}

struct QuadReceiver<'a> {
    shared: LoadReadContext<'a>,
    interner: Interner,
    local: Vec<[u32; 4]>,
    triples: Vec<[u32; 3]>,
    default: SpillWriter,
    named: SpillWriter,
    /// Number of quads by run-local predicate: default graph, named graphs.
    counts: Vec<[u64; 2]>,
}

impl QuadReceiver<'_> {
    fn close(&mut self) -> Result<()> {
        if self.interner.is_empty() {
            return Ok(());
        }
        let spill = self.shared.spill;
        let closed = self.interner.close(spill)?;
        let default = std::mem::replace(&mut self.default, spill.writer()).finish()?;
        let named = std::mem::replace(&mut self.named, spill.writer()).finish()?;
        let mut total = 0;
        let mut counts = Vec::new();
        for (p, c) in self.counts.drain(..).enumerate() {
            if c != [0, 0] {
                total += c[0] + c[1];
                counts.push((p as u32, c[0], c[1]));
            }
        }
        let mut read = lock(self.shared.read);
        read.total += total;
        read.terms.push(closed.run);
        read.quads.push(RunQuads {
            position: closed.position,
            default,
            named,
            counts,
        });
        Ok(())
    }

    fn take(&mut self) -> Result<()> {
        self.triples.clear();
        for q in &self.local {
            let p = q[1] as usize;
            if p >= self.counts.len() {
                self.counts.resize(p + 1, [0, 0]);
            }
            let named = q[3] != LOCAL_DEFAULT_GRAPH;
            self.counts[p][usize::from(named)] += 1;
            if named {
                self.named.append(bytemuck::bytes_of(q))?;
            } else {
                self.triples.push([q[0], q[1], q[2]]);
            }
        }
        self.default.append(bytemuck::cast_slice(&self.triples))
    }
}

impl QuadSink for QuadReceiver<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        if self.shared.failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.local.clear();
        if !self.interner.intern(batch, &mut self.local) {
            self.close()?;
            self.local.clear();
            if !self.interner.intern(batch, &mut self.local) {
                return Err(Error::limit(
                    Resource::Memory,
                    "one batch of the input holds more text than the memory allows",
                ));
            }
        }
        self.take()
    }

    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        lock(self.shared.read).prefixes.declare(place, name, iri);
        Ok(())
    }
}

/// Returns the first error that is not a cancellation, since one worker's error cancels the others.
fn first_error(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut cancelled = None;
    for r in results {
        match r {
            Ok(()) => {}
            Err(e @ Error::Cancelled) => cancelled = Some(e),
            Err(e) => return Err(e),
        }
    }
    cancelled.map_or(Ok(()), Err)
}

/// Runs `work(worker)` on `threads` threads.
pub(super) fn on_threads(threads: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    first_error(threads::on_threads(threads, work))
}

/// Reads a source to its end. `interner_bytes` limits the memory of each worker's table of terms.
pub(super) fn read(
    source: &dyn QuadSource,
    threads: usize,
    interner_bytes: usize,
    spill: &SpillDir,
    progress: &Progress,
) -> Result<Read> {
    let failed = AtomicBool::new(false);
    let out = Mutex::new(Read::default());
    on_threads(threads, |worker| {
        let mut sink = QuadReceiver {
            shared: LoadReadContext {
                spill,
                failed: &failed,
                read: &out,
            },
            interner: Interner::new(interner_bytes),
            local: Vec::new(),
            triples: Vec::new(),
            default: spill.writer(),
            named: spill.writer(),
            counts: Vec::new(),
        };
        let result = source
            .run(worker, threads, &mut sink, progress)
            .and_then(|()| sink.close());
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        result
    })?;
    Ok(out
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Calls `f` with each record of `N` 32-bit words, in order.
pub(super) fn for_each_record<const N: usize>(
    mut reader: SpillReader,
    mut f: impl FnMut([u32; N]) -> Result<()>,
) -> Result<()> {
    let decode = |b: &[u8]| {
        let mut r = [0u32; N];
        for (w, c) in r.iter_mut().zip(b.chunks_exact(4)) {
            *w = u32::from_ne_bytes([c[0], c[1], c[2], c[3]]);
        }
        r
    };
    loop {
        let here = reader.fill()?;
        if here.is_empty() {
            return Ok(());
        }
        let whole = here.len() / (4 * N) * (4 * N);
        if whole == 0 {
            // The record spans two chunks.
            let mut bytes = [0u32; N];
            reader.read_exact(bytemuck::cast_slice_mut(&mut bytes))?;
            f(bytes)?;
            continue;
        }
        for c in here[..whole].chunks_exact(4 * N) {
            f(decode(c))?;
        }
        reader.consume(whole);
    }
}
