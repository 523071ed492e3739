//! Estimates of how many nodes property paths lead to: from counts, and by sampling for `*` and `+`.
//!
//! Counts do not tell how the steps of `*` and `+` follow one another: a hierarchy of ten levels and a chain of a
//! million have the same counts. So their reach is estimated by following the path from a few sampled nodes.

use super::*;
use crate::parameters::is_parameter;
use jindou_graph::Edges;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use rustc_hash::FxHashSet;

/// Number of sampled nodes to follow a path from.
const WALKS: u32 = 6;
/// Number of visited nodes after which following the path from one node ends.
const LONGEST: usize = 48;
/// Longest neighbour list that is followed; of a longer one only the length is counted.
const LIST: u64 = 64;
/// Cost of starting a search, in visited vertices.
const BEGIN: f64 = 10.0;

/// Estimates for a path neither of whose ends is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathReach {
    /// Numbers of nodes that the path starts from and ends at, without zero-length paths.
    subjects: f64,
    objects: f64,
    pairs: f64,
    /// True if the path also leads from every node to itself.
    nullable: bool,
}

impl PathReach {
    /// Mean number of nodes that the path leads to from one node, or, if `back`, that lead to one node.
    fn ahead(&self, back: bool) -> f64 {
        let from = if back { self.objects } else { self.subjects };
        self.pairs / from.max(1.0) + f64::from(u8::from(self.nullable))
    }
}

/// Estimates of paths met so far, each with its graph.
pub(crate) type Reaches = Vec<(Path, GraphRef, PathReach)>;

/// Edges of a step and the direction in which they are followed.
type Label = (PredicateId, Direction);

impl PlanBuilder<'_> {
    /// Estimated number of pairs that the path adds to one row, and of vertices that its search visits.
    pub(super) fn reach(
        &mut self,
        path: &Path,
        graph: &GraphRef,
        subject: FarEnd,
        object: FarEnd,
    ) -> (f64, f64) {
        let shape = self.shape(path, graph);
        let ahead = |end: FarEnd, back: bool| match end {
            FarEnd::Known(Operand::Const(v)) if !is_parameter(v) => self
                .constant_walk(path, graph, v, back, shape)
                .unwrap_or_else(|| shape.ahead(back)),
            _ => shape.ahead(back),
        };
        match (subject, object) {
            (FarEnd::Known(_), FarEnd::Known(_)) => {
                let (a, b) = (ahead(subject, false), ahead(object, true));
                (0.5, BEGIN + a.min(b) * 2.0)
            }
            (FarEnd::Known(_), FarEnd::Bind(_)) => {
                let n = ahead(subject, false);
                (n, BEGIN + n)
            }
            (FarEnd::Bind(_), FarEnd::Known(_)) => {
                let n = ahead(object, true);
                (n, BEGIN + n)
            }
            (FarEnd::Bind(s), FarEnd::Bind(o)) => {
                let alone = if shape.nullable {
                    f64::from(self.snapshot.vertices())
                } else {
                    0.0
                };
                let all = shape.pairs + alone;
                let begin = shape.subjects.min(shape.objects) * BEGIN;
                (if s == o { all.sqrt() } else { all }, begin + all)
            }
        }
    }

    fn shape(&mut self, path: &Path, graph: &GraphRef) -> PathReach {
        let known = self.reaches.iter();
        if let Some(known) = known
            .filter(|r| r.0 == *path && r.1 == *graph)
            .map(|r| r.2)
            .next()
        {
            return known;
        }
        let shape = self.shape_of(path, graph);
        self.reaches.push((path.clone(), graph.clone(), shape));
        shape
    }

    fn shape_of(&self, path: &Path, graph: &GraphRef) -> PathReach {
        let of = |p: &Path| self.shape_of(p, graph);
        match path {
            Path::Predicate(None) => PathReach {
                subjects: 0.0,
                objects: 0.0,
                pairs: 0.0,
                nullable: false,
            },
            Path::Predicate(Some(p)) => {
                let s = self.snapshot.predicate_statistics(*p);
                let edges = self.snapshot.edges(*p, Direction::Out);
                PathReach {
                    subjects: f64::from(s.subjects),
                    objects: f64::from(s.objects),
                    pairs: edges.edge_estimate(scope_of(graph)) as f64,
                    nullable: false,
                }
            }
            Path::Except(_) => {
                let vertices = f64::from(self.snapshot.vertices());
                PathReach {
                    subjects: vertices / 2.0,
                    objects: vertices / 2.0,
                    pairs: self.snapshot.quads() as f64,
                    nullable: false,
                }
            }
            Path::Inverse(p) => {
                let p = of(p);
                PathReach {
                    subjects: p.objects,
                    objects: p.subjects,
                    ..p
                }
            }
            Path::Sequence(parts) => {
                let mut parts = parts.iter().map(of);
                let Some(first) = parts.next() else {
                    return of(&Path::Predicate(None));
                };
                parts.fold(first, |a, b| {
                    let met = (b.subjects / a.objects.max(1.0)).min(1.0);
                    let zero = f64::from(u8::from(b.nullable));
                    let pairs = a.pairs * (met * b.pairs / b.subjects.max(1.0) + zero)
                        + if a.nullable { b.pairs } else { 0.0 };
                    PathReach {
                        subjects: (a.subjects + if a.nullable { b.subjects } else { 0.0 })
                            .min(pairs),
                        objects: (b.objects + if b.nullable { a.objects } else { 0.0 }).min(pairs),
                        pairs,
                        nullable: a.nullable && b.nullable,
                    }
                })
            }
            Path::Alternative(parts) => {
                let none = of(&Path::Predicate(None));
                parts.iter().map(of).fold(none, |a, b| PathReach {
                    subjects: a.subjects + b.subjects,
                    objects: a.objects + b.objects,
                    pairs: a.pairs + b.pairs,
                    nullable: a.nullable || b.nullable,
                })
            }
            Path::ZeroOrOne(p) => PathReach {
                nullable: true,
                ..of(p)
            },
            Path::ZeroOrMore(p) | Path::OneOrMore(p) => {
                let one = of(p);
                let mut labels = vec![];
                let most = (one.subjects * one.objects).max(one.pairs);
                let each = if labels_of(p, false, &mut labels) {
                    self.mean_walk(&labels, graph, one)
                } else {
                    one.objects.sqrt()
                };
                PathReach {
                    pairs: (one.subjects * each).clamp(one.pairs.min(most), most),
                    nullable: one.nullable || matches!(path, Path::ZeroOrMore(_)),
                    ..one
                }
            }
        }
    }

    /// Mean number of nodes reached by repeating these steps, from a node that has at least one of the edges.
    fn mean_walk(&self, labels: &[Label], graph: &GraphRef, one: PathReach) -> f64 {
        let scope = scope_of(graph);
        let edges = |l: &&Label| self.snapshot.edges(l.0, l.1).edge_estimate(scope);
        let Some(&(p, way)) = labels.iter().max_by_key(edges) else {
            return 0.0;
        };
        let view = self.snapshot.edges(p, way);
        let (mut total, mut walks, mut keys) = (0.0, 0.0, vec![]);
        for i in 0..WALKS {
            // Sampled nodes are evenly spread, each with a different offset, so that no period in the data distorts the
            // sample.
            let offset = (f64::from(i) * 0.618_034).fract();
            keys.clear();
            view.some_key((f64::from(i) + offset) / f64::from(WALKS), &mut keys);
            if let Some(&v) = keys.first() {
                total += self.walk(labels, scope, v, one.objects);
                walks += 1.0;
            }
        }
        if walks == 0.0 {
            one.objects.sqrt()
        } else {
            total / walks
        }
    }

    /// Estimated number of nodes that the path leads to from `v`, or, if `back`, from which it leads to `v`. `None` for
    /// a path that cannot be followed.
    fn constant_walk(
        &self,
        path: &Path,
        graph: &GraphRef,
        v: u32,
        back: bool,
        shape: PathReach,
    ) -> Option<f64> {
        let mut labels = vec![];
        if !labels_of(path, back, &mut labels) {
            return None;
        }
        let zero = f64::from(u8::from(shape.nullable));
        let scope = scope_of(graph);
        if !repeats(path) {
            let degree = |l: &Label| degree(self.snapshot.edges(l.0, l.1), scope, v) as f64;
            let single = matches!(path, Path::ZeroOrOne(_));
            return single.then(|| zero + labels.iter().map(degree).sum::<f64>());
        }
        let ends = if back { shape.subjects } else { shape.objects };
        Some(zero + self.walk(&labels, scope, v, ends))
    }

    /// Estimated number of nodes reached from `from` by repeating these steps: counted while they are few, then
    /// extrapolated. `most` is the largest possible number.
    fn walk(&self, labels: &[Label], scope: GraphScope<'_>, from: u32, most: f64) -> f64 {
        let mut seen = FxHashSet::default();
        let (mut order, mut at, mut skipped) = (vec![from], 0, 0.0);
        let mut scratch = vec![];
        let views: Vec<Edges<'_>> = labels
            .iter()
            .map(|&(p, way)| self.snapshot.edges(p, way))
            .collect();
        let mut fetched = 0;
        while let Some(&v) = order.get(at) {
            // Reads the degrees of all nodes found so far from the other shards at once.
            if at >= fetched
                && let Some(sharded) = self.snapshot.as_sharded()
            {
                let each = |&(p, way): &Label| order[at..].iter().map(move |&v| (p, way, v));
                sharded.fetch_degrees(labels.iter().flat_map(each));
                fetched = order.len();
            }
            at += 1;
            for view in &views {
                let degree = degree(*view, scope, v);
                if degree > LIST {
                    skipped += degree as f64;
                } else if degree > 0 {
                    let list = view.read(v, scope, &mut scratch);
                    order.extend(list.iter().filter(|n| seen.insert(**n)));
                }
            }
            if order.len() > LONGEST || skipped > 0.0 && at >= 8 {
                // The number keeps growing, so it is unknown how far: take the geometric mean of the nodes found and
                // the maximum.
                let found = seen.len() as f64 + skipped;
                return (found * most.max(1.0))
                    .sqrt()
                    .clamp(found.min(most), most.max(found));
            }
        }
        seen.len() as f64 + skipped
    }
}

fn degree(view: Edges<'_>, scope: GraphScope<'_>, v: u32) -> u64 {
    let default = if matches!(scope, GraphScope::Default | GraphScope::Union) {
        view.default_degree(v)
    } else {
        0
    };
    let named = if matches!(scope, GraphScope::Default) {
        0
    } else {
        view.named_degree(v)
    };
    default + named
}

/// The graphs to read; all named graphs if each row chooses its graph.
fn scope_of(graph: &GraphRef) -> GraphScope<'_> {
    graph.scope().unwrap_or(GraphScope::AnyNamed)
}

/// Collects the edges of all steps of a path; false if there are too many, or a step may follow any predicate.
fn labels_of(path: &Path, back: bool, out: &mut Vec<Label>) -> bool {
    match path {
        Path::Predicate(None) => true,
        Path::Predicate(Some(p)) => {
            let way = if back { Direction::In } else { Direction::Out };
            if !out.contains(&(*p, way)) {
                out.push((*p, way));
            }
            // Following a path reads every label at every node, so there must be few.
            out.len() <= 8
        }
        Path::Inverse(p) => labels_of(p, !back, out),
        Path::Sequence(list) | Path::Alternative(list) => {
            list.iter().all(|p| labels_of(p, back, out))
        }
        Path::ZeroOrOne(p) | Path::ZeroOrMore(p) | Path::OneOrMore(p) => labels_of(p, back, out),
        Path::Except(_) => false,
    }
}

/// Returns true if the path contains a `*` or `+`.
fn repeats(path: &Path) -> bool {
    match path {
        Path::Predicate(_) | Path::Except(_) => false,
        Path::Inverse(p) | Path::ZeroOrOne(p) => repeats(p),
        Path::Sequence(list) | Path::Alternative(list) => list.iter().any(repeats),
        Path::ZeroOrMore(_) | Path::OneOrMore(_) => true,
    }
}
