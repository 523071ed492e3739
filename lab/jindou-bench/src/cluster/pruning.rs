//! `jindou bench cluster pruning`: what a system with one-step pruning and a final join would have sent for the same plans (OSDI '16, §5.2 and
//! table 5), compared with what this one sends with full history.
//!
//! The model keeps the values of each variable where they were found, as ids, each once a shard. Before an exploration from a variable its
//! values go to the shards that have their edges. An exploration keeps the triples whose far end fits what is known of that one variable,
//! and drops values that have no triple; it knows nothing of how values belong together, so in the end all triples go to one server, which
//! joins them. It is counted in favour of the old way: nothing for telling a shard of the values at the far end, nothing for classes, nothing
//! for the join.

use super::counting::{Counting, counted};
use super::load;
use crate::args::cluster::BenchClusterPruning;
use crate::measure::temporary_folder;
use jindou::{
    Database, Error, OpenOptions, PlannedQuery, QueryOptions, Result, Runtime, ShardMode, Sharding,
};
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::Blocks;
use jindou_plan::{
    EdgeList, Exploration, GraphRef, Intervals, Operand, Slot, StartSource, StepKind,
};
use jindou_workloads::queries::lubm::query;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::process::ExitCode;

/// The paper's table 5: milliseconds with one-step pruning (+RDMA), and with full history (+FHP), LUBM-10240 on six machines.
const PAPER: [(&str, f64, f64); 7] = [
    ("L1", 9_705.0, 888.0),
    ("L2", 2_161.0, 1_559.0),
    ("L3", 404.0, 404.0),
    ("L4", 0.79, 0.78),
    ("L5", 0.39, 0.39),
    ("L6", 1.40, 1.37),
    ("L7", 2_041.0, 657.0),
];
/// Bytes of an id.
const ID: u64 = 4;

/// Some ids, one bit each.
#[derive(Clone, Default)]
struct Ids(Vec<u64>);

impl Ids {
    fn insert(&mut self, v: u32) {
        let word = (v / 64) as usize;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (v % 64);
    }

    fn has(&self, v: u32) -> bool {
        let word = self.0.get((v / 64) as usize);
        word.is_some_and(|w| w >> (v % 64) & 1 == 1)
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.0).flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(64 * at + bit)
            })
        })
    }
}

/// The values of a variable.
#[derive(Default)]
struct Values {
    all: Ids,
    /// By shard: those that were found there and not yet sent to their owners.
    found: Vec<Ids>,
}

/// Rows and bytes that would be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OneStep {
    /// Values, to the owners of their edges.
    values: u64,
    /// Triples that are found, and those of them that are sent to be joined.
    triples: u64,
    joined: u64,
}

impl OneStep {
    /// Bytes of values and of both ends of triples.
    fn bytes(&self) -> u64 {
        ID * (self.values + 2 * self.joined)
    }
}

struct Model<'a> {
    graph: &'a dyn Graph,
    blocks: &'a Blocks,
    /// The server that joins.
    home: u32,
    values: FxHashMap<Slot, Values>,
    sum: OneStep,
}

fn wrong(what: &str) -> Error {
    Error::Unsupported(format!("a model of {what}"))
}

fn within(intervals: Option<&Intervals>, v: u32) -> bool {
    intervals.is_none_or(|all| all.iter().any(|[from, to]| (*from..*to).contains(&v)))
}

impl<'a> Model<'a> {
    fn new(graph: &'a dyn Graph, blocks: &'a Blocks) -> Self {
        Self {
            graph,
            blocks,
            home: 0,
            values: FxHashMap::default(),
            sum: OneStep::default(),
        }
    }

    fn owner(&self, v: u32) -> u32 {
        self.blocks.place(v).map_or(self.home, |p| p.shard)
    }

    fn run(mut self, steps: &Exploration) -> Result<OneStep> {
        for step in &steps.steps {
            match &step.kind {
                StepKind::Start {
                    to,
                    source,
                    within: ids,
                } => {
                    let ids = ids.as_ref().map(|i| &i.intervals);
                    self.start(*to, source, ids)?;
                }
                StepKind::Expand {
                    to,
                    lists,
                    within: ids,
                } => {
                    let ids = ids.as_ref().map(|i| &i.intervals);
                    // Those with fewest edges first: later ones keep only what fits.
                    let mut lists: Vec<&EdgeList> = lists.iter().collect();
                    lists.sort_by_key(|l| self.edges(l));
                    for list in lists {
                        self.explore(list, Operand::Slot(*to), ids)?;
                    }
                }
                StepKind::Check { list, other } => self.explore(list, *other, None)?,
                StepKind::Restrict { slot, within: ids } => {
                    let values = self.values.entry(*slot).or_default();
                    let mut left = Ids::default();
                    let all = values.all.iter();
                    all.filter(|&v| within(Some(&ids.intervals), v))
                        .for_each(|v| left.insert(v));
                    values.all = left;
                }
                StepKind::ExpandAny { .. } => return Err(wrong("unknown predicates")),
                StepKind::ScanAll { .. } | StepKind::Cross { .. } => {
                    return Err(wrong("a product"));
                }
            }
        }
        Ok(self.sum)
    }

    fn start(
        &mut self,
        to: Option<Slot>,
        source: &StartSource,
        ids: Option<&Intervals>,
    ) -> Result<()> {
        let Some(to) = to else { return Ok(()) };
        // The index vertex has its part on every shard: values are found where they are owned.
        let mut all = Ids::default();
        match source {
            StartSource::List(list) => return self.explore(list, Operand::Slot(to), ids),
            StartSource::IdFilter => {
                for [from, to] in ids.into_iter().flatten() {
                    (*from..*to).for_each(|v| all.insert(v));
                }
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let mut keys = Vec::new();
                let view = self.graph.edges(*predicate, *direction);
                view.candidate_keys(scope(graph)?, &mut keys);
                let keys = keys.into_iter().filter(|&v| within(ids, v));
                keys.for_each(|v| all.insert(v));
            }
            StartSource::Unit | StartSource::Graphs(_) => return Err(wrong("this start")),
        }
        let found = Vec::new();
        self.values.insert(to, Values { all, found });
        Ok(())
    }

    fn anchors(&self, list: &EdgeList) -> Vec<u32> {
        match list.anchor {
            Operand::Const(v) => vec![v],
            Operand::Slot(s) => self
                .values
                .get(&s)
                .map_or(Vec::new(), |v| v.all.iter().collect()),
        }
    }

    fn edges(&self, list: &EdgeList) -> u64 {
        let view = self.graph.edges(list.predicate, list.direction);
        let anchors = self.anchors(list).into_iter();
        anchors.map(|a| view.default_degree(a)).sum()
    }

    /// Sends the values of a variable to the shards that have their edges.
    fn ship(&mut self, slot: Slot) {
        let Some(values) = self.values.get_mut(&slot) else {
            return;
        };
        let found = std::mem::take(&mut values.found);
        let all = &values.all;
        let mut sent = 0;
        for (shard, ids) in (0u32..).zip(&found) {
            let far = |v: &u32| self.blocks.place(*v).is_some_and(|p| p.shard != shard);
            sent += ids.iter().filter(|&v| all.has(v)).filter(far).count() as u64;
        }
        self.sum.values += sent;
    }

    /// One pattern: from one end's values to the other end.
    fn explore(&mut self, list: &EdgeList, other: Operand, ids: Option<&Intervals>) -> Result<()> {
        if let Operand::Slot(slot) = list.anchor {
            self.ship(slot);
        }
        let known = match other {
            Operand::Slot(s) => self.values.get(&s).map(|v| &v.all),
            Operand::Const(_) => None,
        };
        let (view, scope) = (
            self.graph.edges(list.predicate, list.direction),
            scope(&list.graph)?,
        );
        let mut scratch = Vec::new();
        let (mut near, mut far) = (Ids::default(), Ids::default());
        let mut found: Vec<Ids> = vec![Ids::default(); self.blocks.shards() as usize];
        let (mut triples, mut joined) = (0, 0);
        for anchor in self.anchors(list) {
            let shard = self.owner(anchor);
            let mut some = 0;
            for &v in view.read(anchor, scope, &mut scratch) {
                let fits = match other {
                    Operand::Const(c) => v == c,
                    Operand::Slot(_) => within(ids, v) && known.is_none_or(|k| k.has(v)),
                };
                if fits {
                    some += 1;
                    far.insert(v);
                    if let Some(at) = found.get_mut(shard as usize) {
                        at.insert(v);
                    }
                }
            }
            if some > 0 {
                near.insert(anchor);
                triples += some;
                joined += if shard == self.home { 0 } else { some };
            }
        }
        // A pattern with a constant binds one variable only, whose values the other patterns bring.
        let is_join = matches!((list.anchor, other), (Operand::Slot(_), Operand::Slot(_)));
        self.sum.triples += triples;
        self.sum.joined += if is_join { joined } else { 0 };
        if let Operand::Slot(s) = list.anchor
            && let Some(values) = self.values.get_mut(&s)
        {
            values.all = near;
        }
        if let Operand::Slot(s) = other {
            self.values.insert(s, Values { all: far, found });
        }
        Ok(())
    }
}

fn scope(graph: &GraphRef) -> Result<GraphScope<'_>> {
    graph.scope().ok_or_else(|| wrong("graphs in variables"))
}

/// The only exploration of a plan.
fn exploration(plan: &PlannedQuery) -> Result<&Exploration> {
    let found = plan.plan().root.exploration();
    found.ok_or_else(|| wrong("several explorations"))
}

/// Traffic of a query with full history: rows between shards and to the coordinator, messages, bytes.
fn full_history(db: &Database, plan: &PlannedQuery, counting: &Counting) -> Result<[u64; 4]> {
    let options = QueryOptions::default().with_shard_mode(ShardMode::Fork);
    counting.take();
    let found = db.checksum(plan, &options)?;
    let [_, messages, bytes] = counting.take();
    let sent = found.shards.iter().map(|s| s.sent).sum();
    Ok([found.rows, sent, messages, bytes])
}

pub fn run(a: &BenchClusterPruning) -> Result<ExitCode> {
    let folder = temporary_folder(a.dir.as_deref())?;
    let load = |to: &Path, shards: u32| load(to, a.universities, Some(Sharding::new(shards)));
    let open = OpenOptions::default().with_runtime(Runtime::builder().threads(1).build());
    let whole_dir = folder.path().join("whole");
    load(&whole_dir, 1)?;
    let whole = Database::open_with(&whole_dir, &open)?;
    println!(
        "LUBM({}). Model: one-step pruning with a final join, over the same plans. Measured: rows always sent, with full history",
        a.universities
    );
    for &servers in &a.servers {
        let dir = folder.path().join(format!("cut-{servers}"));
        load(&dir, servers)?;
        let (counting, db) = counted(&dir, 0, &open)?;
        println!();
        println!(
            "{servers} servers        rows |  values sent  triples joined       MB (model) |   rows sent  messages           MB | MB, model to measured | paper ms: one-step, full history, ratio"
        );
        for (name, one_step, full) in PAPER {
            let Some(q) = query(name) else { continue };
            let plan = db.plan(q.text, &QueryOptions::default())?;
            let (snapshot, cut) = (whole.snapshot(), db.snapshot());
            let sharded = cut.as_sharded();
            let blocks = sharded
                .ok_or_else(|| wrong("a store that is not cut"))?
                .blocks();
            let model = match exploration(&plan) {
                Ok(steps) if steps.empty.is_none() => Model::new(&snapshot, blocks).run(steps)?,
                // It is known beforehand that there is nothing.
                Ok(_) => OneStep::default(),
                Err(e) => return Err(e),
            };
            let [rows, sent, messages, bytes] = full_history(&db, &plan, &counting)?;
            if q.rows(a.universities).is_some_and(|n| n != rows) {
                return Err(Error::external(format!("{name}: {rows} rows")));
            }
            let mb = |bytes: u64| bytes as f64 / 1e6;
            println!(
                "{name:<10} {rows:>12} | {:>12} {:>15} {:>16.3} | {sent:>11} {messages:>9} {:>12.3} | {:>21.2} | {one_step} {full} {:.2}",
                model.values,
                model.joined,
                mb(model.bytes()),
                mb(bytes),
                mb(model.bytes()) / mb(bytes).max(1e-9),
                one_step / full
            );
        }
        drop(db);
        std::fs::remove_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
    }
    println!(
        "Paper, L1 on LUBM-10240: 462 MB with one-step pruning, 18 MB with full history (§5.2)"
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
