//! Resolves a group of patterns against one snapshot: terms become ids, classes and keys of predicates become intervals
//! of ids, and patterns that cannot match are detected.

use crate::condition::{CompiledCondition, ConditionCompiler};
use crate::expression::Expr;
use crate::id_filter;
use crate::logical::{Bgp, LogicalPattern, PatternGraphTerm, PatternTerm};
use crate::stars::{Star, StarMember};
use crate::validity::WatchedSnapshot;
use crate::{
    Condition, GraphRef, IdFilter, Intervals, PlanOptions, Slot, TouchedBy, intervals, show,
};
use jindou_graph::segment::GraphScope;
use jindou_graph::{Graph, ObjectTerms};
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId, VertexId, scope};
use jindou_syntax::algebra::{Canonical, NamedNode, QueryDataset};
use std::sync::Arc;

/// Number of intervals of a class above which testing them costs more than looking up the `rdf:type` edge.
const MAX_TEST_INTERVALS: usize = 1_024;
/// The same limit for a group without constants, in which many rows are tested and early restrictions are worth more.
/// It is larger than the number of intervals of classes that updates and merges have scattered.
const MAX_OPEN_INTERVALS: usize = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedTerm {
    Slot(Slot),
    Const(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedPredicate {
    Known(PredicateId),
    Slot(Slot),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatternGraph {
    Fixed(GraphRef),
    /// A graph variable, restricted to [`Resolved::named`].
    Slot(Slot),
}

/// A pattern that a step looks up in the store.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub subject: ResolvedTerm,
    pub predicate: ResolvedPredicate,
    pub object: ResolvedTerm,
    pub graph: PatternGraph,
}

impl Edge {
    /// The graphs to read as long as the graph variable, if there is one, is not bound.
    pub(crate) fn graph_ref(&self, named: Option<&[u32]>) -> GraphRef {
        match &self.graph {
            PatternGraph::Fixed(g) => g.clone(),
            PatternGraph::Slot(_) => {
                named.map_or(GraphRef::AnyNamed, |n| GraphRef::Set(n.to_vec()))
            }
        }
    }

    pub(crate) fn slots(&self) -> u128 {
        let mut mask = 0;
        for n in [self.subject, self.object] {
            if let ResolvedTerm::Slot(s) = n {
                mask |= 1 << s;
            }
        }
        if let ResolvedPredicate::Slot(s) = self.predicate {
            mask |= 1 << s;
        }
        if let PatternGraph::Slot(s) = self.graph {
            mask |= 1 << s;
        }
        mask
    }
}

/// A group of patterns resolved against one snapshot: the edges that steps look up, and the conditions on slots.
pub(crate) struct Resolved {
    pub edges: Vec<Edge>,
    /// By slot: the vertices that it is restricted to, if any.
    pub within: Vec<Option<IdFilter>>,
    /// By slot: reasons for `within`, for EXPLAIN.
    pub within_why: Vec<Vec<String>>,
    /// Class patterns that `within` replaces, as slot and class.
    pub classes: Vec<(Slot, u32)>,
    /// Edges (a mask) whose predicate every vertex in `within` of their subject has.
    pub absorbed_keys: u128,
    /// The graphs of `FROM NAMED`, in ascending order; `None` for all named graphs.
    pub named: Option<Vec<u32>>,
    pub conditions: Vec<Condition>,
}

/// Reason why a group has no solutions.
pub(crate) type Empty = String;

/// The query's FROM and FROM NAMED.
pub(crate) struct Dataset {
    /// Graphs that patterns outside GRAPH read.
    pub default: GraphRef,
    /// The graphs of `FROM NAMED`, in ascending order; `None` for all named graphs.
    pub named: Option<Vec<u32>>,
}

impl Dataset {
    pub(crate) fn resolve(
        dataset: Option<&QueryDataset>,
        snapshot: &WatchedSnapshot<'_>,
        options: &PlanOptions,
    ) -> Self {
        let own = if options.union_default {
            GraphRef::Union
        } else {
            GraphRef::Default
        };
        let Some(dataset) = dataset else {
            return Self {
                default: own,
                named: None,
            };
        };
        let ids = |list: &[NamedNode]| {
            let mut ids: Vec<u32> = list
                .iter()
                .filter_map(|n| snapshot.lookup(&n.canonical()).map(|v| v.0))
                .collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let graphs = ids(&dataset.default);
        // An empty IRI, which no query text can contain, stands for the graphs that are read without FROM.
        let is_own = dataset.default.iter().any(|n| n.as_str().is_empty());
        Self {
            default: match graphs.as_slice() {
                _ if is_own => own,
                [one] => GraphRef::Named(*one),
                _ => GraphRef::Set(graphs),
            },
            // FROM without FROM NAMED means no named graphs (`Some` of an empty list). WITH in an update does not
            // restrict named graphs (`None`).
            named: dataset.named.as_deref().map(ids),
        }
    }

    /// The id of a named graph that the query can see.
    pub(crate) fn graph(&self, name: &Canonical, snapshot: &WatchedSnapshot<'_>) -> Option<u32> {
        let g = snapshot.lookup(name)?.0;
        let seen = self
            .named
            .as_ref()
            .is_none_or(|n| n.binary_search(&g).is_ok());
        seen.then_some(g)
    }
}

/// Largest number of patterns in one exploration: edges are bits of a mask.
pub(crate) const MAX_EDGES: usize = 120;

/// Resolves the group against the snapshot. Its slots are below `names.len()`, which is at most 128. `Err` if the group
/// has no solutions.
pub(crate) fn resolve(
    group: &Bgp,
    names: &[String],
    dataset: &Dataset,
    snapshot: &WatchedSnapshot<'_>,
) -> Result<Resolved, Empty> {
    let mut r = Resolver {
        snapshot,
        dataset,
        out: Resolved {
            edges: Vec::with_capacity(group.patterns.len()),
            within: vec![None; names.len()],
            within_why: vec![vec![]; names.len()],
            classes: vec![],
            absorbed_keys: 0,
            named: dataset.named.clone(),
            conditions: vec![],
        },
    };
    r.run(group, names)?;
    Ok(r.out)
}

struct Resolver<'a> {
    snapshot: &'a WatchedSnapshot<'a>,
    dataset: &'a Dataset,
    out: Resolved,
}

impl Resolver<'_> {
    fn run(&mut self, group: &Bgp, names: &[String]) -> Result<(), Empty> {
        let uses_graphs = |p: &LogicalPattern| matches!(p.place, PatternGraphTerm::Slot(_));
        if self.out.named.as_ref().is_some_and(Vec::is_empty)
            && group.patterns.iter().any(uses_graphs)
        {
            return Err("the query's dataset has no named graph".into());
        }
        for p in &group.patterns {
            self.pattern(p)?;
        }
        self.restrict_graphs();
        self.filters(&group.filters)?;
        self.classes();
        self.keys();
        for within in &mut self.out.within {
            *within = within.take().map(IdFilter::pruned);
        }
        for (slot, within) in self.out.within.iter().enumerate() {
            if within.as_ref().is_some_and(IdFilter::is_never) {
                let name = &names[slot];
                let why = self
                    .out
                    .within_why
                    .get(slot)
                    .map(|w| w.join(" and "))
                    .unwrap_or_default();
                return Err(format!("no vertex can be ?{name}: {why}"));
            }
        }
        Ok(())
    }

    fn vertex(&self, bytes: &Canonical) -> Result<VertexId, Empty> {
        self.snapshot
            .lookup(bytes)
            .ok_or_else(|| format!("the store has no term {}", show::term(bytes)))
    }

    fn pattern(&mut self, p: &LogicalPattern) -> Result<(), Empty> {
        let graph = match &p.place {
            PatternGraphTerm::Default => PatternGraph::Fixed(self.dataset.default.clone()),
            PatternGraphTerm::Slot(g) => PatternGraph::Slot(*g),
            PatternGraphTerm::Named(bytes) => {
                self.vertex(bytes)?;
                let Some(g) = self.dataset.graph(bytes, self.snapshot) else {
                    return Err(format!(
                        "{} is not a named graph of the query's dataset",
                        show::term(bytes)
                    ));
                };
                PatternGraph::Fixed(GraphRef::Named(g))
            }
        };
        if graph == PatternGraph::Fixed(GraphRef::Set(vec![])) {
            return Err("the query's default graph is empty".into());
        }
        let node = |e: &PatternTerm| match e {
            PatternTerm::Slot(s) => Ok(ResolvedTerm::Slot(*s)),
            PatternTerm::Term(bytes) => self.vertex(bytes).map(|v| ResolvedTerm::Const(v.0)),
        };
        let (subject, object) = (node(&p.subject)?, node(&p.object)?);
        let predicate = match &p.predicate {
            PatternTerm::Slot(s) => ResolvedPredicate::Slot(*s),
            PatternTerm::Term(bytes) => {
                let known = self
                    .snapshot
                    .lookup(bytes)
                    .and_then(|v| self.snapshot.predicate_of(v));
                match known {
                    Some(id) => ResolvedPredicate::Known(id),
                    None => {
                        return Err(format!("the store has no predicate {}", show::term(bytes)));
                    }
                }
            }
        };
        let edge = Edge {
            subject,
            predicate,
            object,
            graph,
        };
        if let ResolvedPredicate::Known(id) = predicate {
            let read = edge.graph_ref(self.out.named.as_deref());
            if let Some(scope) = read.scope() {
                let view = self.snapshot.edges(id, Direction::Out);
                if view.edge_estimate(scope) == 0 {
                    return Err(format!(
                        "{} has no edge in {}",
                        show::predicate(self.snapshot.graph(), id),
                        show::graph(self.snapshot.graph(), &read)
                    ));
                }
                if let (ResolvedTerm::Const(s), ResolvedTerm::Const(o), PatternGraph::Fixed(_)) =
                    (subject, object, &edge.graph)
                {
                    // The edge is looked up while planning, so the plan is valid for this version of the data only.
                    self.snapshot.bind();
                    return if view.contains(s, o, scope) {
                        Ok(())
                    } else {
                        Err(format!(
                            "there is no edge {} {} {}",
                            show::vertex(self.snapshot.graph(), s),
                            show::predicate(self.snapshot.graph(), id),
                            show::vertex(self.snapshot.graph(), o)
                        ))
                    };
                }
            }
        }
        self.out.edges.push(edge);
        Ok(())
    }

    /// Restricts graph variables to the graphs of `FROM NAMED`, since other patterns may bind them to other values.
    fn restrict_graphs(&mut self) {
        let Some(named) = self.out.named.clone() else {
            return;
        };
        let graphs: Vec<Slot> = self
            .out
            .edges
            .iter()
            .filter_map(|e| {
                if let PatternGraph::Slot(g) = e.graph {
                    Some(g)
                } else {
                    None
                }
            })
            .collect();
        for g in graphs {
            if self.out.within[g as usize].is_none() {
                let ids = intervals::of_ids(named.clone());
                self.narrow(g, ids, None, || "FROM NAMED".into());
            }
        }
    }

    fn narrow(
        &mut self,
        slot: Slot,
        to: Intervals,
        touched: Option<TouchedBy>,
        why: impl FnOnce() -> String,
    ) {
        let Some(within) = self.out.within.get_mut(slot as usize) else {
            return;
        };
        let member = id_filter::Member {
            intervals: to,
            touched,
        };
        match within {
            Some(w) => w.and(member),
            None => *within = Some(IdFilter::one(member)),
        }
        self.out.within_why[slot as usize].push(why());
    }

    fn filters(&mut self, filters: &[Arc<Expr>]) -> Result<(), Empty> {
        let mut resources = 0u128;
        let compares = filters.iter().any(|f| f.slots().len() > 1);
        for e in &self.out.edges {
            let graph = if let PatternGraph::Slot(g) = e.graph {
                Some(g)
            } else {
                None
            };
            let predicate = if let ResolvedPredicate::Slot(p) = e.predicate {
                Some(p)
            } else {
                None
            };
            let subject = if let ResolvedTerm::Slot(s) = e.subject {
                Some(s)
            } else {
                None
            };
            let object = match (e.object, e.predicate) {
                (ResolvedTerm::Slot(o), ResolvedPredicate::Known(p)) if compares => {
                    (self.snapshot.object_terms(p) == ObjectTerms::Resources).then_some(o)
                }
                _ => None,
            };
            for s in [graph, predicate, subject, object].into_iter().flatten() {
                resources |= 1 << s;
            }
        }
        let compiler = ConditionCompiler {
            snapshot: self.snapshot,
            resources,
            certain: None,
            stored: true,
        };
        for f in filters {
            if scope::is_over() {
                return Err("planning took too long".into());
            }
            match compiler.compile(f) {
                CompiledCondition::True => {}
                CompiledCondition::False(why) => return Err(why),
                CompiledCondition::OneOf(slot, ids) => {
                    self.narrow(slot, intervals::of_ids(ids), None, || "FILTER".into());
                }
                CompiledCondition::Test(c) => self.out.conditions.push(c),
                CompiledCondition::Narrowed(slot, ids, why, c) => {
                    // Terms that updates added are in no index, so all of them are candidates; the condition tests
                    // them.
                    let ids = intervals::of_base(ids);
                    self.narrow(slot, ids, None, || format!("is one {why}"));
                    self.out.conditions.push(c);
                }
            }
        }
        Ok(())
    }

    /// Replaces class patterns whose instances are known as intervals by a restriction of the slot, which needs no
    /// lookup.
    fn classes(&mut self) {
        let Some(rdf_type) = self.snapshot.statistics().rdf_type.map(PredicateId) else {
            return;
        };
        let view = self.snapshot.edges(rdf_type, Direction::In);
        let is_touched = self.snapshot.is_predicate_patched(rdf_type);
        let mut edges = std::mem::take(&mut self.out.edges);
        let is_anchored = edges.iter().any(|e| {
            let is_class = e.predicate == ResolvedPredicate::Known(rdf_type);
            matches!(e.subject, ResolvedTerm::Const(_))
                || (matches!(e.object, ResolvedTerm::Const(_)) && !is_class)
        });
        let most = if is_anchored {
            MAX_TEST_INTERVALS
        } else {
            MAX_OPEN_INTERVALS
        };
        edges.retain(|e| {
            let (ResolvedTerm::Slot(slot), ResolvedTerm::Const(class), PatternGraph::Fixed(graph)) =
                (e.subject, e.object, &e.graph)
            else {
                return true;
            };
            // The intervals of a class cover all graphs together.
            let sees_all = match graph.scope() {
                Some(GraphScope::Union) => true,
                Some(scope) => view.has_no_named() && scope.sees(DEFAULT_GRAPH),
                None => false,
            };
            if e.predicate != ResolvedPredicate::Known(rdf_type) || !sees_all {
                return true;
            }
            match self.snapshot.class_intervals(VertexId(class)) {
                Some(i) if i.len() <= most => {
                    let touched = is_touched.then(|| TouchedBy {
                        predicate: rdf_type,
                        direction: Direction::Out,
                        graph: graph.clone(),
                        neighbour: Some(class),
                    });
                    self.narrow(slot, i.to_vec(), touched, || {
                        format!("is a {}", show::vertex(self.snapshot.graph(), class))
                    });
                    self.out.classes.push((slot, class));
                    false
                }
                _ => true,
            }
        });
        self.out.edges = edges;
    }

    /// Restricts a slot that must have an edge of a predicate to the keys of the segment, where these are intervals.
    /// Such a restriction costs almost nothing.
    fn keys(&mut self) {
        for i in 0..self.out.edges.len() {
            let e = self.out.edges[i].clone();
            let (ResolvedPredicate::Known(p), PatternGraph::Fixed(graph)) = (e.predicate, &e.graph)
            else {
                continue;
            };
            let Some(scope) = graph.scope() else { continue };
            for (end, other, direction) in [
                (e.subject, e.object, Direction::Out),
                (e.object, e.subject, Direction::In),
            ] {
                let (ResolvedTerm::Slot(slot), ResolvedTerm::Slot(_)) = (end, other) else {
                    continue;
                };
                let view = self.snapshot.edges(p, direction);
                let (segment, touched) = match (view.plain(scope), view.plain_but_dirty(scope)) {
                    (Some(segment), _) => (segment, None),
                    (None, Some((segment, _))) => {
                        let touched = TouchedBy {
                            predicate: p,
                            direction,
                            graph: graph.clone(),
                            neighbour: None,
                        };
                        (segment, Some(touched))
                    }
                    (None, None) => continue,
                };
                let Some(keys) = intervals::of_keys(&segment) else {
                    continue;
                };
                self.narrow(slot, keys, touched, || {
                    let what = if direction == Direction::Out {
                        "has"
                    } else {
                        "is reached by"
                    };
                    format!("{what} {}", show::predicate(self.snapshot.graph(), p))
                });
                if direction == Direction::Out {
                    self.out.absorbed_keys |= 1 << i;
                }
            }
        }
    }
}

/// The star of a slot: the predicates of the edges that leave it, then its classes.
pub(crate) struct SlotStar {
    pub star: Star,
    /// Edge numbers of the first members; classes that `within` already tests follow without an edge.
    pub edges: Vec<usize>,
    /// Members (a mask) that every value of the slot has as soon as it is bound, since `within` implies them.
    pub always: u32,
}

/// The star of each slot (`None` if it would tell nothing new), or the reason why one of them cannot match.
pub(crate) fn stars(
    r: &Resolved,
    snapshot: &dyn Graph,
    slots: &[String],
) -> Result<Vec<Option<SlotStar>>, Empty> {
    let statistics = snapshot.statistics();
    let rdf_type = statistics.rdf_type;
    let types_patched = rdf_type.is_some_and(|p| snapshot.is_predicate_patched(PredicateId(p)));
    let mut out: Vec<Option<SlotStar>> = Vec::with_capacity(slots.len());
    for (slot, name) in slots.iter().enumerate() {
        let mut members = vec![];
        let mut edges = vec![];
        let mut required = vec![];
        let mut always = 0u32;
        for (i, e) in r.edges.iter().enumerate() {
            let (ResolvedTerm::Slot(s), ResolvedPredicate::Known(p)) = (e.subject, e.predicate)
            else {
                continue;
            };
            if usize::from(s) != slot || members.len() == crate::stars::MAX_MEMBERS {
                continue;
            }
            required.push(p.0);
            // A class is more selective than the existence of an `rdf:type` edge.
            members.push(match e.object {
                ResolvedTerm::Const(class) if rdf_type == Some(p.0) => StarMember::Class(class),
                _ => StarMember::Predicate(p.0),
            });
            if r.absorbed_keys >> i & 1 == 1 {
                always |= 1 << edges.len();
            }
            edges.push(i);
        }
        for &(s, class) in &r.classes {
            if usize::from(s) == slot && members.len() < crate::stars::MAX_MEMBERS {
                always |= 1 << members.len();
                members.push(StarMember::Class(class));
            }
        }
        // A single predicate's own counts are just as informative as a star.
        let alone =
            members.len() < 2 && matches!(members.first(), None | Some(StarMember::Predicate(_)));
        if alone {
            out.push(None);
            continue;
        }
        let mut star = Star::new(statistics, members.clone());
        if !star.possible(star.all()) {
            let mut there = snapshot
                .predicates()
                .widened_sets()
                .any(|(list, _)| required.iter().all(|p| list.binary_search(p).is_ok()));
            // An update may have given a class to a vertex whose characteristic set lacks the class, so only predicates
            // can prove that nothing matches.
            if let (Some(p), true) = (rdf_type, types_patched) {
                for m in &mut members {
                    if let StarMember::Class(_) = m {
                        *m = StarMember::Predicate(p);
                    }
                }
                star = Star::new(statistics, members);
                there |= star.possible(star.all());
            }
            if !there {
                return Err(format!(
                    "no characteristic set has all predicates that ?{name} needs"
                ));
            }
        }
        out.push(Some(SlotStar {
            star,
            edges,
            always,
        }));
    }
    Ok(out)
}
