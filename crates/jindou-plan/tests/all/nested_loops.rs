//! Random data, random queries and their answers by nested loops over terms.

use jindou_model::term;
use jindou_store::Snapshot;
use jindou_store::testing::{TermQuad, changed, store_of_terms};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use jindou_testing::Rng;

/// Terms as they stand in a query: `<…>` or an integer.
pub type Term = String;
/// Subject, predicate, object, graph; an empty graph is the default one.
pub type Quad = [Term; 4];

pub struct Case {
    pub snapshot: Snapshot,
    /// Quads that the snapshot holds.
    pub quads: BTreeSet<Quad>,
    _folder: Box<dyn std::any::Any>,
}

const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

pub fn bytes(t: &str) -> Vec<u8> {
    let mut out = vec![];
    match t.strip_prefix('<') {
        Some(iri) => term::push_iri(iri.trim_end_matches('>'), &mut out),
        None if t.is_empty() => {}
        None => term::push_typed(t, "http://www.w3.org/2001/XMLSchema#integer", &mut out),
    }
    out
}

fn iri(kind: char, n: usize) -> Term {
    format!("<http://e/{kind}{n}>")
}

fn resource(rng: &mut Rng) -> Term {
    match rng.below(20) {
        // Predicates and graphs are vertices like any other.
        0 => predicate(rng),
        1 => iri('g', rng.below(3)),
        _ => iri('v', rng.below(9)),
    }
}

fn predicate(rng: &mut Rng) -> Term {
    iri('p', rng.below(4))
}

fn quad(rng: &mut Rng, graphs: usize) -> Quad {
    let s = resource(rng);
    let g = if rng.chance(graphs) {
        iri('g', rng.below(3))
    } else {
        String::new()
    };
    if rng.chance(25) {
        return [s, TYPE.into(), iri('c', rng.below(3)), g];
    }
    let o = if rng.chance(25) {
        rng.below(4).to_string()
    } else {
        resource(rng)
    };
    [s, predicate(rng), o, g]
}

impl Case {
    /// A store of `base` with `added` laid over it; every term of `added` must be in `base`.
    pub fn new(base: &[[&str; 4]], added: &[[&str; 4]]) -> Self {
        let own = |q: &[&str; 4]| q.map(str::to_owned);
        let terms: Vec<TermQuad> = base.iter().map(|q| q.map(bytes)).collect();
        let (folder, stored) = store_of_terms(&terms);
        let plain = Snapshot::of_base(Arc::clone(&stored));
        Self {
            snapshot: changed(plain, added.iter().map(|q| (q.map(bytes), true))),
            quads: base.iter().chain(added).map(own).collect(),
            _folder: Box::new(folder),
        }
    }

    pub fn random(rng: &mut Rng) -> Self {
        let graphs = [0, 40, 90][rng.below(3)];
        let n = 8 + rng.below(40);
        let mut quads: BTreeSet<Quad> = (0..n).map(|_| quad(rng, graphs)).collect();
        // Every term that an edit may use is in the dictionary.
        for i in 0..9 {
            quads.insert([iri('v', i), iri('p', 3), iri('v', i), String::new()]);
        }
        let terms: Vec<TermQuad> = quads
            .iter()
            .map(|q| q.each_ref().map(|t| bytes(t)))
            .collect();
        let (folder, base) = store_of_terms(&terms);
        let mut snapshot = Snapshot::of_base(Arc::clone(&base));
        if rng.chance(40) {
            let mut changes = vec![];
            for _ in 0..1 + rng.below(12) {
                let mut q = quad(rng, graphs);
                let comes = rng.chance(55);
                if !comes && let Some(old) = quads.iter().nth(rng.below(quads.len().max(1))) {
                    q = old.clone();
                }
                let id = |t: &str| snapshot.lookup(&bytes(t));
                let is_known = |t: &str| t.is_empty() || id(t).is_some();
                let is_predicate = |t: &str| id(t).and_then(|v| snapshot.predicate_of(v)).is_some();
                if !q.iter().all(|t| is_known(t)) || !is_predicate(&q[1]) {
                    continue;
                }
                changes.push((q.each_ref().map(|t| bytes(t)), comes));
                if comes {
                    quads.insert(q);
                } else {
                    quads.remove(&q);
                }
            }
            snapshot = changed(snapshot, changes);
        }
        Self {
            snapshot,
            quads,
            _folder: Box::new(folder),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Position {
    Var(usize),
    /// A blank node.
    Blank(usize),
    Term(Term),
}

#[derive(Clone, Debug)]
pub enum GraphPosition {
    Default,
    Named(Term),
    Var(usize),
}

#[derive(Clone, Debug)]
pub enum Filter {
    Compare(usize, &'static str, i64),
    Is(usize, Term),
    IsNot(usize, Term),
    In(usize, Vec<Term>),
    SameVar(usize, usize),
    Kind(usize, &'static str),
    Not(Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

#[derive(Clone, Debug)]
pub struct Query {
    pub patterns: Vec<([Position; 3], GraphPosition)>,
    pub filters: Vec<Filter>,
    pub from: Option<(Vec<Term>, Vec<Term>)>,
    pub union_default: bool,
    pub distinct: bool,
    pub select: Vec<usize>,
    pub count: Option<Counting>,
    pub limit: Option<usize>,
    pub order: bool,
}

/// COUNT of a variable or `*`, distinct or not, grouped or not.
#[derive(Clone, Debug)]
pub struct Counting {
    pub of: Option<usize>,
    pub distinct: bool,
    pub by: Option<usize>,
}

/// Patterns that some quads match: each of their terms becomes the same variable everywhere, or stays.
fn witnessed(
    rng: &mut Rng,
    quads: &BTreeSet<Quad>,
    union_default: bool,
) -> Vec<([Position; 3], GraphPosition)> {
    let all: Vec<&Quad> = quads.iter().collect();
    let mut chosen: Vec<&Quad> = vec![];
    let mut names: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    let mut patterns = vec![];
    let mut vars = 0;
    for _ in 0..1 + rng.below(5) {
        let touching: Vec<&&Quad> = all
            .iter()
            .filter(|q| {
                chosen
                    .iter()
                    .any(|c| c != *q && q.iter().any(|t| !t.is_empty() && c.contains(t)))
            })
            .collect();
        let q = if touching.is_empty() || rng.chance(15) {
            all[rng.below(all.len())]
        } else {
            touching[rng.below(touching.len())]
        };
        chosen.push(q);
        let mut end = |rng: &mut Rng, t: &'_ str, percent: usize| -> Option<usize> {
            let key = all
                .iter()
                .flat_map(|q| q.iter())
                .find(|x| *x == t)?
                .as_str();
            *names.entry(key).or_insert_with(|| {
                rng.chance(percent).then(|| {
                    vars += 1;
                    vars - 1
                })
            })
        };
        let class = q[1] == TYPE;
        let percents = [85, if class { 4 } else { 15 }, if class { 30 } else { 75 }];
        let mut ends = vec![];
        for (t, percent) in q[..3].iter().zip(percents) {
            ends.push(
                end(rng, t, percent).map_or_else(|| Position::Term(t.clone()), Position::Var),
            );
        }
        let place = if q[3].is_empty() || union_default && rng.chance(50) {
            GraphPosition::Default
        } else {
            end(rng, &q[3], 60)
                .map_or_else(|| GraphPosition::Named(q[3].clone()), GraphPosition::Var)
        };
        let ends: [Position; 3] = ends.try_into().unwrap();
        patterns.push((ends, place));
    }
    patterns
}

pub fn random(rng: &mut Rng, quads: &BTreeSet<Quad>) -> Query {
    let union_default = rng.chance(25);
    let patterns = if rng.chance(65) {
        witnessed(rng, quads, union_default)
    } else {
        unrelated(rng)
    };
    finish(rng, patterns, union_default)
}

fn unrelated(rng: &mut Rng) -> Vec<([Position; 3], GraphPosition)> {
    let vars = 1 + rng.below(4);
    let n = 1 + rng.below(4);
    let graph_style = rng.below(4);
    let var = |rng: &mut Rng| rng.below(vars);
    let mut patterns = vec![];
    for _ in 0..n {
        let s = match rng.below(10) {
            0 => Position::Blank(rng.below(2)),
            1 | 2 => Position::Term(resource(rng)),
            _ => Position::Var(var(rng)),
        };
        let class = rng.chance(20);
        let p = match rng.below(10) {
            0 | 1 if !class => Position::Var(var(rng)),
            _ if class => Position::Term(TYPE.into()),
            _ => Position::Term(predicate(rng)),
        };
        let o = match rng.below(10) {
            _ if class && rng.chance(80) => Position::Term(iri('c', rng.below(3))),
            0 => Position::Blank(rng.below(2)),
            1 => Position::Term(resource(rng)),
            2 => Position::Term(rng.below(4).to_string()),
            _ => Position::Var(var(rng)),
        };
        let place = match (graph_style, rng.below(3)) {
            (1, 0) => GraphPosition::Named(iri('g', rng.below(3))),
            (2, 0 | 1) | (1, 1) => GraphPosition::Var(var(rng)),
            (3, 0) => GraphPosition::Var(vars),
            _ => GraphPosition::Default,
        };
        patterns.push(([s, p, o], place));
    }
    patterns
}

fn finish(
    rng: &mut Rng,
    patterns: Vec<([Position; 3], GraphPosition)>,
    union_default: bool,
) -> Query {
    let mut used = BTreeSet::new();
    for (ends, place) in &patterns {
        used.extend(ends.iter().filter_map(|e| {
            if let Position::Var(v) = e {
                Some(*v)
            } else {
                None
            }
        }));
        if let GraphPosition::Var(v) = place {
            used.insert(*v);
        }
    }
    let used: Vec<usize> = used.into_iter().collect();
    let mut filters = vec![];
    if !used.is_empty() {
        for _ in 0..[0, 0, 1, 2][rng.below(4)] {
            filters.push(filter(rng, &used, 0));
        }
    }
    let from = rng.chance(8).then(|| {
        let some = |rng: &mut Rng| {
            (0..rng.below(3))
                .map(|_| iri('g', rng.below(4)))
                .collect::<Vec<_>>()
        };
        let (mut default, named) = (some(rng), some(rng));
        if default.is_empty() && named.is_empty() {
            default.push(iri('g', 0));
        }
        (default, named)
    });
    let pick = |rng: &mut Rng| used.get(rng.below(used.len().max(1))).copied();
    let select: Vec<usize> = used.iter().copied().filter(|_| rng.chance(60)).collect();
    let count = rng.chance(15).then(|| Counting {
        of: if rng.chance(50) { pick(rng) } else { None },
        distinct: rng.chance(40),
        by: if rng.chance(50) { pick(rng) } else { None },
    });
    Query {
        patterns,
        filters,
        from,
        union_default,
        distinct: rng.chance(25),
        select,
        count,
        limit: rng.chance(10).then(|| rng.below(4)),
        order: rng.chance(10),
    }
}

fn filter(rng: &mut Rng, used: &[usize], depth: usize) -> Filter {
    let v = used[rng.below(used.len())];
    match rng.below(if depth < 2 { 9 } else { 6 }) {
        0 => Filter::Compare(
            v,
            ["=", "<", "<=", ">", ">=", "!="][rng.below(6)],
            rng.below(4) as i64,
        ),
        1 => Filter::Is(v, resource(rng)),
        2 => Filter::IsNot(v, resource(rng)),
        3 => Filter::In(v, (0..rng.below(3)).map(|_| resource(rng)).collect()),
        4 => Filter::SameVar(v, used[rng.below(used.len())]),
        5 => Filter::Kind(
            v,
            ["isIRI", "isLiteral", "isBlank", "isNumeric", "bound"][rng.below(5)],
        ),
        6 => Filter::Not(Box::new(filter(rng, used, depth + 1))),
        _ => Filter::Or(
            Box::new(filter(rng, used, depth + 1)),
            Box::new(filter(rng, used, depth + 1)),
        ),
    }
}

impl Query {
    pub fn text(&self) -> String {
        let mut out = String::from("SELECT ");
        if self.distinct {
            out += "DISTINCT ";
        }
        match &self.count {
            Some(c) => {
                if let Some(by) = c.by {
                    out += &format!("?x{by} ");
                }
                let of = c.of.map_or("*".into(), |v| format!("?x{v}"));
                let distinct = if c.distinct { "DISTINCT " } else { "" };
                out += &format!("(COUNT({distinct}{of}) AS ?n) ");
            }
            None if self.select.is_empty() => out += "?nothing ",
            None => self.select.iter().for_each(|v| out += &format!("?x{v} ")),
        }
        if let Some((default, named)) = &self.from {
            default.iter().for_each(|g| out += &format!("FROM {g} "));
            named
                .iter()
                .for_each(|g| out += &format!("FROM NAMED {g} "));
        }
        out += "{\n";
        for ([s, p, o], place) in &self.patterns {
            // Blank labels stay inside one GRAPH block: `_:` is only used in the default one.
            let inside = matches!(place, GraphPosition::Default);
            let e = |e: &Position| match e {
                Position::Var(v) => format!("?x{v}"),
                Position::Blank(b) if inside => format!("?blank{b}"),
                Position::Blank(_) => "[]".into(),
                Position::Term(t) => t.clone(),
            };
            let triple = format!("{} {} {} .", e(s), e(p), e(o));
            match place {
                GraphPosition::Default => out += &format!("  {triple}\n"),
                GraphPosition::Named(g) => out += &format!("  GRAPH {g} {{ {triple} }}\n"),
                GraphPosition::Var(v) => out += &format!("  GRAPH ?x{v} {{ {triple} }}\n"),
            }
        }
        for f in &self.filters {
            out += &format!("  FILTER({})\n", f.text());
        }
        out += "}";
        if let Some(Counting { by: Some(by), .. }) = &self.count {
            out += &format!(" GROUP BY ?x{by}");
        }
        if self.order && self.count.is_none() && !self.select.is_empty() {
            out += &format!(" ORDER BY DESC(?x{})", self.select[0]);
        }
        if let Some(limit) = self.limit {
            out += &format!(" LIMIT {limit} OFFSET 1");
        }
        out
    }
}

impl Filter {
    fn text(&self) -> String {
        match self {
            Self::Compare(v, op, n) => format!("?x{v} {op} {n}"),
            Self::Is(v, t) => format!("{t} = ?x{v}"),
            Self::IsNot(v, t) => format!("?x{v} != {t}"),
            Self::In(v, ts) => format!("?x{v} IN ({})", ts.join(", ")),
            Self::SameVar(a, b) => format!("?x{a} = ?x{b}"),
            Self::Kind(v, f) => format!("{f}(?x{v})"),
            Self::Not(f) => format!("!({})", f.text()),
            Self::Or(a, b) => format!("({}) || ({})", a.text(), b.text()),
        }
    }

    /// True, false or an error.
    fn eval(&self, row: &BTreeMap<String, Term>) -> Option<bool> {
        let get = |v: &usize| row.get(&format!("x{v}"));
        match self {
            Self::Compare(v, op, n) => {
                let t = get(v)?;
                let Ok(x) = t.parse::<i64>() else {
                    // An IRI is not a number: not equal, and not comparable.
                    return match *op {
                        "=" => Some(false),
                        "!=" => Some(true),
                        _ => None,
                    };
                };
                Some(match *op {
                    "=" => x == *n,
                    "!=" => x != *n,
                    "<" => x < *n,
                    "<=" => x <= *n,
                    ">" => x > *n,
                    _ => x >= *n,
                })
            }
            Self::Is(v, t) => Some(get(v)? == t),
            Self::IsNot(v, t) => Some(get(v)? != t),
            Self::In(v, ts) => {
                let x = get(v)?;
                Some(ts.contains(x))
            }
            Self::SameVar(a, b) => Some(get(a)? == get(b)?),
            Self::Kind(v, f) => {
                let t = get(v)?;
                Some(match *f {
                    "isIRI" => t.starts_with('<'),
                    "isBlank" => false,
                    "bound" => true,
                    _ => !t.starts_with('<'),
                })
            }
            Self::Not(f) => f.eval(row).map(|b| !b),
            Self::Or(a, b) => match (a.eval(row), b.eval(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

/// More rows than this on the way, and the case is left out.
pub const MAX_ROWS: usize = 3_000;

/// The rows of the result, unsorted; `None` when there are too many on the way.
pub fn answer(q: &Query, quads: &BTreeSet<Quad>) -> Option<Vec<Vec<Term>>> {
    let mut rows: Vec<BTreeMap<String, Term>> = vec![BTreeMap::new()];
    for (n, (ends, place)) in q.patterns.iter().enumerate() {
        let mut next = vec![];
        for row in &rows {
            let mut found: BTreeSet<BTreeMap<String, Term>> = BTreeSet::new();
            for quad in quads {
                let visible = match place {
                    GraphPosition::Default => match &q.from {
                        Some((default, _)) => default.contains(&quad[3]),
                        None => q.union_default || quad[3].is_empty(),
                    },
                    _ => {
                        !quad[3].is_empty()
                            && q.from
                                .as_ref()
                                .is_none_or(|(_, named)| named.contains(&quad[3]))
                    }
                };
                if !visible {
                    continue;
                }
                let mut m = row.clone();
                let graph = match place {
                    GraphPosition::Default => None,
                    GraphPosition::Named(g) => Some(Position::Term(g.clone())),
                    GraphPosition::Var(v) => Some(Position::Var(*v)),
                };
                let inside = matches!(place, GraphPosition::Default);
                let all = ends
                    .iter()
                    .zip(&quad[..3])
                    .chain(graph.iter().map(|g| (g, &quad[3])));
                let mut ok = true;
                for (i, (end, t)) in all.enumerate() {
                    let name = match end {
                        Position::Term(x) => {
                            ok &= x == t;
                            continue;
                        }
                        Position::Var(v) => format!("x{v}"),
                        Position::Blank(b) if inside => format!("blank{b}"),
                        Position::Blank(_) => format!("own{n}.{i}"),
                    };
                    match m.get(&name) {
                        Some(x) => ok &= x == t,
                        None => {
                            m.insert(name, t.clone());
                        }
                    }
                }
                if ok {
                    found.insert(m);
                }
            }
            next.extend(found);
            if next.len() > MAX_ROWS {
                return None;
            }
        }
        rows = next;
    }
    rows.retain(|r| q.filters.iter().all(|f| f.eval(r) == Some(true)));
    let get =
        |r: &BTreeMap<String, Term>, v: usize| r.get(&format!("x{v}")).cloned().unwrap_or_default();
    let mut out: Vec<Vec<Term>> = match &q.count {
        Some(c) => {
            let mut groups: BTreeMap<Vec<Term>, Vec<&BTreeMap<String, Term>>> = BTreeMap::new();
            if c.by.is_none() {
                groups.insert(vec![], vec![]);
            }
            for r in &rows {
                groups
                    .entry(c.by.iter().map(|&v| get(r, v)).collect())
                    .or_default()
                    .push(r);
            }
            groups
                .into_iter()
                .map(|(mut key, members)| {
                    let values: Vec<Vec<Term>> = members
                        .iter()
                        .map(|r| match c.of {
                            Some(v) => vec![get(r, v)],
                            // Blank nodes' hidden variables are not part of a solution; the text's ?blankN are.
                            None => r
                                .iter()
                                .filter(|x| !x.0.starts_with("own"))
                                .map(|x| x.1.clone())
                                .collect(),
                        })
                        .collect();
                    let n = if c.distinct {
                        values.iter().collect::<BTreeSet<_>>().len()
                    } else {
                        values.len()
                    };
                    key.push(n.to_string());
                    key
                })
                .collect()
        }
        None if q.select.is_empty() => rows.iter().map(|_| vec![String::new()]).collect(),
        None => rows
            .iter()
            .map(|r| q.select.iter().map(|&v| get(r, v)).collect())
            .collect(),
    };
    if q.distinct {
        out = out
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
    }
    Some(out)
}

/// With LIMIT and no order any choice is right; else the rows are the same, each as often.
pub fn agree(q: &Query, want: &[Vec<Term>], got: &[Vec<Term>]) -> bool {
    let (mut w, mut g) = (want.to_vec(), got.to_vec());
    w.sort();
    g.sort();
    match q.limit {
        None => w == g,
        Some(limit) => {
            g.len() == want.len().saturating_sub(1).min(limit) && g.iter().all(|r| w.contains(r))
        }
    }
}
