//! Takes a case's steps over a database and compares what they give.

use crate::read::{Case, CaseStep, Document, EXPECTED_QUADS, Expected};
use jindou::parse::{Format, Sources};
use jindou::{
    Answer, Durability, LoadOptions, MergeOptions, OpenOptions, Progress, QueryOptions, Sharding,
    UpdateOptions,
};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{BlankNode, Dataset, GraphName, NamedOrBlankNode, Quad, Term};
use oxrdfio::RdfParser;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// Time for the search for reasons: enough for a busy machine and code that is not optimised.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the data of a case came into its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// Loaded into a store directory.
    Loaded,
    /// Inserted into a store in memory.
    Inserted,
    /// Inserted into a store directory that was empty, and merged, as the changes of each update are.
    Merged,
    /// Loaded into three shards.
    Shards,
    /// Inserted into three empty shards.
    InsertedShards,
    /// Inserted into three empty shards, which are merged then and after each update.
    MergedShards,
}

impl Database {
    pub const ALL: [Self; 6] = [
        Self::Loaded,
        Self::Inserted,
        Self::Merged,
        Self::Shards,
        Self::InsertedShards,
        Self::MergedShards,
    ];

    fn is_sharded(self) -> bool {
        matches!(
            self,
            Self::Shards | Self::InsertedShards | Self::MergedShards
        )
    }

    fn is_merged(self) -> bool {
        matches!(self, Self::Merged | Self::MergedShards)
    }
}

/// A database, and the folder that goes with it.
struct Opened {
    db: jindou::Database,
    _store: Option<tempfile::TempDir>,
}

fn sources(data: &[Document]) -> Result<Sources, String> {
    let mut builder = Sources::builder().base_iri(Some("http://example.org/base/".into()));
    for (n, d) in data.iter().enumerate() {
        builder = builder.text(
            format!("document {}", n + 1),
            d.text.clone().into_bytes(),
            d.format,
        );
    }
    if data.is_empty() {
        builder = builder.text("nothing".to_owned(), vec![], Format::NQuads);
    }
    builder.build().map_err(|e| e.to_string())
}

fn open(data: &[Document], database: Database) -> Result<Opened, String> {
    let text = |e: jindou::Error| e.to_string();
    let all = sources(data)?;
    if database == Database::Inserted {
        let db = jindou::Database::in_memory_from(&all, &UpdateOptions::default());
        return Ok(Opened {
            db: db.map_err(text)?,
            _store: None,
        });
    }
    let sharding = database
        .is_sharded()
        .then(|| Sharding::new(3).with_block_shift(Some(0)));
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_threads(1)
        .with_memory(1 << 28)
        .with_sharding(sharding);
    let progress = Progress::default();
    let is_loaded = matches!(database, Database::Loaded | Database::Shards);
    let loaded = match is_loaded {
        true => &all,
        false => &sources(&[])?,
    };
    jindou::Database::load(&dir, loaded, &options, &progress).map_err(text)?;
    let open = OpenOptions::default().with_durability(Durability::None);
    let db = jindou::Database::open_with(&dir, &open).map_err(text)?;
    if !is_loaded {
        db.insert(&all, &UpdateOptions::default(), &progress)
            .map_err(text)?;
    }
    merge(&db, database)?;
    Ok(Opened {
        db,
        _store: Some(folder),
    })
}

/// Merges changes, if there are any and the database is one that is merged.
fn merge(db: &jindou::Database, database: Database) -> Result<(), String> {
    if database.is_merged() && db.merge_status().is_some() {
        let options = MergeOptions::default().with_threads(1);
        db.merge(&options, &Progress::default())
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Runs a case over one kind of database. The error says what differs.
pub fn run(case: &Case, database: Database) -> Result<(), String> {
    let opened = match (open(&case.data, database), &case.load_error) {
        (Ok(_), Some(_)) => return Err("the data was loaded without an error".into()),
        (Err(e), Some(words)) => {
            has_words(&e, words)?;
            return Ok(());
        }
        (opened, None) => opened?,
    };
    for step in &case.steps {
        match step {
            CaseStep::Query(text, expected) => {
                query(&opened.db, text, expected).map_err(|e| format!("{e}\n{text}"))?
            }
            CaseStep::Reasons(text, expected) => {
                reasons(&opened.db, text, expected).map_err(|e| format!("{e}\n{text}"))?
            }
            CaseStep::Update(text, error) => {
                match (opened.db.update(text, &UpdateOptions::default()), error) {
                    (Ok(_), None) => {}
                    (Ok(_), Some(_)) => return Err(format!("no error\n{text}")),
                    (Err(e), None) => return Err(format!("{e}\n{text}")),
                    (Err(e), Some(words)) => has_words(&e.to_string(), words)?,
                }
                merge(&opened.db, database)?;
            }
            CaseStep::Values(all) => {
                for (expression, value) in all {
                    same_value(&opened.db, expression, value.as_deref())
                        .map_err(|e| format!("{e}\n{expression}"))?;
                }
            }
            CaseStep::Quads(text) => same_quads(&stored(&opened.db)?, &parsed(text)?)?,
        }
    }
    Ok(())
}

/// An expression has its value wherever it stands: at the end of a query, over a row, and below an aggregate.
fn same_value(db: &jindou::Database, expression: &str, value: Option<&str>) -> Result<(), String> {
    let want = vec![vec![cell(value.unwrap_or(""))?]];
    for query in [
        format!("SELECT ({expression} AS ?v) {{}}"),
        format!("SELECT ?v {{ VALUES ?row {{ 1 }} BIND({expression} AS ?v) }}"),
        format!(
            "SELECT (SAMPLE(?w) AS ?v) {{ VALUES ?row {{ 1 }} BIND({expression} AS ?w) }} GROUP BY ?row"
        ),
    ] {
        let answer = db.query(&query).map_err(|e| e.to_string())?;
        same_rows(answer.solutions().to_vec(), want.clone(), true)?;
    }
    Ok(())
}

fn has_words(message: &str, words: &[String]) -> Result<(), String> {
    match words.iter().find(|w| !message.contains(*w)) {
        Some(missing) => Err(format!("the message lacks {missing:?}: {message}")),
        None => Ok(()),
    }
}

fn query(db: &jindou::Database, text: &str, expected: &Expected) -> Result<(), String> {
    let answer = match (db.query(text), expected) {
        (Err(e), Expected::Error(words)) => return has_words(&e.to_string(), words),
        (answer, Expected::Error(_)) => return Err(format!("no error, but {answer:?}")),
        (answer, _) => answer.map_err(|e| e.to_string())?,
    };
    match (answer, expected) {
        (Answer::Boolean(b), Expected::Boolean(want)) if b == *want => Ok(()),
        (Answer::Graph(triples), Expected::Graph(text)) => {
            let quads = triples
                .into_iter()
                .map(|t| t.in_graph(GraphName::DefaultGraph));
            same_quads(&quads.collect(), &parsed(text)?)
        }
        (
            Answer::Solutions { variables, rows },
            Expected::Rows {
                header,
                rows: want,
                in_order,
            },
        ) => {
            let names: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
            if names != *header {
                return Err(format!("columns {names:?}, expected {header:?}"));
            }
            let want = want.iter().map(|row| row.iter().map(|c| cell(c)).collect());
            let want: Vec<Vec<Option<Term>>> = want.collect::<Result<_, String>>()?;
            same_rows(rows, want, *in_order)
        }
        (answer, _) => Err(format!("the answer is {answer:?}")),
    }
}

/// The reasons why a query has no answer; a line for each, as they are printed, with the texts that the remedies write.
fn reasons(db: &jindou::Database, text: &str, expected: &[String]) -> Result<(), String> {
    let options = QueryOptions::default();
    let found = db
        .why_empty_within(text, &options, PATIENCE)
        .map_err(|e| e.to_string())?;
    let mut told = Vec::new();
    for reason in &found {
        told.push(reason.to_string());
        for suggestion in &reason.suggestions {
            let Some(r) = &suggestion.replacement else {
                continue;
            };
            let mut repaired = text.to_owned();
            repaired.replace_range(r.start..r.end, &r.with);
            db.query(&repaired)
                .map_err(|e| format!("{repaired} is what {:?} makes: {e}", suggestion.text))?;
        }
    }
    if told != expected {
        return Err(format!(
            "reasons:\n{}\nexpected:\n{}",
            told.join("\n"),
            expected.join("\n")
        ));
    }
    let rows = db.query(text).map_err(|e| e.to_string())?;
    if told.is_empty() && rows.solutions().is_empty() && rows != Answer::Boolean(true) {
        return Err("no reason, and no row".into());
    }
    Ok(())
}

/// A cell of an expected table, in Turtle's syntax, where `xsd:` is known; empty where unbound.
fn cell(text: &str) -> Result<Option<Term>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let text = &match text.rsplit_once("\"^^xsd:") {
        Some((before, name)) => {
            format!("{before}\"^^<http://www.w3.org/2001/XMLSchema#{name}>")
        }
        None => text.to_owned(),
    };
    let term = Term::from_str(text).map_err(|e| format!("{text}: {e}"))?;
    Ok(Some(term))
}

/// Compares tables: blank nodes may have any labels, the same one in the same places.
fn same_rows(
    got: Vec<Vec<Option<Term>>>,
    want: Vec<Vec<Option<Term>>>,
    in_order: bool,
) -> Result<(), String> {
    let said = |rows: &[Vec<Option<Term>>]| {
        let cell = |c: &Option<Term>| {
            c.as_ref()
                .map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        let line = |r: &Vec<Option<Term>>| r.iter().map(cell).collect::<Vec<_>>().join(" | ");
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let difference = || format!("rows:\n{}\nexpected:\n{}", said(&got), said(&want));
    if in_order {
        let equal = named_in_order(&got) == named_in_order(&want);
        return if equal { Ok(()) } else { Err(difference()) };
    }
    // A table as a graph: a blank node for each row, an edge for each bound cell. Equal tables are isomorphic graphs.
    if as_dataset(&got) == as_dataset(&want) {
        Ok(())
    } else {
        Err(difference())
    }
}

/// Rows whose blank nodes are named by where they come first.
fn named_in_order(rows: &[Vec<Option<Term>>]) -> Vec<Vec<Option<String>>> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut cell = |c: &Option<Term>| match c {
        Some(Term::BlankNode(b)) => {
            let next = names.len();
            Some(format!(
                "_:{}",
                names.entry(b.as_str().to_owned()).or_insert(next)
            ))
        }
        c => c.as_ref().map(ToString::to_string),
    };
    rows.iter()
        .map(|r| r.iter().map(&mut cell).collect())
        .collect()
}

fn as_dataset(rows: &[Vec<Option<Term>>]) -> Dataset {
    let mut data = Dataset::new();
    for (n, row) in rows.iter().enumerate() {
        let subject = NamedOrBlankNode::from(BlankNode::new_unchecked(format!("row{n}")));
        let width = oxrdf::Literal::from(row.len() as i64);
        data.insert(&Quad::new(
            subject.clone(),
            predicate(row.len()),
            width,
            GraphName::DefaultGraph,
        ));
        for (column, term) in row.iter().enumerate() {
            let Some(term) = term else { continue };
            let object = match term {
                Term::BlankNode(b) => {
                    BlankNode::new_unchecked(format!("value{}", b.as_str())).into()
                }
                t => t.clone(),
            };
            data.insert(&Quad::new(
                subject.clone(),
                predicate(column),
                object,
                GraphName::DefaultGraph,
            ));
        }
    }
    data.canonicalize(CanonicalizationAlgorithm::Unstable);
    data
}

fn predicate(column: usize) -> oxrdf::NamedNode {
    oxrdf::NamedNode::new_unchecked(format!("http://example.org/column/{column}"))
}

/// The quads of an expected document. Language tags are kept in lower case, as the store has them.
fn parsed(text: &str) -> Result<Vec<Quad>, String> {
    let parser = RdfParser::from_format(EXPECTED_QUADS);
    let quads: Result<Vec<Quad>, _> = parser.for_slice(text.as_bytes()).collect();
    quads.map_err(|e| format!("the expected document: {e}"))
}

fn stored(db: &jindou::Database) -> Result<Vec<Quad>, String> {
    let text = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answer = db.query(text).map_err(|e| e.to_string())?;
    let quad = |row: &Vec<Option<Term>>| {
        let [Some(s), Some(Term::NamedNode(p)), Some(o), g] = &row[..] else {
            return Err(format!("no quad: {row:?}"));
        };
        let subject: NamedOrBlankNode = match s {
            Term::NamedNode(n) => n.clone().into(),
            Term::BlankNode(b) => b.clone().into(),
            other => return Err(format!("a subject: {other}")),
        };
        let graph = match g {
            None => GraphName::DefaultGraph,
            Some(Term::NamedNode(n)) => n.clone().into(),
            Some(Term::BlankNode(b)) => b.clone().into(),
            Some(other) => return Err(format!("a graph: {other}")),
        };
        Ok(Quad::new(subject, p.clone(), o.clone(), graph))
    };
    answer.solutions().iter().map(quad).collect()
}

fn same_quads(got: &Vec<Quad>, want: &Vec<Quad>) -> Result<(), String> {
    let canonical = |quads: &Vec<Quad>| {
        let mut data = Dataset::new();
        for q in quads {
            data.insert(&lower_tags(q.clone()));
        }
        data.canonicalize(CanonicalizationAlgorithm::Unstable);
        data
    };
    let (got, want) = (canonical(got), canonical(want));
    if got == want {
        return Ok(());
    }
    let only = |a: &Dataset, b: &Dataset| -> String {
        let rest = a.iter().filter(|q| !b.contains(*q));
        rest.map(|q| format!("\n  {q}")).collect()
    };
    Err(format!(
        "quads too many:{}\nquads missing:{}",
        only(&got, &want),
        only(&want, &got)
    ))
}

fn lower_tags(mut quad: Quad) -> Quad {
    if let Term::Literal(l) = &quad.object
        && let (Some(tag), None) = (l.language(), l.direction())
    {
        quad.object = oxrdf::Literal::new_language_tagged_literal_unchecked(
            l.value(),
            tag.to_ascii_lowercase(),
        )
        .into();
    }
    quad
}
