//! Steps of explorations, and paths.

use super::{Data, MAX_ROWS, Row, Rows, TooLarge};
use jindou_model::{DEFAULT_GRAPH, Direction};
use jindou_plan::{
    EdgeList, FarEnd, GraphRef, IdFilter, Operand, Path, PredicateRef, Slot, StartSource, Step,
    StepKind,
};
use jindou_store::Snapshot;
use std::collections::BTreeSet;

impl Data<'_> {
    pub(super) fn sees(&self, graph: &GraphRef, row: &Row, g: u32) -> bool {
        match graph {
            GraphRef::Default => g == DEFAULT_GRAPH,
            GraphRef::Named(n) => g == *n && g != DEFAULT_GRAPH,
            GraphRef::AnyNamed | GraphRef::Bind(_, None) => g != DEFAULT_GRAPH,
            GraphRef::Union => true,
            GraphRef::Set(gs) => gs.contains(&g),
            GraphRef::Bind(_, Some(gs)) => g != DEFAULT_GRAPH && gs.contains(&g),
            GraphRef::Slot(s) => row[s] == g && g != DEFAULT_GRAPH,
        }
    }

    pub(super) fn operand(&self, row: &Row, o: Operand) -> u32 {
        match o {
            Operand::Const(c) => c,
            Operand::Slot(s) => *row.get(&s).unwrap_or_else(|| panic!("slot {s} is unbound")),
        }
    }

    /// (neighbour, graph); graph 0 unless bound.
    pub(super) fn list(&self, row: &Row, l: &EdgeList) -> BTreeSet<(u32, u32)> {
        let anchor = self.operand(row, l.anchor);
        let p = self.snapshot.vertex_of(l.predicate).0;
        let bind = matches!(l.graph, GraphRef::Bind(..));
        let (key, far) = if l.direction == Direction::Out {
            (0, 2)
        } else {
            (2, 0)
        };
        self.quads
            .iter()
            .filter(|q| q[1] == p && q[key] == anchor && self.sees(&l.graph, row, q[3]))
            .map(|q| (q[far], if bind { q[3] } else { 0 }))
            .collect()
    }

    pub(super) fn source(&self, source: &StartSource, within: Option<&IdFilter>) -> BTreeSet<u32> {
        let row = Row::new();
        let mut out: BTreeSet<u32> = match source {
            StartSource::Unit => panic!("unit has no values"),
            StartSource::IdFilter => within
                .expect("within")
                .exact(self.snapshot)
                .iter()
                .flat_map(|r| r[0]..r[1])
                .collect(),
            StartSource::List(l) => {
                assert!(matches!(l.anchor, Operand::Const(_)));
                self.list(&row, l).into_iter().map(|x| x.0).collect()
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let p = self.snapshot.vertex_of(*predicate).0;
                let end = if *direction == Direction::Out { 0 } else { 2 };
                self.quads
                    .iter()
                    .filter(|q| q[1] == p && self.sees(graph, &row, q[3]))
                    .map(|q| q[end])
                    .collect()
            }
            StartSource::Graphs(list) => {
                let graphs = self.quads.iter().map(|q| q[3]).filter(|g| *g != 0);
                graphs
                    .filter(|g| list.as_ref().is_none_or(|l| l.contains(g)))
                    .collect()
            }
        };
        out.retain(|v| inside(self.snapshot, within, *v));
        out
    }

    pub(super) fn steps(&self, mut rows: Vec<Row>, steps: &[Step], start: bool) -> Rows {
        for (i, step) in steps.iter().enumerate() {
            let is_start = matches!(step.kind, StepKind::Start { .. });
            assert_eq!(is_start, start && i == 0, "start first and only first");
            rows = self.step(rows, step)?;
        }
        Ok(rows)
    }

    #[allow(clippy::too_many_lines)]
    pub(super) fn step(&self, rows: Vec<Row>, step: &Step) -> Rows {
        let mut out: Vec<Row> = vec![];
        let rows = if let StepKind::Start { to, source, within } = &step.kind {
            match to {
                None => out.push(Row::new()),
                Some(s) => {
                    let values = self.source(source, within.as_ref());
                    out.extend(values.into_iter().map(|v| Row::from([(*s, v)])));
                }
            }
            vec![]
        } else {
            rows
        };
        for row in rows {
            let mut emit = |set: &[(Slot, u32)]| {
                let mut r = row.clone();
                for (s, v) in set {
                    assert!(r.insert(*s, *v).is_none(), "slot {s} is bound twice");
                }
                out.push(r);
            };
            match &step.kind {
                StepKind::Start { .. } => {}
                StepKind::Expand { to, lists, within } => {
                    if let GraphRef::Bind(g, _) = lists[0].graph {
                        assert_eq!(lists.len(), 1);
                        for (v, graph) in self.list(&row, &lists[0]) {
                            if inside(self.snapshot, within.as_ref(), v) {
                                emit(&[(*to, v), (g, graph)]);
                            }
                        }
                        continue;
                    }
                    let mut all = self.list(&row, &lists[0]);
                    for l in &lists[1..] {
                        let more = self.list(&row, l);
                        all.retain(|x| more.contains(x));
                    }
                    for (v, _) in all {
                        if inside(self.snapshot, within.as_ref(), v) {
                            emit(&[(*to, v)]);
                        }
                    }
                }
                StepKind::Check { list, other } => {
                    let other = self.operand(&row, *other);
                    for (v, graph) in self.list(&row, list) {
                        if v == other {
                            match list.graph {
                                GraphRef::Bind(g, _) => emit(&[(g, graph)]),
                                _ => emit(&[]),
                            }
                        }
                    }
                }
                StepKind::Restrict { slot, within } => {
                    if inside(
                        self.snapshot,
                        Some(within),
                        self.operand(&row, Operand::Slot(*slot)),
                    ) {
                        emit(&[]);
                    }
                }
                StepKind::ExpandAny {
                    anchor,
                    direction,
                    predicate,
                    far,
                    graph,
                } => {
                    let anchor = self.operand(&row, *anchor);
                    let (key, end) = if *direction == Direction::Out {
                        (0, 2)
                    } else {
                        (2, 0)
                    };
                    let mut found = BTreeSet::new();
                    for q in &self.quads {
                        if q[key] != anchor || !self.sees(graph, &row, q[3]) {
                            continue;
                        }
                        let mut set = vec![];
                        match predicate {
                            PredicateRef::Bind(s) => set.push((*s, q[1])),
                            PredicateRef::Slot(s) if row[s] != q[1] => continue,
                            PredicateRef::Slot(_) => {}
                        }
                        match far {
                            FarEnd::Bind(s) => set.push((*s, q[end])),
                            FarEnd::Known(o) if self.operand(&row, *o) != q[end] => continue,
                            FarEnd::Known(_) => {}
                        }
                        if let GraphRef::Bind(g, _) = graph {
                            set.push((*g, q[3]));
                        }
                        found.insert(set);
                    }
                    found.iter().for_each(|set| emit(set));
                }
                StepKind::ScanAll {
                    subject,
                    predicate,
                    object,
                    graph,
                } => {
                    let mut found = BTreeSet::new();
                    for q in self.quads.iter().filter(|q| self.sees(graph, &row, q[3])) {
                        let mut set = vec![(*subject, q[0]), (*object, q[2])];
                        match predicate {
                            PredicateRef::Bind(s) => set.push((*s, q[1])),
                            PredicateRef::Slot(s) if row[s] != q[1] => continue,
                            PredicateRef::Slot(_) => {}
                        }
                        if let GraphRef::Bind(g, _) = graph {
                            set.push((*g, q[3]));
                        }
                        found.insert(set);
                    }
                    found.iter().for_each(|set| emit(set));
                }
                StepKind::Cross { to, source, within } => {
                    for v in self.source(source, within.as_ref()) {
                        emit(&[(*to, v)]);
                    }
                }
            }
            if out.len() > 20 * MAX_ROWS {
                return Err(TooLarge);
            }
        }
        out.retain(|r| step.filters.iter().all(|c| self.test(r, c) == Some(true)));
        for r in &mut out {
            r.retain(|s, _| step.live.contains(s));
        }
        Ok(out)
    }

    // ---- paths ----

    pub(super) fn pairs(
        &self,
        row: &Row,
        subject: FarEnd,
        path: &Path,
        object: FarEnd,
        graph: &GraphRef,
        only_nodes: bool,
    ) -> BTreeSet<(u32, u32)> {
        let mut nodes: BTreeSet<u32> = self
            .quads
            .iter()
            .filter(|q| self.sees(graph, row, q[3]))
            .flat_map(|q| [q[0], q[2]])
            .collect();
        for end in [subject, object] {
            if let FarEnd::Known(o) = end
                && !only_nodes
            {
                nodes.insert(self.operand(row, o));
            }
        }
        self.relation(row, path, graph, &nodes)
    }

    pub(super) fn relation(
        &self,
        row: &Row,
        path: &Path,
        graph: &GraphRef,
        nodes: &BTreeSet<u32>,
    ) -> BTreeSet<(u32, u32)> {
        let of = |p: &Path| self.relation(row, p, graph, nodes);
        let then = |a: &BTreeSet<(u32, u32)>, b: &BTreeSet<(u32, u32)>| {
            let mut out = BTreeSet::new();
            for x in a {
                out.extend(b.iter().filter(|y| y.0 == x.1).map(|y| (x.0, y.1)));
            }
            out
        };
        let closure = |start: BTreeSet<(u32, u32)>| {
            let mut all = start.clone();
            loop {
                let more = then(&all, &start);
                let before = all.len();
                all.extend(more);
                if all.len() == before {
                    return all;
                }
            }
        };
        let edges = || self.quads.iter().filter(|q| self.sees(graph, row, q[3]));
        let zero = || nodes.iter().map(|n| (*n, *n));
        match path {
            Path::Predicate(None) => BTreeSet::new(),
            Path::Predicate(Some(p)) => {
                let p = self.snapshot.vertex_of(*p).0;
                edges()
                    .filter(|q| q[1] == p)
                    .map(|q| (q[0], q[2]))
                    .collect()
            }
            Path::Inverse(p) => of(p).into_iter().map(|(a, b)| (b, a)).collect(),
            Path::Sequence(list) => {
                let mut parts = list.iter().map(of);
                let first = parts.next().expect("a part");
                parts.fold(first, |a, b| then(&a, &b))
            }
            Path::Alternative(list) => list.iter().flat_map(of).collect(),
            Path::ZeroOrOne(p) => of(p).into_iter().chain(zero()).collect(),
            Path::ZeroOrMore(p) => closure(of(p)).into_iter().chain(zero()).collect(),
            Path::OneOrMore(p) => closure(of(p)),
            Path::Except(list) => {
                let not: Vec<u32> = list.iter().map(|p| self.snapshot.vertex_of(*p).0).collect();
                edges()
                    .filter(|q| !not.contains(&q[1]))
                    .map(|q| (q[0], q[2]))
                    .collect()
            }
        }
    }
}

fn inside(snapshot: &Snapshot, within: Option<&IdFilter>, v: u32) -> bool {
    within.is_none_or(|w| w.holds(snapshot, v))
}
