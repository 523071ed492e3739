//! Random queries for comparison with `spareval`.

use crate::random::{GRAPHS, PREDICATES, Rng, VERTICES, graph, literal, predicate, vertex};
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Quad};
use std::fmt::Write;

/// A query in two equivalent forms.
#[derive(Clone, Debug)]
pub struct Query {
    /// The query for the engine under test.
    pub text: String,
    /// The equivalent query for `spareval`, with constructs rewritten that it evaluates wrongly: such as `GRAPH ?g` as
    /// a union over all graphs.
    pub oracle: String,
    /// True if LIMIT or OFFSET removes rows: engines may choose which rows remain, so only their number is compared.
    pub counts_only: bool,
}

/// A part of both forms of a query.
#[derive(Clone, Default)]
struct Both(String, String);

impl Both {
    fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(text.clone(), text)
    }

    fn push(&mut self, other: &Self) {
        self.0 += &other.0;
        self.1 += &other.1;
    }

    fn map(&self, f: impl Fn(&str) -> String) -> Self {
        Self(f(&self.0), f(&self.1))
    }
}

/// Prefix of variables inside EXISTS until their group is complete: [`own_variables`] then replaces it.
const HERE: &str = "?here";

/// Renames the variables inside EXISTS: to those of the group if the group binds them, otherwise to variables that
/// occur nowhere else.
fn own_variables(group: &str, bound: &[bool]) -> String {
    let mut out = group.to_owned();
    for (v, bound) in bound.iter().enumerate() {
        let name = if *bound { "?x" } else { "?own" };
        out = out.replace(&format!("{HERE}{v} "), &format!("{name}{v} "));
    }
    out
}

struct Maker<'a> {
    rng: &'a mut Rng,
    /// Names of the graphs in the data.
    graphs: Vec<String>,
    vars: usize,
    /// Number of parts that may still be made.
    budget: usize,
    /// Number of new variables so far. BIND needs new ones, since it must not bind a variable again.
    made: usize,
    in_graph: bool,
}

/// A random query over quads made by [`crate::quads`].
pub fn query(rng: &mut Rng, quads: &[Quad]) -> Query {
    let mut graphs: Vec<String> = quads
        .iter()
        .filter_map(|q| match &q.graph_name {
            GraphName::NamedNode(n) => Some(n.to_string()),
            _ => None,
        })
        .collect();
    graphs.sort();
    graphs.dedup();
    let vars = 2 + rng.below(4);
    let budget = 2 + rng.below(7);
    let mut m = Maker {
        rng,
        graphs,
        vars,
        budget,
        made: 0,
        in_graph: false,
    };
    let body = m.group(0);
    if m.rng.chance(8) {
        return Query {
            text: format!("ASK {}", body.0),
            oracle: format!("ASK {}", body.1),
            counts_only: false,
        };
    }
    let (select, counts_only) = m.select(&body);
    Query {
        text: select.0,
        oracle: select.1,
        counts_only,
    }
}

impl Maker<'_> {
    fn var(&mut self) -> String {
        format!("?x{}", self.rng.below(self.vars))
    }

    /// `SELECT …` over a group, and true if LIMIT or OFFSET removes rows.
    fn select(&mut self, body: &Both) -> (Both, bool) {
        if self.rng.chance(25) {
            return (self.aggregated(body), false);
        }
        let distinct = ["", "", "", "DISTINCT "][self.rng.below(4)];
        let mut columns: Vec<String> = (0..self.vars).map(|v| format!("?x{v}")).collect();
        columns.retain(|_| self.rng.chance(75));
        if columns.is_empty() {
            columns.push("?x0".into());
        }
        if self.rng.chance(15) {
            self.made += 1;
            let e = self.value(1);
            columns.push(format!("({e} AS ?m{})", self.made));
        }
        let mut tail = String::new();
        if self.rng.chance(15) {
            let by = self.var();
            let _ = write!(tail, " ORDER BY {by}");
        }
        let cut = self.rng.chance(10);
        if cut {
            let _ = write!(tail, " LIMIT {}", self.rng.below(4));
            if self.rng.chance(40) {
                let _ = write!(tail, " OFFSET {}", self.rng.below(3));
            }
        }
        let columns = columns.join(" ");
        let text = body.map(|b| format!("SELECT {distinct}{columns} {b}{tail}"));
        (text, cut)
    }

    fn aggregated(&mut self, body: &Both) -> Both {
        let by = self.rng.chance(65).then(|| self.var());
        let mut columns = by.clone().unwrap_or_default();
        let mut body = body.clone();
        for i in 0..1 + self.rng.below(2) {
            let distinct = ["", "DISTINCT "][self.rng.below(2)];
            let of = if self.rng.chance(75) {
                self.var()
            } else {
                self.value(1)
            };
            let aggregate = match self.rng.below(7) {
                // `spareval` takes blank nodes and intermediate nodes of paths for variables, which COUNT(DISTINCT *)
                // must not see.
                0 | 1
                    if ["[]", "/<", "/(", "/^", "/!", "?q"]
                        .iter()
                        .any(|x| body.1.contains(x)) =>
                {
                    "COUNT(*)".to_owned()
                }
                0 | 1 => format!("COUNT({distinct}*)"),
                // Of a variable: for an expression, `spareval` returns no count if a row has an error.
                2 => format!("COUNT({distinct}{})", self.var()),
                3 => format!("SUM({distinct}{of})"),
                n @ (4 | 5) => {
                    let ordered = self.ordered(&of);
                    body = body.map(|b| format!("{{ {b} FILTER({ordered}) }} "));
                    format!("{}({of})", ["MIN", "MAX"][n - 4])
                }
                _ => format!("AVG({distinct}{of})"),
            };
            let _ = write!(columns, " ({aggregate} AS ?n{i})");
        }
        let mut tail = String::new();
        if let Some(by) = &by {
            let _ = write!(tail, " GROUP BY {by}");
        }
        if self.rng.chance(20) {
            let _ = write!(tail, " HAVING (COUNT(*) > {})", self.rng.below(3));
        }
        body.map(|b| format!("SELECT {columns} {b}{tail}"))
    }

    /// A condition that is true if the standard determines MIN and MAX of the value: §15.1 orders literals of one of
    /// these kinds only, and leaves it to the engine whether, for example, a string is greater than a date. Errors pass
    /// the condition, so that aggregates of errors are tested, too.
    fn ordered(&mut self, value: &str) -> String {
        let kind = match self.rng.below(4) {
            0 => format!("ISNUMERIC({value})"),
            n => format!(
                "DATATYPE({value}) = <{}>",
                [xsd::STRING, xsd::BOOLEAN, xsd::DATE_TIME][n - 1].as_str()
            ),
        };
        format!("COALESCE(!ISLITERAL({value}) || {kind}, true)")
    }

    /// A group `{ … }`.
    fn group(&mut self, depth: usize) -> Both {
        let mut out = Both::same("{ ");
        let parts = 1 + self.rng.below(3);
        for i in 0..parts {
            if self.budget == 0 && i > 0 {
                break;
            }
            self.budget = self.budget.saturating_sub(1);
            let part = self.part(depth);
            out.push(&part);
        }
        if self.rng.chance(20) {
            let e = self.condition(0);
            out.push(&Both::same(format!("FILTER({e}) ")));
        }
        out.push(&Both::same("} "));
        let bound = self.surely_bound(&out.0);
        out.map(|text| own_variables(text, &bound))
    }

    /// For each variable, whether the group's own triple patterns or `GRAPH ?x` bind it: whether it occurs outside of
    /// brackets inside the group.
    fn surely_bound(&self, group: &str) -> Vec<bool> {
        let mut depth = 0;
        let outside: String = group
            .chars()
            .filter(|c| {
                match c {
                    '{' | '(' => depth += 1,
                    '}' | ')' => depth -= 1,
                    _ => {}
                }
                depth == 1
            })
            .collect();
        (0..self.vars)
            .map(|v| outside.contains(&format!("?x{v} ")))
            .collect()
    }

    fn part(&mut self, depth: usize) -> Both {
        if depth > 3 || self.budget == 0 {
            return self.triples();
        }
        let d = depth + 1;
        match self.rng.below(24) {
            0..=8 => self.triples(),
            9..=12 => self.triples_and("OPTIONAL ", d),
            13 | 14 => {
                let mut out = self.group(d);
                out.push(&Both::same("UNION "));
                let other = self.group(d);
                out.push(&other);
                out
            }
            15 => self.triples_and("MINUS ", d),
            16 => self.values(),
            17 => self.path(),
            18 if !self.in_graph => self.graph(d),
            19 if !self.in_graph => self.graph(d),
            20 => {
                // BIND ends the group's patterns; its variable must be new.
                self.made += 1;
                let (e, n) = (self.value(1), self.made);
                let mut out = self.triples();
                out.push(&Both::same(format!("BIND({e} AS ?m{n}) ")));
                out
            }
            21 => {
                let body = self.group(d);
                let mut q = self.select(&body);
                while q.1 {
                    q = self.select(&body);
                }
                q.0.map(|q| format!("{{ {q} }} "))
            }
            22 => {
                let not = ["", "NOT "][self.rng.below(2)];
                // The body of EXISTS is kept simple, since the standard does not define the effect of substitution in
                // all cases. `spareval` also substitutes variables that only patterns outside the group bind, but §18.6
                // substitutes the solution of the group only. So variables that the group does not bind are renamed by
                // `own_variables`.
                let inside = self.triples().map(|t| t.replace("?x", HERE));
                let mut out = self.triples();
                out.push(&inside.map(|b| format!("FILTER {not}EXISTS {{ {b} }} ")));
                out
            }
            _ => self.group(d),
        }
    }

    fn triples_and(&mut self, word: &str, depth: usize) -> Both {
        let mut out = if self.rng.chance(80) {
            self.triples()
        } else {
            Both::default()
        };
        let body = self.group(depth);
        out.push(&body.map(|b| format!("{word}{b}")));
        out
    }

    fn triples(&mut self) -> Both {
        let mut out = String::new();
        for _ in 0..1 + self.rng.below(2) {
            let s = self.subject();
            let p = match self.rng.below(8) {
                0 => self.var(),
                1 => "a".into(),
                _ => self.predicate(),
            };
            let o = if p == "a" && self.rng.chance(60) {
                format!("<http://e/c{}>", self.rng.below(3))
            } else {
                self.object()
            };
            let _ = write!(out, "{s} {p} {o} . ");
        }
        Both::same(out)
    }

    fn subject(&mut self) -> String {
        match self.rng.below(10) {
            0 => vertex(self.rng.below(VERTICES)).to_string(),
            1 => "[]".into(),
            _ => self.var(),
        }
    }

    fn object(&mut self) -> String {
        match self.rng.below(12) {
            0 => literal(self.rng).to_string(),
            1 => vertex(self.rng.below(VERTICES)).to_string(),
            _ => self.var(),
        }
    }

    fn predicate(&mut self) -> String {
        predicate(self.rng.below(PREDICATES)).to_string()
    }

    fn values(&mut self) -> Both {
        let two = self.rng.chance(40);
        let (a, b) = (self.var(), self.var());
        let columns = if two && a != b { vec![a, b] } else { vec![a] };
        let mut out = format!("VALUES ({}) {{ ", columns.join(" "));
        for _ in 0..self.rng.below(4) {
            out += "(";
            for _ in &columns {
                let cell = match self.rng.below(8) {
                    0 => "UNDEF".to_owned(),
                    1 => literal(self.rng).to_string(),
                    // A term that is in no quad.
                    2 => "<http://e/nowhere>".to_owned(),
                    _ => vertex(self.rng.below(VERTICES)).to_string(),
                };
                let _ = write!(out, "{cell} ");
            }
            out += ") ";
        }
        Both::same(out + "} ")
    }

    /// A path between variables, since `spareval` finds no path of length zero from a constant that is in no quad.
    fn path(&mut self) -> Both {
        let (s, o) = (self.var(), self.var());
        if self.rng.chance(20) {
            let (a, b) = (self.path_of(1, false), self.path_of(1, false));
            return Both(
                format!("{s} ({a}|{b}) {o} . "),
                format!("{{ {s} {a} {o} }} UNION {{ {s} {b} {o} }} "),
            );
        }
        if self.rng.chance(15) {
            // Written out for `spareval`, which merges parallel edges between two nodes if other patterns bind both.
            self.made += 1;
            let (p, q) = (self.predicate(), format!("?q{}", self.made));
            let (from, to, path) = if self.rng.chance(30) {
                (&o, &s, format!("^(!({p}))"))
            } else {
                (&s, &o, format!("!({p})"))
            };
            return Both(
                format!("{s} {path} {o} . "),
                format!("{{ {from} {q} {to} FILTER({q} NOT IN ({p})) }} "),
            );
        }
        let p = self.path_of(0, false);
        Both::same(format!("{s} {p} {o} . "))
    }

    /// A path expression. `spareval` drops duplicate solutions of alternatives, which §18.2.2.4 and §18.4 count
    /// separately, so these are used only below `*`, `+` and `?`, whose pairs are a set (`set` is true).
    fn path_of(&mut self, depth: usize, set: bool) -> String {
        let p = self.predicate();
        if depth > 2 {
            return p;
        }
        let d = depth + 1;
        match self.rng.below(10) {
            0 => format!("({})*", self.path_of(d, true)),
            1 => format!("({})+", self.path_of(d, true)),
            2 => format!("({})?", self.path_of(d, true)),
            3 if set => format!("({}|{})", self.path_of(d, set), self.path_of(d, set)),
            4 | 5 => format!("({}/{})", self.path_of(d, set), self.path_of(d, set)),
            6 => format!("^({})", self.path_of(d, set)),
            7 if set => format!("!({p})"),
            _ => p,
        }
    }

    fn graph(&mut self, depth: usize) -> Both {
        self.in_graph = true;
        let body = self.group(depth);
        self.in_graph = false;
        if self.graphs.is_empty() || self.rng.chance(40) {
            let name = match self.graphs.len() {
                0 => graph(self.rng.below(GRAPHS)).to_string(),
                n => self.graphs[self.rng.below(n)].clone(),
            };
            if self.graphs.is_empty() {
                // The graph does not exist: no group has solutions in it.
                return Both(
                    format!("GRAPH {name} {} ", body.0),
                    "FILTER(false) ".to_owned(),
                );
            }
            return body.map(|b| format!("GRAPH {name} {b}"));
        }
        let v = self.var();
        let text = format!("GRAPH {v} {}", body.0);
        let each: Vec<String> = self
            .graphs
            .iter()
            .map(|g| format!("{{ {{ GRAPH {g} {} }} VALUES {v} {{ {g} }} }}", body.1))
            .collect();
        Both(text, format!("{{ {} }} ", each.join(" UNION ")))
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 2 {
            let v = self.var();
            return format!("BOUND({v})");
        }
        let d = depth + 1;
        match self.rng.below(10) {
            0 => format!("({} && {})", self.condition(d), self.condition(d)),
            1 => format!("({} || {})", self.condition(d), self.condition(d)),
            2 => format!("!({})", self.condition(d)),
            3 => format!("BOUND({})", self.var()),
            4 => format!(
                "{}({})",
                self.rng
                    .one(&["isIRI", "isBLANK", "isLITERAL", "isNUMERIC"]),
                self.var()
            ),
            5 => format!("sameTerm({}, {})", self.var(), self.value(2)),
            6 => format!(
                "{} IN ({}, {})",
                self.var(),
                vertex(self.rng.below(VERTICES)),
                self.value(2)
            ),
            _ => {
                let sign = self.rng.one(&["=", "!=", "<", "<=", ">", ">="]);
                format!("{} {sign} {}", self.value(1), self.value(1))
            }
        }
    }

    fn value(&mut self, depth: usize) -> String {
        if depth > 2 {
            return self.var();
        }
        let d = depth + 1;
        match self.rng.below(9) {
            0 => literal(self.rng).to_string(),
            1 => vertex(self.rng.below(VERTICES)).to_string(),
            2 => format!(
                "({} {} {})",
                self.value(d),
                self.rng.one(&["+", "-", "*"]),
                self.value(d)
            ),
            3 => format!("COALESCE({}, {})", self.value(d), self.value(d)),
            4 => {
                let c = self.condition(d);
                format!("IF({c}, {}, {})", self.value(d), self.value(d))
            }
            _ => self.var(),
        }
    }
}
