//! Random queries with property paths, and their answers by the definitions of SPARQL 1.1 §18: what paths with ends that are
//! constants, bound or free mean, how often each solution comes, and which terms a path of length zero leads from. Nothing
//! is planned: every pattern is evaluated whole, the innermost first.

use crate::random::{Rng, graph, predicate, vertex};
use oxrdf::{GraphName, NamedNode, Quad};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Vertices of the data; those behind them are in no quad.
const NODES: usize = 7;
const NOWHERE: usize = 2;
const LABELS: usize = 3;
const NAMED: usize = 2;
const VARIABLES: usize = 4;
/// Solutions beyond which a query is given up.
const MOST: usize = 20_000;

/// (graph, 0 for the default one; subject; predicate; object)
type Edge = (usize, usize, usize, usize);

/// A path.
#[derive(Clone, Debug)]
enum Path {
    One(usize),
    Inverse(Box<Path>),
    Sequence(Box<Path>, Box<Path>),
    Either(Box<Path>, Box<Path>),
    Optional(Box<Path>),
    Star(Box<Path>),
    Plus(Box<Path>),
    Not(usize),
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(p) => write!(f, "{}", predicate(*p)),
            Self::Inverse(p) => write!(f, "^({p})"),
            Self::Sequence(a, b) => write!(f, "({a}/{b})"),
            Self::Either(a, b) => write!(f, "({a}|{b})"),
            Self::Optional(p) => write!(f, "({p})?"),
            Self::Star(p) => write!(f, "({p})*"),
            Self::Plus(p) => write!(f, "({p})+"),
            Self::Not(p) => write!(f, "!{}", predicate(*p)),
        }
    }
}

/// An end of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Var(usize),
    Node(usize),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Var(v) => write!(f, "?x{v}"),
            Self::Node(n) => write!(f, "{}", vertex(*n)),
        }
    }
}

#[derive(Clone, Debug)]
enum Part {
    Path(End, Path, End),
    Values(Vec<usize>, Vec<Vec<Option<usize>>>),
    Optional(Vec<Part>),
    Minus(Vec<Part>),
    Union(Vec<Part>, Vec<Part>),
    Exists(bool, Vec<Part>),
    Group(Vec<Part>),
    /// A sub-query that gives each solution once.
    Distinct(Vec<Part>),
    In(usize, Vec<Part>),
    /// The variable stands nowhere else.
    Each(usize, Vec<Part>),
    Equal(usize, Vec<usize>),
}

struct Parts<'a>(&'a [Part]);

impl fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ ")?;
        for p in self.0 {
            write!(f, "{p} ")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(s, p, o) => write!(f, "{s} {p} {o} ."),
            Self::Values(vs, rows) => {
                f.write_str("VALUES (")?;
                for v in vs {
                    write!(f, "?x{v} ")?;
                }
                f.write_str(") { ")?;
                for row in rows {
                    f.write_str("(")?;
                    for cell in row {
                        match cell {
                            Some(n) => write!(f, "{} ", vertex(*n))?,
                            None => f.write_str("UNDEF ")?,
                        }
                    }
                    f.write_str(") ")?;
                }
                f.write_str("}")
            }
            Self::Optional(p) => write!(f, "OPTIONAL {}", Parts(p)),
            Self::Minus(p) => write!(f, "MINUS {}", Parts(p)),
            Self::Union(a, b) => write!(f, "{} UNION {}", Parts(a), Parts(b)),
            Self::Exists(true, p) => write!(f, "FILTER EXISTS {}", Parts(p)),
            Self::Exists(false, p) => write!(f, "FILTER NOT EXISTS {}", Parts(p)),
            Self::Group(p) => write!(f, "{}", Parts(p)),
            Self::Distinct(p) => write!(f, "{{ SELECT DISTINCT * {} }}", Parts(p)),
            Self::In(g, p) => write!(f, "GRAPH {} {}", graph(*g), Parts(p)),
            Self::Each(v, p) => write!(f, "GRAPH ?g{v} {}", Parts(p)),
            Self::Equal(v, list) => {
                let names: Vec<String> = list.iter().map(|n| vertex(*n).to_string()).collect();
                match names.as_slice() {
                    [one] => write!(f, "FILTER(?x{v} = {one})"),
                    _ => write!(f, "FILTER(?x{v} IN ({}))", names.join(", ")),
                }
            }
        }
    }
}

/// Variables `?x0 …`, then `?g0 …`, to nodes; graphs are nodes above 100.
type Row = BTreeMap<usize, usize>;

/// Gave too many solutions.
struct TooMany;

type Rows = Result<Vec<Row>, TooMany>;

/// The definitions, over one active graph.
#[derive(Clone, Copy)]
struct World<'a> {
    edges: &'a [Edge],
    graph: usize,
}

impl World<'_> {
    fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|e| e.0 == self.graph)
    }

    fn nodes(&self) -> BTreeSet<usize> {
        self.edges().flat_map(|e| [e.1, e.3]).collect()
    }

    /// §18.4: pairs of ends; a variable gives all, a node those with that end.
    fn path(&self, s: End, path: &Path, o: End) -> Vec<(usize, usize)> {
        let fits = |e: End, n: usize| matches!(e, End::Var(_)) || e == End::Node(n);
        let any = End::Var(usize::MAX);
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
                    (End::Node(n), _) => {
                        let ends = self.closure(n, p, star, false);
                        ends.into_iter().map(|e| (n, e)).collect()
                    }
                    (_, End::Node(n)) => {
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

    fn zero(&self, s: End, o: End) -> Vec<(usize, usize)> {
        match (s, o) {
            (End::Node(n), _) | (_, End::Node(n)) => vec![(n, n)],
            _ => self.nodes().into_iter().map(|n| (n, n)).collect(),
        }
    }

    /// ALP of §18.4.
    fn closure(&self, from: usize, p: &Path, star: bool, back: bool) -> BTreeSet<usize> {
        let any = End::Var(usize::MAX);
        let next = |n: usize| -> Vec<usize> {
            if back {
                self.path(any, p, End::Node(n))
                    .into_iter()
                    .map(|x| x.0)
                    .collect()
            } else {
                self.path(End::Node(n), p, any)
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

    /// §18.6, the outer row put in.
    fn group(&self, parts: &[Part], outer: &Row) -> Rows {
        let mut rows = vec![Row::new()];
        // Filters see the whole group.
        for p in parts
            .iter()
            .filter(|p| !matches!(p, Part::Exists(..) | Part::Equal(..)))
        {
            rows = match p {
                Part::Optional(inner) => {
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
                Part::Minus(inner) => {
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
                Part::Exists(wanted, inner) => {
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
                Part::Equal(v, list) => {
                    rows.retain(|r| r.get(v).or(outer.get(v)).is_some_and(|n| list.contains(n)));
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    fn part(&self, p: &Part, outer: &Row) -> Rows {
        Ok(match p {
            Part::Path(s, path, o) => {
                let put = |e: &End| match e {
                    End::Var(v) => outer.get(v).map_or(*e, |n| End::Node(*n)),
                    End::Node(_) => *e,
                };
                let pairs = self.path(put(s), path, put(o));
                if pairs.len() > MOST {
                    return Err(TooMany);
                }
                let row = |(a, b): (usize, usize)| {
                    let mut row = Row::new();
                    for (e, n) in [(s, a), (o, b)] {
                        if let End::Var(v) = e
                            && *row.entry(*v).or_insert(n) != n
                        {
                            return None;
                        }
                    }
                    Some(row)
                };
                pairs.into_iter().filter_map(row).collect()
            }
            Part::Values(vs, rows) => rows
                .iter()
                .map(|r| {
                    vs.iter()
                        .zip(r)
                        .filter_map(|(v, n)| Some((*v, (*n)?)))
                        .collect()
                })
                .collect(),
            Part::Union(a, b) => {
                let mut all = self.group(a, outer)?;
                all.extend(self.group(b, outer)?);
                all
            }
            Part::Group(inner) => self.group(inner, outer)?,
            Part::Distinct(inner) => {
                let all: BTreeSet<Row> = self.group(inner, outer)?.into_iter().collect();
                all.into_iter().collect()
            }
            Part::In(g, inner) => {
                let graph = g + 1;
                if !self.edges.iter().any(|e| e.0 == graph) {
                    return Ok(vec![]);
                }
                World { graph, ..*self }.group(inner, outer)?
            }
            Part::Each(v, inner) => {
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
            Part::Optional(_) | Part::Minus(_) | Part::Exists(..) | Part::Equal(..) => {
                self.group(std::slice::from_ref(p), outer)?
            }
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

/// Variables that all rows bind, and that some may.
fn bound(parts: &[Part]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut sure, mut some) = (BTreeSet::new(), BTreeSet::new());
    for p in parts {
        let (a, b) = match p {
            Part::Path(s, _, o) => {
                let of = |e: &End| match e {
                    End::Var(v) => Some(*v),
                    End::Node(_) => None,
                };
                let all: BTreeSet<usize> = [s, o].into_iter().filter_map(of).collect();
                (all.clone(), all)
            }
            Part::Values(vs, rows) => {
                let all: BTreeSet<usize> = vs.iter().copied().collect();
                let full = rows.iter().all(|r| r.iter().all(Option::is_some));
                (if full { all.clone() } else { BTreeSet::new() }, all)
            }
            Part::Union(a, b) => {
                let (a, b) = (bound(a), bound(b));
                (&a.0 & &b.0, &a.1 | &b.1)
            }
            Part::Optional(inner) => (BTreeSet::new(), bound(inner).1),
            Part::Group(inner) | Part::Distinct(inner) | Part::In(_, inner) => bound(inner),
            Part::Each(v, inner) => {
                let mut both = bound(inner);
                both.0.insert(VARIABLES + v);
                both.1.insert(VARIABLES + v);
                both
            }
            Part::Minus(_) | Part::Exists(..) | Part::Equal(..) => continue,
        };
        sure.extend(a);
        some.extend(b);
    }
    (sure, some)
}

struct Maker<'a> {
    rng: &'a mut Rng,
    graphs: usize,
    left: usize,
}

impl Maker<'_> {
    fn node(&mut self) -> usize {
        match self.rng.below(8) {
            0 => NODES + self.rng.below(NOWHERE),
            _ => self.rng.below(NODES),
        }
    }

    fn end(&mut self) -> End {
        if self.rng.chance(25) {
            End::Node(self.node())
        } else {
            End::Var(self.rng.below(VARIABLES))
        }
    }

    fn group(&mut self, depth: usize) -> Vec<Part> {
        let n = 1 + self.rng.below(3);
        let mut parts = vec![];
        for _ in 0..n {
            if self.left == 0 && !parts.is_empty() {
                break;
            }
            self.left = self.left.saturating_sub(1);
            let part = self.part(depth);
            parts.push(part);
        }
        // A variable that only some rows bind is a constant in only some bodies of EXISTS: a path of length zero from a term that
        // is nowhere is then not found.
        let (sure, some) = bound(&parts);
        let told = |p: &Part| match p {
            Part::Exists(_, body) => (&bound(body).1 & &some).is_subset(&sure),
            _ => true,
        };
        parts.retain(told);
        parts
    }

    /// What the body of EXISTS has: patterns only, for what substitution does to more is disputed.
    fn patterns(&mut self) -> Vec<Part> {
        (0..1 + self.rng.below(2)).map(|_| self.pattern()).collect()
    }

    fn pattern(&mut self) -> Part {
        let (s, o) = (self.end(), self.end());
        let path = if self.rng.chance(25) {
            Path::One(self.rng.below(LABELS))
        } else {
            random_path(self.rng, 0)
        };
        Part::Path(s, path, o)
    }

    fn part(&mut self, depth: usize) -> Part {
        let d = depth + 1;
        match self.rng.below(if depth > 2 { 16 } else { 26 }) {
            0..=11 => self.pattern(),
            12..=14 => {
                let mut vs = vec![self.rng.below(VARIABLES)];
                let second = self.rng.below(VARIABLES);
                if self.rng.chance(40) && second != vs[0] {
                    vs.push(second);
                }
                let rows = (0..1 + self.rng.below(3))
                    .map(|_| {
                        vs.iter()
                            .map(|_| (!self.rng.chance(8)).then(|| self.node()))
                            .collect()
                    })
                    .collect();
                Part::Values(vs, rows)
            }
            15 => {
                let list = (0..1 + self.rng.below(2)).map(|_| self.node()).collect();
                Part::Equal(self.rng.below(VARIABLES), list)
            }
            16..=18 => Part::Optional(self.group(d)),
            19 => Part::Union(self.group(d), self.group(d)),
            20 => Part::Minus(self.group(d)),
            21 => Part::Exists(self.rng.chance(60), self.patterns()),
            22 => Part::Group(self.group(d)),
            23 => Part::Distinct(self.group(d)),
            24 if self.graphs > 0 => Part::In(self.rng.below(NAMED), self.group(d)),
            25 if self.graphs > 0 => {
                self.graphs -= 1;
                Part::Each(self.graphs, self.group(d))
            }
            _ => self.pattern(),
        }
    }
}

fn random_path(rng: &mut Rng, depth: usize) -> Path {
    let p = rng.below(LABELS);
    if depth > 3 {
        return Path::One(p);
    }
    let mut inner = || Box::new(random_path(rng, depth + 1));
    let (a, b) = (inner(), inner());
    match rng.below(if depth == 0 { 16 } else { 22 }) {
        0..=2 => Path::Star(a),
        3 | 4 => Path::Plus(a),
        5 | 6 => Path::Optional(a),
        7..=12 => Path::Sequence(a, b),
        13 => Path::Either(a, b),
        14 => Path::Inverse(a),
        15 => Path::Not(p),
        _ => Path::One(p),
    }
}

/// A query with property paths.
#[derive(Clone, Debug)]
pub struct PathQuery {
    /// The query.
    pub text: String,
    /// Its rows as sorted text, `-` for what is unbound, by the definitions.
    pub answer: Vec<String>,
}

/// A small graph with named graphs. The same seed gives the same.
pub fn path_data(rng: &mut Rng) -> Vec<Quad> {
    let mut out: Vec<Quad> = vec![];
    let named = [0, 50, 90][rng.below(3)];
    for _ in 0..4 + rng.below(14) {
        let graph_name = if rng.chance(named) {
            GraphName::NamedNode(graph(rng.below(NAMED)))
        } else {
            GraphName::DefaultGraph
        };
        let (s, p, o) = (rng.below(NODES), rng.below(LABELS), rng.below(NODES));
        let quad = Quad::new(vertex(s), predicate(p), vertex(o), graph_name);
        if !out.contains(&quad) {
            out.push(quad);
        }
    }
    out
}

/// A random query over data of [`path_data`], and its answer.
pub fn path_query(rng: &mut Rng, data: &[Quad]) -> PathQuery {
    let number = |n: &NamedNode| {
        let digits = n.as_str().trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<usize>().unwrap_or(0)
    };
    let edges: Vec<Edge> = data
        .iter()
        .filter_map(|q| {
            let g = match &q.graph_name {
                GraphName::NamedNode(g) => number(g) + 1,
                _ => 0,
            };
            match (&q.subject, &q.object) {
                (oxrdf::NamedOrBlankNode::NamedNode(s), oxrdf::Term::NamedNode(o)) => {
                    Some((g, number(s), number(&q.predicate), number(o)))
                }
                _ => None,
            }
        })
        .collect();
    loop {
        let mut m = Maker {
            rng,
            graphs: 2,
            left: 6,
        };
        let parts = m.group(0);
        let world = World {
            edges: &edges,
            graph: 0,
        };
        let Ok(rows) = world.group(&parts, &Row::new()) else {
            continue;
        };
        let columns: Vec<usize> = (0..VARIABLES + 2).filter(|_| rng.chance(70)).collect();
        let names: Vec<String> = columns.iter().map(|&c| name(c)).collect();
        let mut answer: Vec<String> = rows
            .iter()
            .map(|r| {
                let cell = |c: &usize| match r.get(c) {
                    None => "-".to_owned(),
                    Some(n) if *n >= 100 => graph(n - 100).to_string(),
                    Some(n) => vertex(*n).to_string(),
                };
                columns.iter().map(cell).collect::<Vec<_>>().join(" ")
            })
            .collect();
        answer.sort();
        let body = Parts(&parts);
        let text = match rng.below(6) {
            _ if columns.is_empty() => {
                answer = vec![(!rows.is_empty()).to_string()];
                format!("ASK {body}")
            }
            0 | 1 => {
                answer.dedup();
                format!("SELECT DISTINCT {} {body}", names.join(" "))
            }
            2 => {
                let all = answer.iter().filter(|a| !a.is_empty());
                let first = |a: &&String| !a.starts_with('-');
                let count = all
                    .filter(first)
                    .map(|a| a.split(' ').next().unwrap_or(""))
                    .collect::<BTreeSet<_>>()
                    .len();
                answer = vec![format!(
                    "\"{count}\"^^<http://www.w3.org/2001/XMLSchema#integer>"
                )];
                format!("SELECT (COUNT(DISTINCT {}) AS ?n) {body}", names[0])
            }
            _ => format!("SELECT {} {body}", names.join(" ")),
        };
        return PathQuery { text, answer };
    }
}

fn name(column: usize) -> String {
    match column.checked_sub(VARIABLES) {
        Some(g) => format!("?g{g}"),
        None => format!("?x{column}"),
    }
}
