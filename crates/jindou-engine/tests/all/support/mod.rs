//! Random small graphs with updates, random queries, and two oracles: a nested loop over the quads for patterns, and
//! `spareval` on an `oxrdf` dataset for whole queries.

use jindou_engine::{CollectSink, ExecOptions, QueryTerms, TermDecoder, execute_streaming};
use jindou_graph::Graph;
use jindou_model::{CancelToken, Error, MemoryBudget, QueryTemp, TempSpace, term};
use jindou_plan::{Form, Plan, PlanOptions, Weight, parse, plan};
use jindou_store::shard::{Placement, Sharding};
use jindou_store::testing::changed;
use jindou_store::testing::store_of_terms;
use jindou_store::{Base, Snapshot};
use jindou_testing::Answer;
use oxrdf::{Dataset, GraphName, NamedOrBlankNode, Quad, Term};
use spareval::QueryResults;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub mod heap;

pub use heap::HeapGraph;

/// The random generator splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.0)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    fn literal(&mut self) -> &'static str {
        let all: Vec<&str> = LITERALS.split_whitespace().collect();
        all[self.below(all.len())]
    }
}

pub const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/// Literals that are hard to compare: equal values with different texts, NaN, ill-typed literals, time zones, language
/// tags.
const LITERALS: &str = r#"
    1 "01"^^xsd:integer 1.0 1e0 "1"^^xsd:float 2 -3 0.1 1e-1 "NaN"^^xsd:double "INF"^^xsd:double
    "x"^^xsd:integer "abc" "abc"@en "abc"@EN-us "abd"@en "" true "0"^^xsd:boolean
    "2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T01:00:00+01:00"^^xsd:dateTime
    "2020-01-01T00:00:00"^^xsd:dateTime "2020-01-03T00:00:00"^^xsd:dateTime "2020-01-01"^^xsd:date
    "P1D"^^xsd:dayTimeDuration "q"^^<http://e/dt>"#;

const PREFIX: &str = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ";

fn literal(text: &str) -> Vec<u8> {
    // Parsed by the SPARQL parser, so that it has the same form as in queries.
    let q = parse(&format!("{PREFIX} SELECT * {{ ?s :p {text} }}")).unwrap();
    let pattern = spargebra::algebra::GraphPattern::from(&**q.pattern());
    fn find(p: &spargebra::algebra::GraphPattern) -> Option<Term> {
        use spargebra::algebra::GraphPattern as G;
        match p {
            G::Bgp { patterns } => match &patterns[0].object {
                spargebra::term::TermPattern::Literal(l) => Some(l.clone().into()),
                _ => None,
            },
            G::Project { inner, .. } => find(inner),
            _ => None,
        }
    }
    term::encode(&find(&pattern).unwrap())
}

fn iri(local: &str) -> Vec<u8> {
    let mut out = vec![];
    match local.strip_prefix('<') {
        Some(i) => term::push_iri(i.trim_end_matches('>'), &mut out),
        None => term::push_iri(&format!("http://e/{local}"), &mut out),
    }
    out
}

pub type Row = Vec<Option<Term>>;

pub struct World {
    _folder: tempfile::TempDir,
    /// A store, mostly with updates; or a [`HeapGraph`].
    pub graph: Box<dyn Graph>,
    /// All quads as canonical bytes: subject, predicate, object, graph (empty for the default graph).
    pub quads: BTreeSet<[Vec<u8>; 4]>,
    /// The dataset that each of [`FROM`] describes. (`spareval` repeats an edge that is in two FROM graphs; in their
    /// merge it occurs once.)
    pub datasets: Vec<Dataset>,
    pub large: bool,
}

fn random_quad(rng: &mut Rng, nodes: usize, predicates: usize) -> [Vec<u8>; 4] {
    let node = |rng: &mut Rng| match rng.below(12) {
        0 => {
            let mut b = vec![];
            term::push_blank(&format!("b{}", rng.below(2)), &mut b);
            b
        }
        1 => iri(&format!("p{}", rng.below(predicates))),
        2 => iri(&format!("g{}", rng.below(3))),
        _ => iri(&format!("n{}", rng.below(nodes))),
    };
    let s = node(rng);
    let (p, o) = match rng.below(10) {
        0..=2 => (iri(TYPE), iri(&format!("C{}", rng.below(3)))),
        3..=4 => (
            iri(&format!("p{}", rng.below(predicates))),
            literal(rng.literal()),
        ),
        _ => (iri(&format!("p{}", rng.below(predicates))), node(rng)),
    };
    let g = match rng.below(10) {
        0 => iri("g0"),
        1 => iri("g1"),
        2 => iri("n1"),
        _ => vec![],
    };
    [s, p, o, g]
}

fn decode(b: &[u8]) -> Term {
    term::decode(b).unwrap()
}

impl World {
    pub fn random(rng: &mut Rng) -> Self {
        let large = rng.chance(15);
        let (count, nodes, predicates) = if large {
            (300 + rng.below(600), 60, 3)
        } else {
            (rng.below(70), 3 + rng.below(8), 1 + rng.below(4))
        };
        let graphs = !rng.chance(25);
        let mut quad = |rng: &mut Rng| {
            let mut q = random_quad(rng, nodes, predicates);
            if !graphs {
                q[3].clear();
            }
            q
        };
        let mut quads: Vec<[Vec<u8>; 4]> = (0..count).map(|_| quad(rng)).collect();
        // Some edges are in several graphs.
        for i in 0..quads.len() {
            if graphs && rng.chance(15) {
                let mut q = quads[i].clone();
                q[3] = if rng.chance(50) { iri("g1") } else { vec![] };
                quads.push(q);
            }
        }
        let (folder, base) = store_of_terms(&quads);
        let mut truth: BTreeSet<[Vec<u8>; 4]> = quads.iter().cloned().collect();
        let snapshot = if rng.chance(50) && !quads.is_empty() {
            patched(rng, &base, &quads, &mut truth, &mut quad)
        } else {
            Snapshot::of_base(base)
        };
        let datasets = FROM
            .iter()
            .map(|(clause, merged, named)| {
                let mut dataset = Dataset::new();
                for q in &truth {
                    let mut quad = oxrdf_quad(q);
                    let name = quad.graph_name.to_string();
                    if clause.is_empty() || named.contains(&name.as_str()) {
                        dataset.insert(&quad);
                    }
                    if merged.contains(&name.as_str()) {
                        quad.graph_name = GraphName::DefaultGraph;
                        dataset.insert(&quad);
                    }
                }
                dataset
            })
            .collect();
        Self {
            _folder: folder,
            graph: Box::new(snapshot),
            quads: truth,
            datasets,
            large,
        }
    }

    /// The same quads, in a graph that is not a store.
    pub fn on_heap(self) -> Self {
        Self {
            graph: Box::new(HeapGraph::new(&self.quads)),
            ..self
        }
    }
}

/// Dataset clauses: their text, the graphs merged into the default graph, and the named graphs.
pub const FROM: [(&str, &[&str], &[&str]); 4] = [
    ("", &[], &[]),
    ("FROM :g0 ", &["<http://e/g0>"], &[]),
    (
        "FROM :g0 FROM :n1 FROM NAMED :g1 ",
        &["<http://e/g0>", "<http://e/n1>"],
        &["<http://e/g1>"],
    ),
    (
        "FROM NAMED :g1 FROM NAMED :n1 ",
        &[],
        &["<http://e/g1>", "<http://e/n1>"],
    ),
];

fn oxrdf_quad(q: &[Vec<u8>; 4]) -> Quad {
    let subject: NamedOrBlankNode = match decode(&q[0]) {
        Term::NamedNode(n) => n.into(),
        Term::BlankNode(b) => b.into(),
        _ => panic!(),
    };
    let Term::NamedNode(p) = decode(&q[1]) else {
        panic!()
    };
    let g = if q[3].is_empty() {
        GraphName::DefaultGraph
    } else {
        match decode(&q[3]) {
            Term::NamedNode(n) => n.into(),
            _ => panic!(),
        }
    };
    Quad::new(subject, p, decode(&q[2]), g)
}

/// Makes a few changes to a store, for predicates that the base has; `truth` is updated accordingly.
fn patched(
    rng: &mut Rng,
    base: &Arc<Base>,
    quads: &[[Vec<u8>; 4]],
    truth: &mut BTreeSet<[Vec<u8>; 4]>,
    quad: &mut impl FnMut(&mut Rng) -> [Vec<u8>; 4],
) -> Snapshot {
    let plain = Snapshot::of_base(base.clone());
    let mut changes = vec![];
    for _ in 0..rng.below(20) {
        let (q, comes) = if rng.chance(40) {
            (rng.pick(quads).clone(), rng.chance(20))
        } else {
            (quad(rng), rng.chance(80))
        };
        let predicate = base.dictionary().lookup(&q[1]);
        if predicate.and_then(|v| plain.predicate_of(v)).is_none() {
            continue;
        }
        if comes {
            truth.insert(q.clone());
        } else {
            truth.remove(&q);
        }
        changes.push((q, comes));
    }
    changed(plain, changes)
}

/// A random query.
pub struct Question {
    pub text: String,
    pub limit: Option<usize>,
    pub offset: usize,
    /// The text without ORDER BY, LIMIT and OFFSET.
    pub unordered: String,
    /// A query for all its rows before DISTINCT, COUNT and the like; at most [`MOST_ROWS`] + 1.
    pub probe: String,
    pub order: Option<(String, bool)>,
    /// Number of the text's dataset clause in [`FROM`]. `unordered` has no such clause.
    pub from: usize,
}

/// Queries with more rows are skipped, since large products take long and test nothing more.
pub const MOST_ROWS: usize = 10_000;

const VARS: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];

fn pattern(rng: &mut Rng) -> String {
    let var = |rng: &mut Rng| (*rng.pick(&VARS[..4])).to_string();
    let node = |rng: &mut Rng| format!(":n{}", rng.below(8));
    let s = match rng.below(10) {
        0..=1 => node(rng),
        2 => format!("_:x{}", rng.below(2)),
        _ => var(rng),
    };
    let (p, o) = match rng.below(12) {
        0..=2 if rng.chance(80) => ("a".to_string(), format!(":C{}", rng.below(4))),
        0..=2 => ("a".to_string(), var(rng)),
        3..=4 => {
            let p = match rng.chance(50) {
                true => "?e".to_string(),
                false => var(rng),
            };
            (p, if rng.chance(30) { node(rng) } else { var(rng) })
        }
        n => (
            format!(":p{}", rng.below(4)),
            match n {
                5 => node(rng),
                6 => rng.literal().to_owned(),
                7 => format!("_:x{}", rng.below(2)),
                _ => var(rng),
            },
        ),
    };
    format!("{s} {p} {o} . ")
}

fn atom(rng: &mut Rng) -> String {
    let v = *rng.pick(&VARS);
    let w = *rng.pick(&VARS);
    let op = *rng.pick(&["=", "!=", "<", "<=", ">", ">="]);
    match rng.below(12) {
        0..=4 => format!("{v} {op} {}", rng.literal()),
        5 => format!("{} {op} {v}", rng.literal()),
        6 => format!("{v} {op} {w}"),
        7 => format!("{v} {} :n{}", rng.pick(&["=", "!="]), rng.below(5)),
        8 => format!(
            "{}({v})",
            rng.pick(&["isIRI", "isBlank", "isLiteral", "isNumeric", "BOUND"])
        ),
        9 => format!("sameTerm({v}, {w})"),
        10 => format!("REGEX(STR({v}), \"n[0-3]\")"),
        _ => format!("{v} + 1 {op} {w}"),
    }
}

fn condition(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.chance(60) {
        return if rng.chance(20) {
            format!("!({})", atom(rng))
        } else {
            atom(rng)
        };
    }
    let (a, b) = (condition(rng, depth - 1), condition(rng, depth - 1));
    format!("({a}) {} ({b})", rng.pick(&["&&", "||"]))
}

/// Random patterns and a condition, without braces around them.
fn random_body(rng: &mut Rng, large: bool) -> String {
    let mut body = String::new();
    let most = if large { 2 } else { 4 };
    for _ in 0..1 + rng.below(most) {
        let mut p = pattern(rng);
        if rng.chance(20) {
            let blank = p.contains("_:");
            if blank {
                p = p.replace("_:x0", "?c").replace("_:x1", "?d");
            }
            let g = *rng.pick(&["?g", ":g0", ":g1", ":n1", "?a", "?g"]);
            p = format!("GRAPH {g} {{ {p} }} ");
        }
        body.push_str(&p);
    }
    // A blank node label must not be used in two groups, so patterns in GRAPH have variables instead.
    if body.contains("GRAPH") {
        body = body.replace("_:x0", "?c").replace("_:x1", "?d");
    }
    if rng.chance(45) {
        body.push_str(&format!("FILTER({}) ", condition(rng, 2)));
    }
    body
}

/// A random SELECT clause, and the GROUP BY for it. Removes those of `vars` by which the rows cannot be sorted.
fn random_select(rng: &mut Rng, body: &str, vars: &mut Vec<&'static str>) -> (String, String) {
    let none = String::new;
    match rng.below(12) {
        0 => ("SELECT (COUNT(*) AS ?n) ".to_string(), none()),
        1 if !vars.is_empty() => {
            let (v, w) = (*rng.pick(vars), *rng.pick(vars));
            let d = if rng.chance(50) { "DISTINCT " } else { "" };
            (
                format!("SELECT {v} (COUNT({d}{w}) AS ?n) (COUNT(*) AS ?m) "),
                format!("GROUP BY {v} "),
            )
        }
        2 if !vars.is_empty() => {
            let v = *rng.pick(vars);
            (
                format!("SELECT (COUNT(DISTINCT {v}) AS ?n) (COUNT({v}) AS ?m) "),
                none(),
            )
        }
        // `spareval` counts blank nodes of the pattern as if they were variables.
        3 if !body.contains("_:") => ("SELECT (COUNT(DISTINCT *) AS ?n) ".to_string(), none()),
        _ => {
            let d = if rng.chance(25) { "DISTINCT " } else { "" };
            let mut kept: Vec<&str> = vars.iter().copied().filter(|_| rng.chance(65)).collect();
            if kept.is_empty() {
                kept.extend(vars.first());
            }
            let list = if kept.is_empty() {
                "*".into()
            } else {
                kept.join(" ")
            };
            *vars = kept;
            (format!("SELECT {d}{list} "), none())
        }
    }
}

impl Question {
    pub fn random(rng: &mut Rng, large: bool) -> Self {
        let body = random_body(rng, large);
        let which = match rng.below(14) {
            n @ 1..=3 => n,
            _ => 0,
        };
        let from = FROM[which].0;
        let probe = format!(
            "{PREFIX}SELECT * WHERE {{ {body} }} LIMIT {}",
            MOST_ROWS + 1
        );
        let mut it = Self {
            text: format!("{PREFIX}ASK {from}{{ {body} }}"),
            unordered: format!("{PREFIX}ASK {{ {body} }}"),
            limit: None,
            offset: 0,
            order: None,
            from: which,
            probe,
        };
        if rng.chance(4) {
            return it;
        }
        let mut vars: Vec<&str> = VARS.iter().copied().filter(|v| body.contains(v)).collect();
        if body.contains("?g") {
            vars.push("?g");
        }
        let (head, tail) = random_select(rng, &body, &mut vars);
        it.unordered = format!("{PREFIX}{head}WHERE {{ {body} }} {tail}");
        it.text = format!("{PREFIX}{head}{from}WHERE {{ {body} }} {tail}");
        if head.contains("COUNT") {
            if rng.chance(30) {
                it.order = Some(("?n".to_string(), rng.chance(50)));
            }
        } else if rng.chance(25) && !vars.is_empty() {
            it.order = Some(((*rng.pick(&vars)).to_string(), rng.chance(50)));
        }
        if let Some((v, down)) = &it.order {
            it.text += &match down {
                true => format!("ORDER BY DESC({v}) "),
                false => format!("ORDER BY {v} "),
            };
        }
        if rng.chance(20) {
            let limit = rng.below(8);
            it.limit = Some(limit);
            it.text += &format!("LIMIT {limit} ");
        }
        if rng.chance(10) {
            it.offset = rng.below(5);
            it.text += &format!("OFFSET {} ", it.offset);
        }
        it
    }
}

/// The answer of `spareval`: variables and rows. An ASK has one row if it is true.
pub fn oracle(world: &World, text: &str, from: usize) -> (Vec<String>, Vec<Row>) {
    let mut query = spargebra::Query::from(&parse(text).unwrap());
    if let spargebra::Query::Select { pattern, .. } | spargebra::Query::Ask { pattern, .. } =
        &mut query
    {
        jindou_testing::pattern_as_specified(pattern);
    }
    match jindou_testing::evaluator()
        .prepare(&query)
        .execute(&world.datasets[from])
        .unwrap()
    {
        QueryResults::Boolean(b) => (vec![], vec![vec![]; usize::from(b)]),
        QueryResults::Solutions(s) => {
            let vars: Vec<String> = s
                .variables()
                .iter()
                .map(|v| v.as_str().to_string())
                .collect();
            let rows = s
                .map(|r| {
                    let r = r.unwrap();
                    (0..vars.len()).map(|i| r.get(i).cloned()).collect()
                })
                .collect();
            (vars, rows)
        }
        QueryResults::Graph(_) => panic!(),
    }
}

/// The plan of a query; `None` if the planner does not support it.
pub fn planned(world: &World, text: &str) -> Option<Plan> {
    let query = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    plan(&query, &*world.graph, &PlanOptions::default()).ok()
}

/// The engine's rows for a plan.
pub fn answer(world: &World, plan: &Plan, options: &ExecOptions) -> Result<Vec<Row>, Error> {
    let terms = QueryTerms::new();
    let mut sink = CollectSink::default();
    let profile = execute_streaming(plan, &*world.graph, options, &terms, &mut sink)?;
    assert_eq!(profile.rows as usize, sink.rows);
    rows(&*world.graph, &terms, &sink)
}

/// The terms of collected rows.
pub fn rows(graph: &dyn Graph, terms: &QueryTerms, sink: &CollectSink) -> Result<Vec<Row>, Error> {
    let mut decoder = TermDecoder::new(graph, terms);
    let row = |row: &[u32]| {
        let terms = row.iter().map(|&id| decoder.term(id));
        terms.collect::<Result<Row, Error>>()
    };
    sink.rows().map(row).collect()
}

/// Collected rows as the answer of a query of this form.
pub fn answer_of(
    form: &Form,
    graph: &dyn Graph,
    terms: &QueryTerms,
    sink: &CollectSink,
) -> Result<Answer, Error> {
    match form {
        Form::Ask => Ok(Answer::Boolean(sink.rows > 0)),
        _ => Ok(Answer::Rows(vec![], rows(graph, terms, sink)?)),
    }
}

/// Runs a plan on the CPU.
pub fn run(graph: &dyn Graph, plan: &Plan, options: &ExecOptions) -> Result<Answer, Error> {
    let (terms, mut sink) = (QueryTerms::new(), CollectSink::default());
    execute_streaming(plan, graph, options, &terms, &mut sink)?;
    answer_of(&plan.form, graph, &terms, &sink)
}

/// A random placement over several shards with one of these block sizes, and one of the shards.
pub fn sharding(rng: &mut jindou_testing::Rng, shifts: [Option<u32>; 4]) -> (Sharding, u32) {
    let shards = [2, 3, 6, 12][rng.below(4)];
    let placement = [Placement::Range, Placement::Hash][rng.below(2)];
    let sharding = Sharding::new(shards)
        .with_placement(placement)
        .with_block_shift(shifts[rng.below(4)]);
    (sharding, rng.below(shards as usize) as u32)
}

/// The plan of a query.
pub fn plan_of(graph: &dyn Graph, text: &str) -> Plan {
    let query = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    plan(&query, graph, &PlanOptions::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The parts of a line of a test's table, which ` | ` separates.
pub fn parts<const N: usize>(line: &str) -> [&str; N] {
    let all: Vec<&str> = line.split(" | ").collect();
    all.try_into().unwrap_or_else(|_| panic!("{line}"))
}

/// Default options, but for a deadline.
pub fn within(time: Duration) -> ExecOptions {
    ExecOptions {
        cancel: CancelToken::with_deadline(time),
        ..ExecOptions::default()
    }
}

/// Default options, but for the number of threads and the rows of a batch.
pub fn in_batches(threads: usize, batch_rows: usize) -> ExecOptions {
    ExecOptions {
        batch_rows,
        ..with_threads(threads)
    }
}

/// As [`in_batches`], with this number of bytes of memory. If the query spills, it writes what it can to temporary files.
pub fn spilling((threads, batch_rows): (usize, usize), bytes: u64, spills: bool) -> ExecOptions {
    ExecOptions {
        memory: match spills {
            true => MemoryBudget::scarce(bytes),
            false => MemoryBudget::new(bytes),
        },
        temp: spills.then(temp),
        ..in_batches(threads, batch_rows)
    }
}

/// Default options, but for the memory in bytes.
pub fn in_memory(bytes: u64) -> ExecOptions {
    ExecOptions {
        memory: MemoryBudget::new(bytes),
        ..ExecOptions::default()
    }
}

/// Default options, but for the number of threads.
pub fn with_threads(threads: usize) -> ExecOptions {
    ExecOptions {
        threads,
        ..ExecOptions::default()
    }
}

/// Temporary files without a limit.
pub fn temp() -> QueryTemp {
    QueryTemp::new(
        Arc::new(TempSpace::new(Some(u64::MAX))),
        std::env::temp_dir().into(),
        u64::MAX,
    )
}

/// The ways to run a plan: on one thread with tiny batches, and as a heavy plan on three threads; both also with all
/// rows in temporary files that can be.
pub fn ways(plan: &Plan) -> Vec<(Plan, ExecOptions)> {
    let mut heavy = plan.clone();
    heavy.weight = Weight::Heavy;
    let spilling = |threads| ExecOptions {
        threads,
        batch_rows: 16,
        memory: MemoryBudget::scarce(u64::MAX),
        temp: Some(temp()),
        ..ExecOptions::default()
    };
    vec![
        (plan.clone(), spilling(1)),
        (heavy.clone(), spilling(3)),
        (
            plan.clone(),
            ExecOptions {
                batch_rows: 16,
                profile: true,
                ..ExecOptions::default()
            },
        ),
        (heavy, in_batches(3, 64)),
    ]
}

pub fn counted(rows: &[Row]) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for r in rows {
        *out.entry(format!("{r:?}")).or_default() += 1;
    }
    out
}

/// True if ORDER BY may put `a` before `b`: numbers are compared by value, other terms only by their kind.
pub fn in_order(a: &Option<Term>, b: &Option<Term>) -> bool {
    fn class(t: &Option<Term>) -> u8 {
        match t {
            None => 0,
            Some(Term::BlankNode(_)) => 1,
            Some(Term::NamedNode(_)) => 2,
            Some(Term::Literal(_)) => 3,
            Some(_) => 4,
        }
    }
    fn number(t: &Option<Term>) -> Option<f64> {
        match t {
            Some(Term::Literal(l)) if l.datatype().as_str().contains("XMLSchema#") => {
                let n = ["integer", "decimal", "double", "float"];
                if !n.iter().any(|n| l.datatype().as_str().ends_with(n)) {
                    return None;
                }
                l.value().parse::<f64>().ok().filter(|v| !v.is_nan())
            }
            _ => None,
        }
    }
    let (x, y) = (class(a), class(b));
    if x != y {
        return x < y;
    }
    match (a, b) {
        (Some(Term::NamedNode(a)), Some(Term::NamedNode(b))) => a.as_str() <= b.as_str(),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a <= b,
            _ => true,
        },
    }
}
