//! The definitions of SPARQL 1.1 §18, implemented literally.

use super::{Edge, NAMED, Path, PatternEnd, PatternPart, VARIABLES};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of solutions of a query; queries with more are not used.
const MOST: usize = 20_000;

/// A solution, as node by variable: first the variables `?x0 …`, then `?g0 …`. Nodes above 100 are graphs.
pub(super) type Row = BTreeMap<usize, usize>;

/// Error for a query with more than [`MOST`] solutions.
pub(super) struct TooMany;

pub(super) type Rows = Result<Vec<Row>, TooMany>;

/// The data, with one active graph, over which the definitions are evaluated.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub edges: &'a [Edge],
    pub graph: usize,
}

impl World<'_> {
    fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|e| e.0 == self.graph)
    }

    fn nodes(&self) -> BTreeSet<usize> {
        self.edges().flat_map(|e| [e.1, e.3]).collect()
    }

    /// The pairs of ends that a path connects (§18.4). An end that is a variable may be any node.
    fn path(&self, s: PatternEnd, path: &Path, o: PatternEnd) -> Vec<(usize, usize)> {
        let fits =
            |e: PatternEnd, n: usize| matches!(e, PatternEnd::Var(_)) || e == PatternEnd::Node(n);
        let any = PatternEnd::Var(usize::MAX);
        let mut out: Vec<(usize, usize)> = match path {
            Path::One(p) => self
                .edges()
                .filter(|e| e.2 == *p)
                .map(|e| (e.1, e.3))
                .collect(),
            Path::Not(p) => self
                .edges()
                .filter(|e| e.2 != *p)
                .map(|e| (e.1, e.3))
                .collect(),
            Path::Inverse(p) => self
                .path(o, p, s)
                .into_iter()
                .map(|(a, b)| (b, a))
                .collect(),
            Path::Sequence(a, b) => {
                let second = self.path(any, b, o);
                let first = self.path(s, a, any);
                let on = |x: (usize, usize)| {
                    second
                        .iter()
                        .filter(move |y| y.0 == x.1)
                        .map(move |y| (x.0, y.1))
                };
                first.into_iter().flat_map(on).collect()
            }
            Path::Either(a, b) => {
                let mut all = self.path(s, a, o);
                all.extend(self.path(s, b, o));
                all
            }
            Path::Optional(p) => {
                let mut all: BTreeSet<_> = self.path(s, p, o).into_iter().collect();
                all.extend(self.zero(s, o));
                all.into_iter().collect()
            }
            Path::Star(p) | Path::Plus(p) => {
                let star = matches!(path, Path::Star(_));
                match (s, o) {
                    (PatternEnd::Node(n), _) => {
                        let ends = self.closure(n, p, star, false);
                        ends.into_iter().map(|e| (n, e)).collect()
                    }
                    (_, PatternEnd::Node(n)) => {
                        let ends = self.closure(n, p, star, true);
                        ends.into_iter().map(|e| (e, n)).collect()
                    }
                    _ => {
                        let from = |n| {
                            let ends = self.closure(n, p, star, false);
                            ends.into_iter().map(move |e| (n, e))
                        };
                        self.nodes().into_iter().flat_map(from).collect()
                    }
                }
            }
        };
        out.retain(|&(a, b)| fits(s, a) && fits(o, b));
        out
    }

    fn zero(&self, s: PatternEnd, o: PatternEnd) -> Vec<(usize, usize)> {
        match (s, o) {
            (PatternEnd::Node(n), _) | (_, PatternEnd::Node(n)) => vec![(n, n)],
            _ => self.nodes().into_iter().map(|n| (n, n)).collect(),
        }
    }

    /// The function ALP of §18.4.
    fn closure(&self, from: usize, p: &Path, star: bool, back: bool) -> BTreeSet<usize> {
        let any = PatternEnd::Var(usize::MAX);
        let next = |n: usize| -> Vec<usize> {
            if back {
                self.path(any, p, PatternEnd::Node(n))
                    .into_iter()
                    .map(|x| x.0)
                    .collect()
            } else {
                self.path(PatternEnd::Node(n), p, any)
                    .into_iter()
                    .map(|x| x.1)
                    .collect()
            }
        };
        let mut seen = BTreeSet::new();
        let mut open = if star { vec![from] } else { next(from) };
        while let Some(n) = open.pop() {
            if seen.insert(n) {
                open.extend(next(n));
            }
        }
        seen
    }

    /// The solutions of a group. For a group inside EXISTS, `outer` is the solution that is substituted (§18.6).
    pub fn group(&self, parts: &[PatternPart], outer: &Row) -> Rows {
        let mut rows = vec![Row::new()];
        // Filters are applied to the solutions of the whole group, so they are evaluated last.
        for p in parts
            .iter()
            .filter(|p| !matches!(p, PatternPart::Exists(..) | PatternPart::Equal(..)))
        {
            rows = match p {
                PatternPart::Optional(inner) => {
                    let inner = self.group(inner, outer)?;
                    let mut out = vec![];
                    for r in &rows {
                        let before = out.len();
                        out.extend(inner.iter().filter_map(|i| merged(r, i)));
                        if out.len() == before {
                            out.push(r.clone());
                        }
                        limit(&out)?;
                    }
                    out
                }
                PatternPart::Minus(inner) => {
                    let inner = self.group(inner, outer)?;
                    let drops = |r: &Row, i: &Row| {
                        i.keys().any(|k| r.contains_key(k)) && merged(r, i).is_some()
                    };
                    rows.retain(|r| !inner.iter().any(|i| drops(r, i)));
                    rows
                }
                p => join(&rows, &self.part(p, outer)?)?,
            };
        }
        for p in parts {
            match p {
                PatternPart::Exists(wanted, inner) => {
                    let mut out = vec![];
                    for r in rows {
                        let mut all = outer.clone();
                        all.extend(r.iter());
                        if self.group(inner, &all)?.is_empty() != *wanted {
                            out.push(r);
                        }
                    }
                    rows = out;
                }
                PatternPart::Equal(v, list) => {
                    rows.retain(|r| r.get(v).or(outer.get(v)).is_some_and(|n| list.contains(n)));
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    fn part(&self, p: &PatternPart, outer: &Row) -> Rows {
        Ok(match p {
            PatternPart::Path(s, path, o) => {
                let put = |e: &PatternEnd| match e {
                    PatternEnd::Var(v) => outer.get(v).map_or(*e, |n| PatternEnd::Node(*n)),
                    PatternEnd::Node(_) => *e,
                };
                let pairs = self.path(put(s), path, put(o));
                if pairs.len() > MOST {
                    return Err(TooMany);
                }
                let row = |(a, b): (usize, usize)| {
                    let mut row = Row::new();
                    for (e, n) in [(s, a), (o, b)] {
                        if let PatternEnd::Var(v) = e
                            && *row.entry(*v).or_insert(n) != n
                        {
                            return None;
                        }
                    }
                    Some(row)
                };
                pairs.into_iter().filter_map(row).collect()
            }
            PatternPart::Values(vs, rows) => rows
                .iter()
                .map(|r| {
                    vs.iter()
                        .zip(r)
                        .filter_map(|(v, n)| Some((*v, (*n)?)))
                        .collect()
                })
                .collect(),
            PatternPart::Union(a, b) => {
                let mut all = self.group(a, outer)?;
                all.extend(self.group(b, outer)?);
                all
            }
            PatternPart::Group(inner) => self.group(inner, outer)?,
            PatternPart::Distinct(inner) => {
                let all: BTreeSet<Row> = self.group(inner, outer)?.into_iter().collect();
                all.into_iter().collect()
            }
            PatternPart::In(g, inner) => {
                let graph = g + 1;
                if !self.edges.iter().any(|e| e.0 == graph) {
                    return Ok(vec![]);
                }
                World { graph, ..*self }.group(inner, outer)?
            }
            PatternPart::Each(v, inner) => {
                let mut all = vec![];
                for g in (0..NAMED).filter(|g| self.edges.iter().any(|e| e.0 == g + 1)) {
                    let world = World {
                        graph: g + 1,
                        ..*self
                    };
                    let name = (VARIABLES + v, 100 + g);
                    all.extend(world.group(inner, outer)?.into_iter().map(|mut r| {
                        r.insert(name.0, name.1);
                        r
                    }));
                }
                all
            }
            PatternPart::Optional(_)
            | PatternPart::Minus(_)
            | PatternPart::Exists(..)
            | PatternPart::Equal(..) => self.group(std::slice::from_ref(p), outer)?,
        })
    }
}

fn limit(rows: &[Row]) -> Result<(), TooMany> {
    if rows.len() > MOST {
        return Err(TooMany);
    }
    Ok(())
}

fn merged(a: &Row, b: &Row) -> Option<Row> {
    let mut out = a.clone();
    for (v, n) in b {
        if *out.entry(*v).or_insert(*n) != *n {
            return None;
        }
    }
    Some(out)
}

fn join(a: &[Row], b: &[Row]) -> Rows {
    let mut out = vec![];
    for x in a {
        out.extend(b.iter().filter_map(|y| merged(x, y)));
        limit(&out)?;
    }
    Ok(out)
}
