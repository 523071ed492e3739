//! The step `ScanAll`: neither end of the edge is known. Reads predicate by predicate and key by key. If the pattern
//! reads a set of named graphs, only the index vertices of these graphs are read.

use super::any::AnyPredicate;
use super::lists::{RowGraph, constant_list};
use super::source::{graph_keys, scope_has_default};
use super::{Emit, QueryContext, StepLayout};
use crate::batch::View;
use crate::explore::expand::WORK_PER_CHECK;
use jindou_graph::segment::{GraphScope, Segment};
use jindou_graph::{Edges, Graph};
use jindou_model::{Direction, PredicateId, Result, VertexId};
use jindou_plan::{GraphRef, PredicateRef, Slot};
use std::borrow::Cow;
use std::ops::Range;

/// Number of keys that are read from a plain segment at a time.
const KEY_CHUNK: u32 = 4096;

/// Number of keys whose lists are requested from other shards in one round.
const FETCHED: usize = 1024;

/// Number of graphs whose predicates are listed between two checks of the deadline.
const GRAPHS_PER_CHECK: usize = 16;

/// Largest number of pairs of a graph and one of its predicates that are listed. With more, every predicate is looked
/// for in all chosen graphs.
const MOST_PAIRS: usize = 1 << 20;

pub(crate) struct ScanAll<'a> {
    snapshot: &'a dyn Graph,
    subject: Option<usize>,
    predicate: AnyPredicate,
    object: Option<usize>,
    graph: RowGraph<'a>,
    graph_to: Option<usize>,
    bind_graph: bool,
    /// The predicates that this worker scans.
    pub only: Range<u32>,
    row: usize,
    opened: bool,
    predicates: Vec<u32>,
    begun: usize,
    /// For a set of named graphs: the graphs that have each of `predicates`, concatenated. `ends` has the end of each
    /// part.
    with_predicate: Vec<u32>,
    ends: Vec<usize>,
    /// The edges of the current predicate. Below: a chunk of its keys, and the start of the next chunk.
    at: Edges<'a>,
    /// The current predicate's segment, if all its lists are there.
    plain: Option<Segment<'a>>,
    /// The next key's number in `plain`.
    number: u32,
    term: u32,
    keys: Vec<u32>,
    next_key: usize,
    next_chunk: Option<u32>,
    key: u32,
    list: Cow<'a, [u32]>,
    graphs: Vec<u32>,
    place: usize,
    work: usize,
    pub touched: u64,
}

impl<'a> ScanAll<'a> {
    pub fn new(
        subject: Slot,
        predicate: PredicateRef,
        object: Slot,
        graph: &'a GraphRef,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        let (bind_graph, graph_to) = match graph {
            GraphRef::Bind(s, _) => (true, layout.output(*s)),
            _ => (false, None),
        };
        Self {
            snapshot: layout.snapshot,
            subject: layout.output(subject),
            predicate: AnyPredicate::new(predicate, layout),
            object: layout.output(object),
            graph: RowGraph::new(graph, layout),
            graph_to,
            bind_graph,
            only: 0..layout.snapshot.predicate_count(),
            row: 0,
            opened: false,
            predicates: vec![],
            begun: 0,
            with_predicate: vec![],
            ends: vec![],
            at: layout.snapshot.edges(PredicateId(0), Direction::Out),
            plain: None,
            number: 0,
            term: 0,
            keys: vec![],
            next_key: 0,
            next_chunk: None,
            key: 0,
            list: Cow::Borrowed(&[]),
            graphs: vec![],
            place: 0,
            work: 0,
            touched: 0,
        }
    }

    pub fn begin(&mut self) {
        self.row = 0;
        self.opened = false;
    }

    fn open_row(&mut self, ctx: &QueryContext<'_>, input: View<'_>) -> Result<()> {
        self.opened = true;
        self.predicates.clear();
        self.with_predicate.clear();
        self.ends.clear();
        self.begun = 0;
        self.keys.clear();
        self.next_key = 0;
        self.next_chunk = None;
        self.list = Cow::Borrowed(&[]);
        self.graphs.clear();
        self.place = 0;
        match self.predicate {
            AnyPredicate::Column(c) => {
                let term = input.column(c)[self.row];
                self.predicates
                    .extend(self.snapshot.predicate_of(VertexId(term)).map(|p| p.0));
            }
            AnyPredicate::Bind(_) => match self.graph.scope_at(input, self.row) {
                GraphScope::Named(g) => self.predicates = self.snapshot.graph_predicates(g),
                GraphScope::Set(gs) if !scope_has_default(gs) => return self.open_graphs(ctx, gs),
                _ => self.predicates.extend(self.only.clone()),
            },
        }
        let only = self.only.clone();
        self.predicates.retain(|p| only.contains(p));
        Ok(())
    }

    /// Lists the predicates of the chosen graphs, and for each predicate the graphs that have it. O(pairs), since
    /// predicates are not looked for in graphs without them.
    fn open_graphs(&mut self, ctx: &QueryContext<'_>, graphs: &[u32]) -> Result<()> {
        let mut pairs: Vec<[u32; 2]> = Vec::new();
        for some in graphs.chunks(GRAPHS_PER_CHECK) {
            ctx.check()?;
            for &g in some {
                let all = self.snapshot.graph_predicates(g).into_iter();
                pairs.extend(all.filter(|p| self.only.contains(p)).map(|p| [p, g]));
            }
            if pairs.len() > MOST_PAIRS {
                self.predicates.extend(self.only.clone());
                return Ok(());
            }
        }
        pairs.sort_unstable();
        for same in pairs.chunk_by(|a, b| a[0] == b[0]) {
            self.predicates.push(same[0][0]);
            self.with_predicate.extend(same.iter().map(|pair| pair[1]));
            self.ends.push(self.with_predicate.len());
        }
        Ok(())
    }

    /// Reads the next chunk of keys of the current predicate; returns false if there is none.
    fn more_keys(&mut self) -> bool {
        let Some(from) = self.next_chunk else {
            return false;
        };
        let Some(s) = self.plain else {
            return false;
        };
        self.number = from;
        self.keys.clear();
        self.next_key = 0;
        let to = from.saturating_add(KEY_CHUNK);
        s.keys_into(from, to, &mut self.keys);
        self.next_chunk = (to < s.key_count).then_some(to);
        true
    }

    /// Starts with predicate `p`, at position `n` of `predicates`.
    fn open_predicate(&mut self, n: usize, p: PredicateId, scope: GraphScope<'a>) {
        self.at = self.snapshot.edges(p, Direction::Out);
        self.plain = self.at.plain(scope);
        self.term = self.snapshot.vertex_of(p).0;
        self.keys.clear();
        self.next_key = 0;
        self.next_chunk = None;
        match self.plain {
            Some(s) if s.is_empty() => {}
            // Only the default graph's segment is read in this form.
            Some(_) => {
                self.next_chunk = Some(0);
                self.more_keys();
            }
            None => {
                let from = if n == 0 {
                    0
                } else {
                    self.ends.get(n - 1).copied().unwrap_or(0)
                };
                let scope = match self.ends.get(n) {
                    Some(&to) => GraphScope::Set(&self.with_predicate[from..to]),
                    None => scope,
                };
                graph_keys(self.snapshot, p, Direction::Out, scope, &mut self.keys);
                self.work += self.keys.len();
            }
        }
    }

    pub fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        while self.row < input.rows {
            if !self.opened {
                self.open_row(ctx, input)?;
            }
            let scope = self.graph.scope_at(input, self.row);
            loop {
                let taken = out.list(
                    self.row,
                    self.object,
                    &self.list[self.place..],
                    &[
                        (self.subject, self.key),
                        (self.predicate.output(), self.term),
                    ],
                    self.bind_graph
                        .then(|| (self.graph_to, self.graphs.get(self.place..).unwrap_or(&[]))),
                );
                self.place += taken;
                self.work += taken + 16;
                self.touched += 4 * taken as u64 + 8;
                if self.place < self.list.len() {
                    return Ok(true);
                }
                if self.work > WORK_PER_CHECK {
                    self.work = 0;
                    ctx.check()?;
                }
                if let Some(&key) = self.keys.get(self.next_key) {
                    if self.next_key.is_multiple_of(FETCHED) {
                        let some = self.keys[self.next_key..].iter().take(FETCHED);
                        self.at.fetch(some.map(|&key| (key, scope)));
                    }
                    self.next_key += 1;
                    self.open_list(key, scope);
                } else if !self.more_keys() {
                    let Some(&p) = self.predicates.get(self.begun) else {
                        break;
                    };
                    let n = self.begun;
                    self.begun += 1;
                    self.list = Cow::Borrowed(&[]);
                    self.graphs.clear();
                    self.place = 0;
                    self.open_predicate(n, PredicateId(p), scope);
                }
            }
            self.row += 1;
            self.opened = false;
        }
        Ok(false)
    }

    fn open_list(&mut self, key: u32, scope: GraphScope<'a>) {
        self.key = key;
        self.place = 0;
        let number = self.number;
        self.number = number.wrapping_add(1);
        if self.bind_graph {
            let mut list = std::mem::take(&mut self.list).into_owned();
            list.clear();
            self.graphs.clear();
            self.at
                .read_with_graphs(key, scope, &mut list, &mut self.graphs);
            self.list = Cow::Owned(list);
        } else {
            self.list = match self.plain {
                Some(s) => Cow::Borrowed(s.list(number)),
                None => constant_list(&self.at, key, scope).into_cow(),
            };
        }
    }

    pub fn bytes(&self) -> usize {
        let own = if let Cow::Owned(l) = &self.list {
            l.capacity()
        } else {
            0
        };
        let graphs = self.graphs.capacity() + self.with_predicate.capacity();
        4 * (own + graphs + self.keys.capacity() + self.predicates.capacity())
            + size_of::<usize>() * self.ends.capacity()
    }
}
