//! Servers of other engines against the reference evaluator: every operator over every two awkward values, every function over
//! each. The specifications decide.

use jindou_peers::engines::{Jindou, Setup, open};
use jindou_peers::install::default_folder;
use jindou_peers::{Engine, Failure};
use jindou_testing::reference::{Outcome, evaluate, same};
use jindou_testing::{algebra, matrix};
use oxrdf::{NamedNode, Term};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Expressions of one variable, or of two.
const EXPRESSIONS: &str = include_str!("expressions.txt");

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn expression(text: &str) -> String {
    text.replace("xsd:", &format!("<{XSD}")).replacen(
        "(?a)",
        ">(?a)",
        usize::from(text.starts_with("xsd:")),
    )
}

/// The family of a value, for classes of differences.
fn family(t: &Term) -> String {
    let Term::Literal(l) = t else {
        return match t {
            Term::NamedNode(_) => "IRI",
            Term::Triple(_) => "triple term",
            _ => "blank node",
        }
        .into();
    };
    if l.language().is_some() {
        return "tagged string".into();
    }
    let datatype = l.datatype();
    let Some(local) = datatype.as_str().strip_prefix(XSD) else {
        return "unknown datatype".into();
    };
    let numeric = [
        "integer",
        "decimal",
        "float",
        "double",
        "byte",
        "unsignedLong",
        "negativeInteger",
    ];
    let well = jindou_testing::reference::is_numeric(t);
    match local {
        n if numeric.contains(&n) && !well => "ill-typed number".into(),
        "byte" | "unsignedLong" | "negativeInteger" => "derived integer".into(),
        "integer" if l.value().len() > 18 => "integer beyond 64 bits".into(),
        "decimal" if l.value().len() > 18 => "decimal of 20 digits".into(),
        "float" | "double" if l.value() == "NaN" => "NaN".into(),
        other => other.into(),
    }
}

/// The sort of an answer: an error, a boolean's value, or the family of its term.
fn sort(t: Option<&Term>) -> String {
    match t {
        None => "error".into(),
        Some(Term::Literal(l)) if l.datatype().as_str() == format!("{XSD}boolean") => {
            l.value().to_owned()
        }
        Some(t) => family(t),
    }
}

type Rows = Vec<(usize, usize, Option<Term>)>;

/// Rows of an answer: their first two columns as numbers, and the third. Where an answer breaks off, the rows before, and what was
/// wrong.
fn rows(bytes: &[u8]) -> (Rows, Option<String>) {
    let parser = QueryResultsParser::from_format(QueryResultsFormat::Json);
    let mut out = vec![];
    let all = match parser.for_reader(bytes) {
        Ok(ReaderQueryResultsParserOutput::Solutions(all)) => all,
        Ok(_) => return (out, Some("no table".into())),
        Err(e) => return (out, Some(e.to_string())),
    };
    for row in all {
        let row = match row {
            Ok(row) => row,
            Err(e) => {
                let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(300)..]);
                return (out, Some(format!("{e}: …{end}")));
            }
        };
        let number = |name: &str| match row.get(name) {
            Some(Term::Literal(l)) => l.value().parse().expect("a number"),
            _ => 0,
        };
        out.push((number("i"), number("j"), row.get("x").cloned()));
    }
    (out, None)
}

fn table(name: (&str, &str), values: &[Term], which: &[usize]) -> String {
    let cells: String = which
        .iter()
        .map(|&i| format!(" ({i} {})", values[i]))
        .collect();
    format!("VALUES ({} {}) {{{cells} }}", name.0, name.1)
}

#[derive(Default)]
struct Difference {
    count: usize,
    example: String,
}

/// Asks an engine for an expression over all rows; without triple terms if it refuses those.
fn asked(
    engine: &mut dyn Engine,
    text: &str,
    values: &[Term],
    two: bool,
) -> Result<(Rows, Option<String>), Failure> {
    let all: Vec<usize> = (0..values.len()).collect();
    let plain: Vec<usize> = all
        .iter()
        .copied()
        .filter(|&i| !matches!(values[i], Term::Triple(_)))
        .collect();
    let mut last = None;
    for which in [all, plain] {
        let right = if two {
            table(("?j", "?b"), values, &which)
        } else {
            String::new()
        };
        let left = table(("?i", "?a"), values, &which);
        let j = if two { "?j " } else { "" };
        let query = format!(
            "SELECT ?i {j}?x WHERE {{ {left} {right} BIND(({}) AS ?x) }}",
            expression(text)
        );
        match engine.answer(&query, Duration::from_secs(120)) {
            Ok(bytes) => return Ok(rows(&bytes)),
            Err(e) => last = Some(e),
        }
    }
    Err(last.expect("two attempts"))
}

/// Counts of one engine.
#[derive(Default)]
struct Judged {
    rows: usize,
    /// Rows for which the specifications leave the answer open.
    free: usize,
    /// Wrong answers, by their class.
    differences: BTreeMap<String, Difference>,
}

impl Judged {
    /// Compares an engine's value of an expression with the specifications' one; `args` are the values of its variables.
    fn judge(&mut self, text: &str, want: &Outcome, got: Option<&Term>, args: &[&Term]) {
        self.rows += 1;
        if want.free.is_some() {
            self.free += 1;
            return;
        }
        let right = match (&want.value, got) {
            (None, None) => true,
            (Some(v), Some(t)) => same(&lower(t), v),
            _ => false,
        };
        if right {
            return;
        }
        let meant = want.value.as_ref().map(|v| v.term());
        let families: Vec<_> = args.iter().map(|value| family(value)).collect();
        let class = format!(
            "{text} | {} | {} | {}",
            families.join(", "),
            sort(meant),
            sort(got)
        );
        let shown = |t: Option<&Term>| t.map_or("error".into(), ToString::to_string);
        let entry = self.differences.entry(class).or_default();
        entry.count += 1;
        if entry.example.is_empty() {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            entry.example = format!(
                "{} is {}, not {}",
                args.join(" and "),
                shown(got),
                shown(meant)
            );
        }
    }

    fn wrong(&self) -> usize {
        self.differences.values().map(|d| d.count).sum()
    }
}

/// The engine of this name, or the reason why it is left out.
fn engine(name: &str, setup: Setup) -> Result<Box<dyn Engine>, String> {
    if name != "jindou" {
        return open(name, &setup).map_err(|e| format!("skipped: {e}"));
    }
    let Some(program) = std::env::var_os("JINDOU_COMMAND") else {
        return Err("not asked: jindou (JINDOU_COMMAND is its path)".into());
    };
    std::fs::create_dir_all(&setup.work).expect("a folder");
    Ok(Box::new(Jindou::new(program.into(), setup)))
}

#[test]
#[ignore = "needs engines that `jindou peers install` has put into JINDOU_PEERS or the cache folder"]
fn other_engines_against_the_specifications() {
    let engines = std::env::var_os("JINDOU_PEERS").map_or_else(default_folder, PathBuf::from);
    let work = tempfile::tempdir().expect("a folder");
    let data = work.path().join("data.nt");
    std::fs::write(&data, "<http://e/s> <http://e/p> <http://e/o> .\n").expect("a file");
    let values = lowered(matrix());
    let mut out = String::new();
    let mut wrong_here = 0;
    for name in ["oxigraph", "jena", "jindou"] {
        let setup = Setup {
            engines: engines.clone(),
            work: work.path().join(name),
            memory: 1 << 30,
            threads: 2,
        };
        let mut engine = match engine(name, setup) {
            Ok(engine) => engine,
            Err(why) => {
                println!("{why}");
                continue;
            }
        };
        engine.load(&data).expect("a load");
        engine.start().expect("a server");
        let mut judged = Judged::default();
        for text in EXPRESSIONS.lines() {
            let two = text.contains("?b");
            let e = algebra(&expression(text));
            let (rows, broken) = match asked(&mut *engine, text, &values, two) {
                Ok(r) => r,
                Err(e) => {
                    let _ = writeln!(out, "{name}: {text} is refused: {e}");
                    continue;
                }
            };
            if let Some(e) = broken {
                let _ = writeln!(
                    out,
                    "{name}: {text} breaks off after {} rows: {e}",
                    rows.len()
                );
            }
            for (i, j, got) in rows {
                let want = evaluate(&e, &|v| Some(values[if v == "a" { i } else { j }].clone()));
                let args = [&values[i], &values[j]];
                let args = if two { &args[..] } else { &args[..1] };
                judged.judge(text, &want, got.as_ref(), args);
            }
        }
        let about = engine.about();
        engine.stop();
        if name == "jindou" {
            wrong_here = judged.wrong();
        }
        let _ = writeln!(
            out,
            "{name} {}: {} judged, {} of them free, {} differ in {} classes",
            about.version,
            judged.rows,
            judged.free,
            judged.wrong(),
            judged.differences.len()
        );
        for (class, d) in &judged.differences {
            let _ = writeln!(out, "{name} | {class} | {} | {}", d.count, d.example);
        }
    }
    println!("{}", out.replace(XSD, "xsd:"));
    assert_eq!(wrong_here, 0, "see above");
}

/// Language tags compare without case.
fn lower(t: &Term) -> Term {
    jindou_testing::reference::Value::from_term(t)
        .term()
        .clone()
}

fn lowered(values: Vec<Term>) -> Vec<Term> {
    let iri = NamedNode::new_unchecked("http://e/x");
    debug_assert!(values.contains(&iri.into()));
    values.iter().map(lower).collect()
}
