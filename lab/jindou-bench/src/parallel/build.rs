//! Partitions as stores: each is loaded in the usual way, stays in the work folder, and is reused by later runs.

use super::partition::{Cut, Graph};
use crate::args::parallel::Partition;
use jindou::{
    Database, Error, LoadOptions, Progress, QuadBatch, QuadSink, QuadSource, Result, Span, VertexId,
};
use jindou_model::PredicateId;
use jindou_model::term::push_iri;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Predicate and object of the triples that mark the vertices which a part owns.
pub const OWNED: &str = "urn:jindou:parallel:owned";

/// A partitioned graph on disk.
pub struct Parts {
    pub how: Partition,
    pub workers: u32,
    pub hops: u32,
    pub dir: PathBuf,
    /// Predicates whose edges are stored only in the part of their subject; with 0 hops, all.
    pub one_way: BTreeSet<String>,
    /// Triples of each part, including replicas.
    pub triples: Vec<u64>,
    /// Triples of the whole graph.
    pub whole: u64,
    /// Share of the edges between entities whose ends have different owners; one-way predicates do not count.
    pub cut: f64,
    /// Seconds to assign the owners, and to load all parts.
    pub seconds: [f64; 2],
    /// True if an earlier run made the partition; the times are those of that run.
    pub reused: bool,
}

impl Parts {
    /// Paths of each worker's store and of its file of ids.
    pub fn stores(&self) -> impl Iterator<Item = (String, String)> {
        (0..self.workers).map(|w| {
            let text = |p: PathBuf| p.to_string_lossy().into_owned();
            (text(store(&self.dir, w)), text(ids(&self.dir, w)))
        })
    }

    /// Triples of all parts together, divided by those of the graph.
    pub fn replication(&self) -> f64 {
        self.triples.iter().sum::<u64>() as f64 / self.whole.max(1) as f64
    }

    /// True if the parts mark the vertices that they own, which is necessary if they overlap.
    pub fn is_marked(&self) -> bool {
        self.hops > 0
    }
}

fn store(dir: &Path, worker: u32) -> PathBuf {
    dir.join(format!("part-{worker}"))
}

fn ids(dir: &Path, worker: u32) -> PathBuf {
    dir.join(format!("part-{worker}.ids"))
}

/// Finds the partition in the folder `work`, or makes it.
pub fn parts(db: &Database, work: &Path, how: Partition, workers: u32, hops: u32) -> Result<Parts> {
    let snapshot = db.snapshot();
    let epoch = snapshot.base().epoch();
    let dir = work.join(format!("{epoch:016x}-{how}-{workers}-{hops}"));
    let about = dir.join("partition.json");
    if let Ok(text) = std::fs::read_to_string(&about)
        && let Some(parts) = read(&text, &dir, how, workers, hops)
    {
        return Ok(parts);
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
    }
    std::fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
    let graph = Graph::new(&snapshot)?;
    let start = Instant::now();
    let cut = Cut::new(&graph, how, workers, hops)?;
    let reach = cut.reach(&graph);
    let decided = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut triples = vec![];
    for worker in 0..workers {
        let part = PartitionSource {
            graph: &graph,
            cut: &cut,
            reach: &reach,
            worker,
        };
        let place = store(&dir, worker);
        Database::load(&place, &part, &LoadOptions::default(), &Progress::default())?;
        triples.push(part.triples());
        write_ids(&graph, &place, &ids(&dir, worker))?;
    }
    let parts = Parts {
        how,
        workers,
        hops,
        one_way: (0..graph.predicates())
            .filter(|&p| cut.one_way[p as usize])
            .map(|p| graph.predicate_iri(p))
            .collect(),
        triples,
        whole: graph.triples(),
        cut: cut.cut as f64 / cut.between.max(1) as f64,
        seconds: [decided, start.elapsed().as_secs_f64()],
        reused: false,
        dir,
    };
    let text = json!({
        "one_way": parts.one_way, "triples": parts.triples, "whole": parts.whole, "cut": parts.cut, "seconds": parts.seconds,
    });
    // Written last, so that a partition with this file is complete.
    std::fs::write(&about, format!("{text:#}\n")).map_err(|e| Error::io(&about, e))?;
    Ok(parts)
}

fn read(text: &str, dir: &Path, how: Partition, workers: u32, hops: u32) -> Option<Parts> {
    let v: Value = serde_json::from_str(text).ok()?;
    let list = |name: &str| v[name].as_array();
    Some(Parts {
        how,
        workers,
        hops,
        dir: dir.to_owned(),
        one_way: list("one_way")?
            .iter()
            .filter_map(|p| Some(p.as_str()?.to_owned()))
            .collect(),
        triples: list("triples")?.iter().filter_map(Value::as_u64).collect(),
        whole: v["whole"].as_u64()?,
        cut: v["cut"].as_f64()?,
        seconds: [v["seconds"][0].as_f64()?, v["seconds"][1].as_f64()?],
        reused: true,
    })
}

/// Writes the file that maps ids of a part's store to ids of the whole store: 4 bytes each, 0 for terms that only the
/// part has.
fn write_ids(graph: &Graph<'_>, part: &Path, to: &Path) -> Result<()> {
    let own = Database::open(part)?.snapshot();
    let mut out = vec![0; 4];
    let mut term = vec![];
    for v in 1..=own.vertices() {
        term.clear();
        own.term(VertexId(v), &mut term);
        let id = graph.snapshot.lookup(&term).unwrap_or_default();
        out.extend_from_slice(&id.0.to_le_bytes());
    }
    std::fs::write(to, out).map_err(|e| Error::io(to, e))
}

/// The triples of one part as a source for a load.
struct PartitionSource<'a> {
    graph: &'a Graph<'a>,
    cut: &'a Cut,
    reach: &'a [u64],
    worker: u32,
}

const BATCH_QUADS: usize = 1 << 14;

impl PartitionSource<'_> {
    fn edges(&self, predicate: u32, mut f: impl FnMut(u32, u32)) {
        let bit = 1u64 << self.worker;
        self.graph.edges(predicate, |s, o| {
            if self.cut.holders(self.reach, predicate, s, o) & bit != 0 {
                f(s, o);
            }
        });
    }

    fn triples(&self) -> u64 {
        let mut n = 0;
        for p in 0..self.graph.predicates() {
            self.edges(p, |_, _| n += 1);
        }
        n
    }
}

/// Collects triples into batches for the sink.
struct Out<'a> {
    batch: QuadBatch,
    sink: &'a mut dyn QuadSink,
    progress: &'a Progress,
    outcome: Result<()>,
}

impl Out<'_> {
    fn span(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        let start = self.batch.bytes.len();
        write(&mut self.batch.bytes);
        Span {
            start: start as u32,
            len: (self.batch.bytes.len() - start) as u32,
        }
    }

    /// Adds a triple, and passes the batch to the sink when it is full. After an error, batches are dropped.
    fn triple(&mut self, [s, p, o]: [Span; 3]) {
        self.batch.quads.push([s, p, o, Span::default()]);
        if self.batch.quads.len() >= BATCH_QUADS {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = self.sink.batch(&self.batch);
        }
        self.progress.add(0, self.batch.quads.len() as u64);
        self.batch.clear();
    }
}

impl QuadSource for PartitionSource<'_> {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut out = Out {
            batch: QuadBatch::default(),
            sink,
            progress,
            outcome: Ok(()),
        };
        for p in (0..self.graph.predicates()).filter(|&p| p as usize % workers == worker) {
            let predicate = self.graph.snapshot.vertex_of(PredicateId(p)).0;
            self.edges(p, |s, o| {
                let spans = [s, predicate, o].map(|v| out.span(|b| self.graph.term(v, b)));
                out.triple(spans);
            });
        }
        if worker == 0 && self.cut.hops > 0 {
            for (v, &owner) in self.cut.owners.iter().enumerate() {
                if u32::from(owner) == self.worker {
                    let vertex = out.span(|b| self.graph.term(v as u32, b));
                    let mark = out.span(|b| push_iri(OWNED, b));
                    out.triple([vertex, mark, mark]);
                }
            }
        }
        out.hand_on();
        out.outcome
    }
}
