//! Third phase: quads are moved from their runs to their predicates, as pairs of lexicographic indexes.
//!
//! The number of quads of each predicate in a run is known from reading, so every (predicate, run) pair has an exact
//! range of the output, and threads never write to the same one.

use super::memory;
use super::read::{RunQuads, for_each_record, on_threads};
use super::sort::SortWords;
use jindou_model::memory::huge_zeroed;
use jindou_model::sync::lock;
use jindou_model::{Error, Invariant, Result, invariant};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Total size in bytes of one thread's write buffers when edges go to a file.
const BUFFERS: usize = 64 << 20;
/// Bytes read from a file at once.
const CHUNK: usize = 1 << 20;

/// Edges grouped by predicate, in memory or in an unlinked file.
#[derive(Debug)]
pub(super) struct PartitionedEdges<T> {
    counts: Vec<u64>,
    data: EdgeData<T>,
}

#[derive(Debug)]
enum EdgeData<T> {
    Memory(Vec<Mutex<HeldEdges<T>>>),
    File {
        file: File,
        /// Position of each predicate's first edge in the file.
        starts: Vec<u64>,
        path: PathBuf,
    },
}

impl<T> EdgeData<T> {
    fn in_file(file: File, starts: Vec<u64>, folder: &Path) -> Self {
        Self::File {
            file,
            starts,
            path: folder.to_owned(),
        }
    }
}

/// The edges of a predicate, and the number of callers that have taken them.
#[derive(Debug)]
struct HeldEdges<T> {
    list: Arc<Vec<T>>,
    taken: usize,
}

impl<T> HeldEdges<T> {
    fn all(lists: Vec<Vec<T>>) -> Vec<Mutex<Self>> {
        let held = |list| Self {
            list: Arc::new(list),
            taken: 0,
        };
        lists.into_iter().map(held).map(Mutex::new).collect()
    }
}

impl<T: SortWords> PartitionedEdges<T> {
    /// Number of edges of a predicate, counting repeated ones.
    pub fn count(&self, p: usize) -> u64 {
        self.counts[p]
    }

    /// Number of edges of all predicates.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// True if the edges are in memory.
    pub fn in_memory(&self) -> bool {
        matches!(self.data, EdgeData::Memory(_))
    }

    /// Calls `f` with the edges of a predicate, in several slices, in the same order at every call.
    pub fn for_each(&self, p: usize, mut f: impl FnMut(&[T])) -> Result<()> {
        match &self.data {
            EdgeData::Memory(lists) => {
                let list = Arc::clone(&lock(&lists[p]).list);
                f(&list);
            }
            EdgeData::File { file, starts, path } => {
                let size = size_of::<T>();
                let mut buffer = vec![T::default(); (CHUNK / size).min(self.counts[p] as usize)];
                let mut done = 0;
                while done < self.counts[p] {
                    let n = ((self.counts[p] - done) as usize).min(buffer.len());
                    file.read_exact_at(
                        bytemuck::cast_slice_mut(&mut buffer[..n]),
                        (starts[p] + done) * size as u64,
                    )
                    .map_err(|e| Error::io(path, e))?;
                    f(&buffer[..n]);
                    done += n as u64;
                }
            }
        }
        Ok(())
    }

    /// Returns the edges of a predicate. If they are in memory, this must be called `times` times in total; the last
    /// call returns them without a copy.
    pub fn take(&self, p: usize, times: usize) -> Result<Vec<T>> {
        match &self.data {
            EdgeData::Memory(lists) => {
                let mut held = lock(&lists[p]);
                // Counted under the lock: a thread that was told earlier that it is not the last may come after the
                // last.
                held.taken += 1;
                let list = if held.taken >= times {
                    std::mem::take(&mut held.list)
                } else {
                    Arc::clone(&held.list)
                };
                drop(held);
                Ok(Arc::try_unwrap(list).unwrap_or_else(|shared| shared.to_vec()))
            }
            EdgeData::File { .. } => {
                let mut out = Vec::with_capacity(self.counts[p] as usize);
                self.for_each(p, |part| out.extend_from_slice(part))?;
                Ok(out)
            }
        }
    }
}

/// Destination of the edges of one predicate in one run.
trait EdgePut<T> {
    fn put(&mut self, value: T) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
}

struct MemoryPut<'a, T>(std::slice::IterMut<'a, T>);

impl<T> EdgePut<T> for MemoryPut<'_, T> {
    #[inline(always)]
    fn put(&mut self, value: T) -> Result<()> {
        *self.0.next().invariant(COUNTED) = value;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        invariant!(self.0.len() == 0, "{COUNTED}");
        Ok(())
    }
}

const COUNTED: &str = "a run holds the quads that were counted";

struct FilePut<'a, T> {
    file: &'a File,
    path: &'a Path,
    at: u64,
    left: u64,
    buffer: Vec<T>,
    room: usize,
}

impl<T: SortWords> FilePut<'_, T> {
    fn flush(&mut self) -> Result<()> {
        let n = self.buffer.len() as u64;
        self.left = self.left.checked_sub(n).invariant(COUNTED);
        self.file
            .write_all_at(
                bytemuck::cast_slice(&self.buffer),
                self.at * size_of::<T>() as u64,
            )
            .map_err(|e| Error::io(self.path, e))?;
        self.at += n;
        self.buffer.clear();
        Ok(())
    }
}

impl<T: SortWords> EdgePut<T> for FilePut<'_, T> {
    #[inline]
    fn put(&mut self, value: T) -> Result<()> {
        self.buffer.push(value);
        if self.buffer.len() >= self.room {
            self.flush()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        invariant!(self.left == 0, "{COUNTED}");
        Ok(())
    }
}

/// A run whose quads are being moved to the predicates.
struct PartitionJob<D, N> {
    quads: RunQuads,
    map: Vec<u32>,
    /// Index in `default` and `named`, by run-local predicate.
    slot: Vec<u32>,
    default: Vec<D>,
    named: Vec<N>,
}

impl<D: EdgePut<u64>, N: EdgePut<[u32; 3]>> PartitionJob<D, N> {
    fn run(mut self) -> Result<()> {
        // Converts `position` from run-local id → index in the run to run-local id → lexicographic index.
        for v in &mut self.quads.position {
            *v = self.map[*v as usize];
        }
        self.map = Vec::new();
        let lex = &self.quads.position;
        for_each_record(self.quads.default.into_reader(), |[s, p, o]: [u32; 3]| {
            let pair = u64::from(lex[s as usize]) << 32 | u64::from(lex[o as usize]);
            self.default[self.slot[p as usize] as usize].put(pair)
        })?;
        for_each_record(self.quads.named.into_reader(), |[s, p, o, g]: [u32; 4]| {
            let edge = [lex[s as usize], lex[o as usize], lex[g as usize]];
            self.named[self.slot[p as usize] as usize].put(edge)
        })?;
        self.default.iter_mut().try_for_each(EdgePut::finish)?;
        self.named.iter_mut().try_for_each(EdgePut::finish)
    }
}

/// The distinct predicates of all runs as lexicographic indexes, ascending; the position of each is its dense id.
pub(super) fn predicates(runs: &[RunQuads], maps: &[Vec<u32>]) -> Vec<u32> {
    let mut out: Vec<u32> = runs
        .iter()
        .zip(maps)
        .flat_map(|(r, map)| {
            r.counts
                .iter()
                .map(|c| map[r.position[c.0 as usize] as usize])
        })
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The edges of the default graph and those of named graphs, by dense predicate id.
pub(super) struct Partitioned {
    pub default: PartitionedEdges<u64>,
    pub named: PartitionedEdges<[u32; 3]>,
}

impl Partitioned {
    /// Number of predicates.
    pub fn predicates(&self) -> usize {
        self.default.counts.len()
    }

    /// Number of bytes that the edges take in memory; 0 if they are in a file.
    pub fn held_bytes(&self) -> u64 {
        match self.default.in_memory() {
            true => 8 * self.default.total() + 12 * self.named.total(),
            false => 0,
        }
    }
}

/// Memory and folder for edges.
pub(super) struct EdgeMemory<'a> {
    /// Number of bytes of edges that fit in memory; more edges go to a file.
    pub memory: u64,
    /// Folder for the file.
    pub folder: &'a Path,
}

/// Moves all quads to their predicates.
pub(super) fn partition(
    runs: Vec<RunQuads>,
    maps: Vec<Vec<u32>>,
    predicates: &[u32],
    place: &EdgeMemory<'_>,
    threads: usize,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Partitioned> {
    let mut counts = PredicateCounts::none(predicates.len());
    let runs = runs
        .into_iter()
        .zip(maps)
        .map(|(quads, map)| CountedRun::new(quads, map, predicates, &mut counts))
        .collect();
    let bytes = 8 * counts.default.iter().sum::<u64>() + 12 * counts.named.iter().sum::<u64>();
    if bytes <= place.memory {
        return partition_in_memory(runs, counts, threads, tick);
    }
    memory::need_room(place.folder, bytes, "sorting edges through a file")?;
    partition_in_files(runs, counts, place.folder, threads, tick)
}

/// Number of edges of each predicate in the default graph and in named graphs.
struct PredicateCounts {
    default: Vec<u64>,
    named: Vec<u64>,
}

impl PredicateCounts {
    fn none(predicates: usize) -> Self {
        Self {
            default: vec![0; predicates],
            named: vec![0; predicates],
        }
    }
}

/// A run whose quads are counted by predicate.
struct CountedRun {
    quads: RunQuads,
    map: Vec<u32>,
    /// (dense predicate, number of quads in the default graph, in named graphs).
    share: Vec<(usize, u64, u64)>,
    /// Index in `share`, by run-local predicate.
    slot: Vec<u32>,
}

impl CountedRun {
    /// Adds the run's quads to `counts`.
    fn new(
        quads: RunQuads,
        map: Vec<u32>,
        predicates: &[u32],
        counts: &mut PredicateCounts,
    ) -> Self {
        let by_local = &quads.counts;
        let mut slot = vec![0; by_local.last().map_or(0, |c| c.0 as usize + 1)];
        let mut share = Vec::with_capacity(by_local.len());
        for (i, &(local, default, named)) in by_local.iter().enumerate() {
            slot[local as usize] = i as u32;
            let lex = map[quads.position[local as usize] as usize];
            let p = predicates.partition_point(|&x| x < lex);
            counts.default[p] += default;
            counts.named[p] += named;
            share.push((p, default, named));
        }
        Self {
            quads,
            map,
            share,
            slot,
        }
    }

    /// Number of quads in the default graph, by dense predicate.
    fn default(&self) -> impl Iterator<Item = (usize, u64)> {
        self.share.iter().map(|s| (s.0, s.1))
    }

    /// Number of quads in named graphs, by dense predicate.
    fn named(&self) -> impl Iterator<Item = (usize, u64)> {
        self.share.iter().map(|s| (s.0, s.2))
    }

    /// The job that moves the run's quads to these destinations, which are in the order of `share`.
    fn job<D, N>(self, default: Vec<D>, named: Vec<N>) -> PartitionJob<D, N> {
        PartitionJob {
            quads: self.quads,
            map: self.map,
            slot: self.slot,
            default,
            named,
        }
    }
}

fn partition_in_memory(
    runs: Vec<CountedRun>,
    counts: PredicateCounts,
    threads: usize,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Partitioned> {
    let PredicateCounts { default, named } = counts;
    let mut d: Vec<Vec<u64>> = default.iter().map(|&c| huge_zeroed(c as usize)).collect();
    let mut g: Vec<Vec<[u32; 3]>> = named.iter().map(|&c| huge_zeroed(c as usize)).collect();
    let mut d_rest: Vec<&mut [u64]> = d.iter_mut().map(Vec::as_mut_slice).collect();
    let mut g_rest: Vec<&mut [[u32; 3]]> = g.iter_mut().map(Vec::as_mut_slice).collect();
    let job = |run: CountedRun| {
        let (default, named) = (
            cut(&mut d_rest, run.default()),
            cut(&mut g_rest, run.named()),
        );
        run.job(default, named)
    };
    run_all(runs.into_iter().map(job).collect(), threads, tick)?;
    Ok(Partitioned {
        default: PartitionedEdges {
            counts: default,
            data: EdgeData::Memory(HeldEdges::all(d)),
        },
        named: PartitionedEdges {
            counts: named,
            data: EdgeData::Memory(HeldEdges::all(g)),
        },
    })
}

fn partition_in_files(
    runs: Vec<CountedRun>,
    counts: PredicateCounts,
    folder: &Path,
    threads: usize,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Partitioned> {
    let open = || tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, e));
    let (d_file, g_file) = (open()?, open()?);
    let (d_starts, g_starts) = (starts(&counts.default), starts(&counts.named));
    let (mut d_at, mut g_at) = (d_starts.clone(), g_starts.clone());
    let job = |run: CountedRun| {
        let buffer = BUFFERS / run.share.len().max(1) / 24;
        let default = file_cut(&d_file, folder, &mut d_at, buffer, run.default());
        let named = file_cut(&g_file, folder, &mut g_at, buffer, run.named());
        run.job(default, named)
    };
    run_all(runs.into_iter().map(job).collect(), threads, tick)?;
    Ok(Partitioned {
        default: PartitionedEdges {
            counts: counts.default,
            data: EdgeData::in_file(d_file, d_starts, folder),
        },
        named: PartitionedEdges {
            counts: counts.named,
            data: EdgeData::in_file(g_file, g_starts, folder),
        },
    })
}

fn starts(counts: &[u64]) -> Vec<u64> {
    counts
        .iter()
        .scan(0, |sum, &c| Some(std::mem::replace(sum, *sum + c)))
        .collect()
}

/// Takes a run's ranges from the front of the predicates' remaining lists.
fn cut<'a, T>(
    rest: &mut [&'a mut [T]],
    share: impl Iterator<Item = (usize, u64)>,
) -> Vec<MemoryPut<'a, T>> {
    share
        .map(|(p, n)| {
            let (mine, others) = std::mem::take(&mut rest[p]).split_at_mut(n as usize);
            rest[p] = others;
            MemoryPut(mine.iter_mut())
        })
        .collect()
}

fn file_cut<'a, T: SortWords>(
    file: &'a File,
    path: &'a Path,
    at: &mut [u64],
    buffer: usize,
    share: impl Iterator<Item = (usize, u64)>,
) -> Vec<FilePut<'a, T>> {
    share
        .map(|(p, n)| {
            let start = at[p];
            at[p] += n;
            FilePut {
                file,
                path,
                at: start,
                left: n,
                buffer: Vec::new(),
                room: buffer.clamp(16, 1 << 16).min(n.max(1) as usize),
            }
        })
        .collect()
}

fn run_all<D, N>(
    jobs: Vec<PartitionJob<D, N>>,
    threads: usize,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<()>
where
    D: EdgePut<u64> + Send,
    N: EdgePut<[u32; 3]> + Send,
{
    let all = jobs.len().max(1) as u64;
    // Jobs with the most quads come first; so far they are in the order in which the runs were closed.
    let mut jobs = jobs;
    jobs.sort_by_key(|j| j.quads.default.len() + j.quads.named.len());
    let queue = Mutex::new(jobs);
    on_threads(threads, |_| {
        loop {
            let (job, left) = {
                let mut q = lock(&queue);
                (q.pop(), q.len() as u64)
            };
            let Some(job) = job else { return Ok(()) };
            tick(1000 * (all - 1 - left.min(all - 1)) / all);
            job.run()?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_last_finds_the_edges() {
        let edges = || PartitionedEdges {
            counts: vec![3],
            data: EdgeData::Memory(HeldEdges::all(vec![vec![1u64, 2, 3]])),
        };
        let once = edges();
        assert_eq!(once.take(0, 1).unwrap(), [1, 2, 3]);
        let twice = edges();
        // Two threads take the edges at the same time, many times: in either order, both must get them.
        for _ in 0..2000 {
            let twice = edges();
            std::thread::scope(|s| {
                let half = || twice.take(0, 2).unwrap();
                let (a, b) = (s.spawn(half), s.spawn(half));
                assert_eq!(a.join().unwrap(), [1, 2, 3]);
                assert_eq!(b.join().unwrap(), [1, 2, 3]);
            });
        }
        twice.take(0, 2).unwrap();
        twice.take(0, 2).unwrap();
        assert!(twice.take(0, 2).unwrap().is_empty(), "nothing is kept");
    }
}
