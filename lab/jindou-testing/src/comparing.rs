//! Random queries whose parts are joined by comparisons of their values.

use crate::matrix::{XSD, iri, triple, typed, typed_terms};
use crate::oracle::{Answer, answer};
use crate::query::Query;
use crate::random::{Rng, named};
use oxrdf::{GraphName, Literal, Quad, Term};
use std::fmt::Write;
use std::sync::LazyLock;

/// Datatypes with lexical forms that are compared, for [`typed_terms`].
const COMPARABLE: &str = "
integer 1 01 +1 2 0 -0 16777216 16777217 16777218 9007199254740992 9007199254740993 9007199791611904 9007199791611905
integer 9007199791611903 9223372036854775806 99999999999999999999 x
int 1 300 16777217
byte 1 100
unsignedLong 2 9007199254740993
decimal 1.0 1 0.1 0.10 1.0000000597 1.0000000596 0.3 16777217.0 123456789.123456789 -0.0 1.5.5
float 1 1e0 0.1 16777216 16777217 1.00000006 -0 0 INF -INF NaN 9007199254740992 9007199791611904 9.223372E18 0.3 f
double 1 1.0E0 0.1 0.10000000149011612 16777216 16777217 1.000000059604644775390625 -0.0 0 INF -INF NaN
double 9007199254740992 9007199791611904 9223372036854775807 0.3 123456789.123456789 d
boolean true 1 false 0 TRUE yes
dateTime 2020-01-01T00:00:00Z 2020-01-01T01:00:00+01:00 2021-01-01T00:00:00 2021-01-01T00:00:00.0 2019-12-31T24:00:00Z
dateTime 2020-13-01T00:00:00Z
dateTimeStamp 2020-01-01T00:00:00Z 2020-01-01T01:00:00.0+01:00 2021-01-01T00:00:00Z
date 2021-01-01 2020-01-01Z 2020-01-01+00:00 2020-01-02-24:00
time 13:00:00 13:00:00.0 00:00:00Z 01:00:00+01:00
gYear 2020 2021Z 02020
gYearMonth 2020-01 2021-01Z
gMonthDay --01-01 --02-01Z
duration P1Y P12M P1D PT24H P1Y0D P0Y PT0S
dayTimeDuration P1D PT24H PT86400S PT0S PT1.50S PT1.5S
yearMonthDuration P1Y P12M P0M
string a b 1 true
hexBinary 00 0A 0a
";

/// Terms for both sides of `=`: numbers whose types round differently, times, durations, strings, and literals without
/// a value. Values that `spareval` cannot represent are left out.
pub fn comparable() -> Vec<Term> {
    let mut out = typed_terms(COMPARABLE);
    for (text, tag) in [("a", "en"), ("a", "de"), ("a", "en-gb"), ("b", "en")] {
        out.push(Literal::new_language_tagged_literal_unchecked(text, tag).into());
    }
    out.push(Literal::new_typed_literal("a", iri("http://e/dt")).into());
    out.push(Literal::new_typed_literal("a", iri("http://e/dt2")).into());
    out.push(iri("http://e/s1").into());
    out.push(iri("http://e/t2").into());
    out.push(oxrdf::BlankNode::new_unchecked("b").into());
    out.extend(["1", "01", "2"].map(|n| triple(typed(n, "integer"))));
    out
}

/// Terms whose lexical form `spareval` stores. Of other literals it stores only the value, so STR may return another
/// text.
static KEPT: LazyLock<Vec<Term>> = LazyLock::new(|| {
    let is_kept = |t: &Term| {
        let Term::Literal(l) = t else { return true };
        let quad = crate::triple("one", "one", t.clone());
        let parts = "SELECT (STR(?o) AS ?t) (DATATYPE(?o) AS ?d) { ?s ?p ?o }";
        let Ok(Answer::Rows(_, rows)) = answer(&[quad], parts) else {
            return false;
        };
        let kept: [Term; 2] = [
            Literal::new_simple_literal(l.value()).into(),
            l.datatype().into_owned().into(),
        ];
        rows == [kept.map(Some)]
    };
    let mut out = comparable();
    out.retain(is_kept);
    out
});

/// Quads with objects of all kinds that `=` and `<` compare. Predicates are `:p`, `:q` and `:r`; graphs are the default
/// graph and `:g`. Some objects are also subjects.
pub fn comparing_quads(rng: &mut Rng) -> Vec<Quad> {
    let whole = comparable();
    let all = if rng.chance(50) { &whole } else { &*KEPT };
    // Few distinct values, so that some are equal. The seed determines which kinds are chosen.
    let some: Vec<&Term> = (0..4 + rng.below(10))
        .map(|_| &all[rng.below(all.len())])
        .collect();
    let mut out: Vec<Quad> = vec![];
    for _ in 0..10 + rng.below(20) {
        let subject = named(&format!("s{}", rng.below(6)));
        let predicate = named(rng.one(&["p", "q", "r"]));
        let object: Term = match rng.below(5) {
            0 => named(&format!("s{}", rng.below(6))).into(),
            _ => some[rng.below(some.len())].clone(),
        };
        let graph: GraphName = match rng.chance(25) {
            true => named("g").into(),
            false => GraphName::DefaultGraph,
        };
        let quad = Quad::new(subject, predicate, object, graph);
        if !out.contains(&quad) {
            out.push(quad);
        }
    }
    out
}

/// A query over [`comparing_quads`]. Each condition compares an expression over one part with an expression over
/// another part; parts are in groups, OPTIONAL, EXISTS, MINUS, sub-queries and UNION.
pub fn comparing_query(rng: &mut Rng, quads: &[Quad]) -> Query {
    let is_kept = |q: &Quad| matches!(q.object, Term::NamedNode(_)) || KEPT.contains(&q.object);
    let mut m = Maker {
        rng,
        texts: quads.iter().all(is_kept),
        made: 0,
    };
    let body = m.body();
    let select = m.rng.part(
        "SELECT ?s0 ?x0 ?s1 ?x1; SELECT ?s0 ?y0 ?x1 ?y1; SELECT DISTINCT ?s0; SELECT DISTINCT ?x1 ?s0; \
         SELECT (COUNT(*) AS ?n); SELECT ?s0 (COUNT(?x1) AS ?n); SELECT ?s0 ?x0 ?x1 ?e1 ?e2; ASK",
    );
    let tail = match select.contains("?s0 (COUNT") {
        true => " GROUP BY ?s0",
        false => "",
    };
    let text = format!("PREFIX : <http://e/> {select} {{ {body}}}{tail}");
    Query {
        oracle: text.clone(),
        text,
        counts_only: false,
    }
}

/// An expression for YEAR as the specification defines it. `spareval` also accepts `xsd:date` and `xsd:gYear`, and
/// converts `xsd:dateTimeStamp` to `xsd:dateTime`.
fn year(v: &str) -> String {
    format!("IF(DATATYPE({v}) IN (<{XSD}dateTime>, <{XSD}dateTimeStamp>), YEAR({v}), 1/0)")
}

struct Maker<'r> {
    rng: &'r mut Rng,
    /// True if the query may use lexical forms of literals, because `spareval` stores those of all terms in the data.
    texts: bool,
    made: usize,
}

impl Maker<'_> {
    fn predicate(&mut self) -> &'static str {
        self.rng.one(&[":p", ":p", ":q", ":r", "?p"])
    }

    /// Part number `n`, which binds `?s` and `?x` with the number `n`, and sometimes `?y`.
    fn part(&mut self, n: usize) -> String {
        let (p, q) = (self.rng.one(&[":p", ":q", ":r"]), self.predicate());
        let q = q.replace("?p", &format!("?p{n}"));
        // Some parts share the subject of the first part.
        let s = if n > 0 && self.rng.chance(15) {
            "?s0".to_owned()
        } else {
            format!("?s{n}")
        };
        match self.rng.below(14) {
            0 => format!("{s} {p} ?x{n} ; {q} ?y{n} . "),
            1 => format!("{{ {s} {p} ?x{n} }} UNION {{ {s} {q} ?x{n} }} "),
            2 => format!("{{ {s} {p} ?x{n} }} UNION {{ {s} {q} ?y{n} }} "),
            3 => format!("{s} {q} ?z{n} OPTIONAL {{ {s} {p} ?x{n} }} "),
            4 => format!("{s} {q} ?y{n} OPTIONAL {{ {s} {p} ?x{n} }} "),
            5 => {
                let e = self.value(&format!("?x{n}"));
                format!("{{ {s} {p} ?x{n} BIND({e} AS ?y{n}) }} ")
            }
            6 => format!(
                "{{ SELECT {s} ?x{n} (COUNT(*) AS ?y{n}) {{ {s} {p} ?x{n} ; {q} ?z{n} }} GROUP BY {s} ?x{n} }} "
            ),
            7 => format!("{{ SELECT DISTINCT ?x{n} {{ {s} {p} ?x{n} }} }} "),
            8 => format!(
                "VALUES (?x{n} ?y{n}) {{ (1 \"a\") (UNDEF 2.5) (1.5 UNDEF) (:s1 \"1\") (\"a\"@en true) }} "
            ),
            9 => format!("GRAPH :g {{ {s} {p} ?x{n} }} "),
            _ => format!("{s} {p} ?x{n} . "),
        }
    }

    fn variable(&mut self, n: usize) -> String {
        format!("{}{n}", self.rng.one(&["?x", "?x", "?x", "?y", "?s"]))
    }

    /// An expression over the variables of part `n`.
    fn pick(&mut self, n: usize) -> String {
        let v = self.variable(n);
        if self.rng.chance(45) {
            return v;
        }
        self.value(&v)
    }

    fn value(&mut self, v: &str) -> String {
        if !self.texts {
            return match self.rng.below(3) {
                0 => format!("LANG({v})"),
                1 => year(v),
                _ => format!("isLITERAL({v})"),
            };
        }
        match self.rng.below(12) {
            0..=3 => format!("STR({v})"),
            4 => format!("LANG({v})"),
            5 => format!("DATATYPE({v})"),
            6 => year(v),
            7 => format!("STRLEN(STR({v}))"),
            8 => format!("COALESCE(STR({v}), \"1\")"),
            9 => format!("IF(isIRI({v}), STR({v}), STRLEN(STR({v})))"),
            10 => format!("LCASE(STR({v}))"),
            _ => format!("(STRLEN(STR({v})) + 1)"),
        }
    }

    fn comparison(&mut self, a: usize, b: usize) -> String {
        let (a, b) = if self.rng.chance(50) { (a, b) } else { (b, a) };
        let same = self.rng.chance(35).then(|| self.value("?v"));
        let (l, r) = match same {
            Some(e) => {
                let (l, r) = (self.variable(a), self.variable(b));
                (e.replace("?v", &l), e.replace("?v", &r))
            }
            None => (self.pick(a), self.pick(b)),
        };
        match self.rng.below(18) {
            0..=5 => format!("{l} = {r}"),
            6 | 7 => format!("sameTerm({l}, {r})"),
            8 => format!("{l} IN ({r})"),
            9 => format!("!({l} != {r})"),
            10 => format!("{l} IN ({r}, 1)"),
            11 => format!("{l} != {r}"),
            12 => {
                let other = self.pick(b);
                format!("{l} IN ({r}, {other})")
            }
            _ => format!("{l} {} {r}", self.rng.one(&["<", "<=", ">", ">="])),
        }
    }

    /// A condition over part `n`.
    fn on_one(&mut self, n: usize) -> String {
        let v = self.variable(n);
        match self.rng.below(6) {
            0 => format!("{v} = 1"),
            1 => format!("{v} IN (1, \"a\", :s1)"),
            2 => format!("isIRI({v})"),
            3 => format!("{v} < 2"),
            4 => format!("!BOUND({v})"),
            _ => format!("BOUND({v})"),
        }
    }

    /// A disjunction of conditions, most of which compare two parts.
    fn either(&mut self, a: usize, b: usize) -> String {
        let mut all = vec![self.comparison(a, b)];
        for _ in 0..1 + self.rng.below(2) {
            let n = [a, b][self.rng.below(2)];
            let one = match self.rng.below(8) {
                0 | 1 => self.on_one(n),
                2 => {
                    let (c, d) = (self.comparison(a, b), self.on_one(n));
                    format!("({c} && {d})")
                }
                3 => {
                    let (c, d) = (self.comparison(a, b), self.comparison(a, b));
                    format!("({d} && {c})")
                }
                _ => self.comparison(a, b),
            };
            all.push(one);
        }
        if self.rng.chance(20) {
            let not: Vec<String> = all.iter().map(|c| format!("!({c})")).collect();
            return format!("!({})", not.join(" && "));
        }
        format!("({})", all.join(" || "))
    }

    /// A condition that compares two parts.
    fn condition(&mut self, a: usize, b: usize) -> String {
        let first = if self.rng.chance(35) {
            self.either(a, b)
        } else {
            self.comparison(a, b)
        };
        let mut all = vec![first];
        while self.rng.chance(35) {
            all.push(match self.rng.below(5) {
                0 => format!("isLITERAL({})", self.variable(b)),
                1 => self.either(a, b),
                2 => format!("BOUND({})", self.variable(a)),
                _ => self.comparison(a, b),
            });
        }
        all.join(" && ")
    }

    /// Part `n` with a filter that compares it with the part `outer`, sometimes with further elements.
    fn inside(&mut self, outer: usize, n: usize) -> String {
        let part = self.part(n);
        let c = self.condition(outer, n);
        match self.rng.below(8) {
            0 => {
                let other = self.part(n);
                let d = if self.rng.chance(50) {
                    c.clone()
                } else {
                    self.condition(outer, n)
                };
                format!("{{ {part} FILTER({c}) }} UNION {{ {other} FILTER({d}) }} ")
            }
            1 => {
                self.made += 1;
                let (v, made) = (self.variable(n), self.made);
                let e = if self.rng.chance(60) {
                    v
                } else {
                    self.value(&v)
                };
                let other = self.pick(outer);
                let more = match self.rng.chance(30) {
                    true => format!(" || {c}"),
                    false => String::new(),
                };
                format!("{part} BIND({e} AS ?m{made}) FILTER({other} = ?m{made}{more}) ")
            }
            2 => {
                let (more, d) = (self.part(n + 4), self.condition(n, n + 4));
                format!("{part} {more} FILTER({c}) FILTER({d}) ")
            }
            _ => format!("{part} FILTER({c}) "),
        }
    }

    /// An element with EXISTS as an operand of a larger expression.
    fn with_exists(&mut self, n: usize, inside: &str) -> String {
        let exists = match self.rng.chance(30) {
            true => format!("NOT EXISTS {{ {inside}}}"),
            false => format!("EXISTS {{ {inside}}}"),
        };
        self.made += 1;
        let (c, made) = (self.on_one(0), self.made);
        match self.rng.below(8) {
            0 | 1 => format!("FILTER({exists} || {c})"),
            2 => format!("BIND({exists} AS ?e{n})"),
            3 => format!("BIND(IF({exists}, ?s0, 2) AS ?e{n})"),
            4 => format!("FILTER(IF({exists}, {c}, true))"),
            5 => {
                // isLITERAL is used because a condition on the value may be an error in `spareval`, which does not know
                // all values.
                let v = self.variable(0);
                format!("FILTER(!({exists} && isLITERAL({v})))")
            }
            6 => {
                // A filter in OPTIONAL may use variables of both sides.
                let (part, d) = (self.part(n + 4), self.condition(0, n + 4));
                let exists = match self.rng.chance(50) {
                    true => exists
                        .replace("?s0", &format!("?s{}", n + 4))
                        .replace("?x0", &format!("?x{}", n + 4)),
                    false => exists,
                };
                let (or, c) = match self.rng.chance(50) {
                    true => ("&&", format!("isIRI(?s{}) || {exists}", n + 4)),
                    false => ("||", exists.clone()),
                };
                format!("OPTIONAL {{ {part} FILTER(({c}) {or} {d}) }}")
            }
            _ => {
                let (part, d) = (self.part(n + 4), self.condition(0, n + 4));
                let exists = exists
                    .replace("?s0", "?o")
                    .replace("?x0", &format!("?x{}", n + 4));
                format!(
                    "{{ SELECT * {{ {part} BIND({exists} AS ?e{made}{n}) }} }} FILTER({d} || ?e{made}{n})"
                )
            }
        }
    }

    fn body(&mut self) -> String {
        let mut out = self.part(0);
        if self.rng.chance(60) {
            let part = self.part(1);
            out += &part;
            if self.rng.chance(25) {
                self.made += 1;
                let (v, made) = (self.variable(1), self.made);
                let e = if self.rng.chance(60) {
                    v
                } else {
                    self.value(&v)
                };
                let other = self.pick(0);
                let _ = write!(out, "BIND({e} AS ?m{made}) FILTER({other} = ?m{made}) ");
            } else {
                let c = self.condition(0, 1);
                let _ = write!(out, "FILTER({c}) ");
            }
        }
        for n in 2..3 + self.rng.below(2) {
            // The body of EXISTS may use variables of the first part, since SPARQL 1.1 §18.6 substitutes the solution
            // of the group.
            let inside = self.inside(0, n);
            let _ = match self.rng.below(12) {
                8..=11 => {
                    let more = self.with_exists(n, &inside);
                    write!(out, "{more} ")
                }
                0..=2 => write!(out, "OPTIONAL {{ {inside}}} "),
                3 | 4 => write!(out, "FILTER EXISTS {{ {inside}}} "),
                5 | 6 => write!(out, "FILTER NOT EXISTS {{ {inside}}} "),
                _ => {
                    let (part, d) = (self.part(n + 4), self.condition(n, n + 4));
                    let inside = self.part(n);
                    write!(out, "MINUS {{ {inside} {part} FILTER({d}) }} ")
                }
            };
        }
        out
    }
}
