//! Random queries with property paths, and their answers by the definitions of SPARQL 1.1 §18. The definitions
//! determine the meaning of paths whose ends are constants, bound or free variables, the multiplicity of each solution,
//! and the terms from which a path of length zero starts. Answers are computed without a plan: every pattern is
//! evaluated completely, from the innermost outwards.

mod definitions;

use crate::random::{Rng, graph, predicate, vertex};
use definitions::{Row, World};
use oxrdf::{GraphName, NamedNode, Quad};
use std::collections::BTreeSet;
use std::fmt;

/// Number of vertices in the data. The next [`NOWHERE`] vertices occur in no quad.
const NODES: usize = 7;
const NOWHERE: usize = 2;
const LABELS: usize = 3;
const NAMED: usize = 2;
const VARIABLES: usize = 4;

/// Graph (0 for the default graph), subject, predicate, object.
type Edge = (usize, usize, usize, usize);

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternEnd {
    Var(usize),
    Node(usize),
}

impl fmt::Display for PatternEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Var(v) => write!(f, "?x{v}"),
            Self::Node(n) => write!(f, "{}", vertex(*n)),
        }
    }
}

#[derive(Clone, Debug)]
enum PatternPart {
    Path(PatternEnd, Path, PatternEnd),
    Values(Vec<usize>, Vec<Vec<Option<usize>>>),
    Optional(Vec<PatternPart>),
    Minus(Vec<PatternPart>),
    Union(Vec<PatternPart>, Vec<PatternPart>),
    Exists(bool, Vec<PatternPart>),
    Group(Vec<PatternPart>),
    /// A sub-query with DISTINCT.
    Distinct(Vec<PatternPart>),
    In(usize, Vec<PatternPart>),
    /// `GRAPH ?g` with a variable that does not occur elsewhere.
    Each(usize, Vec<PatternPart>),
    Equal(usize, Vec<usize>),
}

struct PatternParts<'a>(&'a [PatternPart]);

impl fmt::Display for PatternParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ ")?;
        for p in self.0 {
            write!(f, "{p} ")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for PatternPart {
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
            Self::Optional(p) => write!(f, "OPTIONAL {}", PatternParts(p)),
            Self::Minus(p) => write!(f, "MINUS {}", PatternParts(p)),
            Self::Union(a, b) => write!(f, "{} UNION {}", PatternParts(a), PatternParts(b)),
            Self::Exists(true, p) => write!(f, "FILTER EXISTS {}", PatternParts(p)),
            Self::Exists(false, p) => write!(f, "FILTER NOT EXISTS {}", PatternParts(p)),
            Self::Group(p) => write!(f, "{}", PatternParts(p)),
            Self::Distinct(p) => write!(f, "{{ SELECT DISTINCT * {} }}", PatternParts(p)),
            Self::In(g, p) => write!(f, "GRAPH {} {}", graph(*g), PatternParts(p)),
            Self::Each(v, p) => write!(f, "GRAPH ?g{v} {}", PatternParts(p)),
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

/// The variables that all rows bind, and the variables that at least one row binds.
fn bound(parts: &[PatternPart]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut sure, mut some) = (BTreeSet::new(), BTreeSet::new());
    for p in parts {
        let (a, b) = match p {
            PatternPart::Path(s, _, o) => {
                let of = |e: &PatternEnd| match e {
                    PatternEnd::Var(v) => Some(*v),
                    PatternEnd::Node(_) => None,
                };
                let all: BTreeSet<usize> = [s, o].into_iter().filter_map(of).collect();
                (all.clone(), all)
            }
            PatternPart::Values(vs, rows) => {
                let all: BTreeSet<usize> = vs.iter().copied().collect();
                let full = rows.iter().all(|r| r.iter().all(Option::is_some));
                (if full { all.clone() } else { BTreeSet::new() }, all)
            }
            PatternPart::Union(a, b) => {
                let (a, b) = (bound(a), bound(b));
                (&a.0 & &b.0, &a.1 | &b.1)
            }
            PatternPart::Optional(inner) => (BTreeSet::new(), bound(inner).1),
            PatternPart::Group(inner)
            | PatternPart::Distinct(inner)
            | PatternPart::In(_, inner) => bound(inner),
            PatternPart::Each(v, inner) => {
                let mut both = bound(inner);
                both.0.insert(VARIABLES + v);
                both.1.insert(VARIABLES + v);
                both
            }
            PatternPart::Minus(_) | PatternPart::Exists(..) | PatternPart::Equal(..) => continue,
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

    fn end(&mut self) -> PatternEnd {
        if self.rng.chance(25) {
            PatternEnd::Node(self.node())
        } else {
            PatternEnd::Var(self.rng.below(VARIABLES))
        }
    }

    fn group(&mut self, depth: usize) -> Vec<PatternPart> {
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
        // Removes EXISTS if its body uses a variable that only some rows bind. Substitution would make it a constant
        // for these rows only. A path of length zero from a constant exists even if the term is in no quad, so the
        // result would depend on how EXISTS is evaluated.
        let (sure, some) = bound(&parts);
        let told = |p: &PatternPart| match p {
            PatternPart::Exists(_, body) => (&bound(body).1 & &some).is_subset(&sure),
            _ => true,
        };
        parts.retain(told);
        parts
    }

    /// The body of EXISTS: patterns only, since it is disputed how substitution affects other elements.
    fn patterns(&mut self) -> Vec<PatternPart> {
        (0..1 + self.rng.below(2)).map(|_| self.pattern()).collect()
    }

    fn pattern(&mut self) -> PatternPart {
        let (s, o) = (self.end(), self.end());
        let path = if self.rng.chance(25) {
            Path::One(self.rng.below(LABELS))
        } else {
            random_path(self.rng, 0)
        };
        PatternPart::Path(s, path, o)
    }

    fn part(&mut self, depth: usize) -> PatternPart {
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
                PatternPart::Values(vs, rows)
            }
            15 => {
                let list = (0..1 + self.rng.below(2)).map(|_| self.node()).collect();
                PatternPart::Equal(self.rng.below(VARIABLES), list)
            }
            16..=18 => {
                // Removes filters of the group in OPTIONAL: they see the rows before the OPTIONAL, which the
                // definitions in this module do not implement.
                let mut body = self.group(d);
                body.retain(|p| !matches!(p, PatternPart::Equal(..) | PatternPart::Exists(..)));
                PatternPart::Optional(body)
            }
            19 => PatternPart::Union(self.group(d), self.group(d)),
            20 => PatternPart::Minus(self.group(d)),
            21 => PatternPart::Exists(self.rng.chance(60), self.patterns()),
            22 => PatternPart::Group(self.group(d)),
            23 => PatternPart::Distinct(self.group(d)),
            24 if self.graphs > 0 => PatternPart::In(self.rng.below(NAMED), self.group(d)),
            25 if self.graphs > 0 => {
                self.graphs -= 1;
                PatternPart::Each(self.graphs, self.group(d))
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
    /// The query's text.
    pub text: String,
    /// The rows according to the definitions, as sorted text with `-` for an unbound variable.
    pub answer: Vec<String>,
}

/// Random quads: a small default graph, and named graphs. The same seed gives the same quads.
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

/// A random query over the quads of [`path_data`], and its answer. Queries with too many solutions are replaced.
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
        let body = PatternParts(&parts);
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
