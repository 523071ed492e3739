//! Stores that have the same statements, but were made in different ways.

use jindou::parse::Format;
use jindou::testing::source;
use jindou::{
    Access, Answer, Batch, Database, Durability, LoadOptions, MergeOptions, OpenOptions, Progress,
    QueryOptions, ReclusterOptions, ServiceCaller, TakeRow, UpdateOptions,
};
use oxrdf::{GraphName, NamedNode, Quad, Term};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The predicate that leads from a vertex to its value.
pub const VALUE: &str = "<http://e/value>";

/// The vertex that has value number `i`.
pub fn vertex(i: usize) -> String {
    format!("<http://e/v{i}>")
}

/// The number of the value that a vertex has; `None` for the additional vertices that only fill the base.
pub fn number_of(term: Option<&Term>) -> Option<usize> {
    match term {
        Some(Term::NamedNode(n)) => n.as_str().strip_prefix("http://e/v")?.parse().ok(),
        _ => None,
    }
}

/// A database, and a description of how it was made.
pub struct Store {
    pub name: &'static str,
    pub db: Database,
    _folder: tempfile::TempDir,
}

fn statements(values: &[Term]) -> Vec<Quad> {
    let iri = |text: &str| NamedNode::new_unchecked(text);
    let mut out: Vec<Quad> = values
        .iter()
        .enumerate()
        .map(|(i, v)| {
            Quad::new(
                iri(&format!("http://e/v{i}")),
                iri("http://e/value"),
                v.clone(),
                GraphName::DefaultGraph,
            )
        })
        .collect();
    out.push(Quad::new(
        iri("http://e/one"),
        iri("http://e/is"),
        iri("http://e/here"),
        GraphName::DefaultGraph,
    ));
    out
}

fn load(dir: &Path, quads: &[Quad]) -> Database {
    let text: String = quads.iter().map(|q| format!("{q} .\n")).collect();
    let source = source(&text, Format::NQuads);
    let options = LoadOptions::default().with_threads(1).with_memory(64 << 20);
    Database::load(dir, &source, &options, &Progress::default()).expect("a load");
    let options = OpenOptions::default()
        .with_access(Access::Write)
        .with_durability(Durability::None);
    Database::open_with(dir, &options).expect("the store")
}

fn insert(db: &Database, quads: &[Quad]) {
    let mut batch = Batch::new();
    for q in quads {
        batch.insert(q.as_ref());
    }
    db.apply(&batch, &UpdateOptions::default())
        .expect("an update");
}

fn merge(db: &Database) {
    db.merge(&MergeOptions::default(), &Progress::default())
        .expect("a merge");
}

fn recluster(db: &Database) {
    let options = ReclusterOptions::default()
        .with_memory(64 << 20)
        .with_threads(1);
    db.recluster(&options, &Progress::default())
        .expect("a reclustering");
}

/// Stores whose terms are in the base, in the tail, or in both, and stores after a merge and after a reclustering.
pub fn stores(values: &[Term]) -> Vec<Store> {
    let all = statements(values);
    let last = all.len() - 1;
    let halves: (Vec<Quad>, Vec<Quad>) = {
        let (even, odd): (Vec<_>, Vec<_>) = all[..last]
            .iter()
            .cloned()
            .enumerate()
            .partition(|(i, _)| i % 2 == 0);
        let strip = |v: Vec<(usize, Quad)>| v.into_iter().map(|(_, q)| q).collect::<Vec<_>>();
        (strip(even), strip(odd))
    };
    let made = |name, before: &[Quad], after: &[Quad], then: &dyn Fn(&Database)| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = before.to_vec();
        first.push(all[last].clone());
        // These make the predicate known to the base, and so to the planner, even if all values are in the tail.
        first.extend((0..200).map(|i| {
            Quad::new(
                NamedNode::new_unchecked(format!("http://e/w{i}")),
                NamedNode::new_unchecked("http://e/value"),
                oxrdf::Literal::new_simple_literal(format!("{i} more")),
                GraphName::DefaultGraph,
            )
        }));
        let db = load(&folder.path().join("store"), &first);
        if !after.is_empty() {
            insert(&db, after);
        }
        then(&db);
        Store {
            name,
            db,
            _folder: folder,
        }
    };
    let (even, odd) = (&halves.0, &halves.1);
    vec![
        made("base", &all[..last], &[], &|_| ()),
        made("tail", &[], &all[..last], &|_| ()),
        made("base and tail", even, odd, &|_| ()),
        made("merged", odd, even, &merge),
        made("reclustered", even, odd, &recluster),
    ]
}

/// An endpoint that answers every request with the same rows.
#[derive(Debug, Default)]
pub struct Scripted {
    rows: Mutex<(Vec<&'static str>, Table)>,
}

impl Scripted {
    /// Sets the variables and rows of all later answers.
    pub fn script(&self, names: Vec<&'static str>, rows: Table) {
        *self.rows.lock().expect("a lock") = (names, rows);
    }
}

impl ServiceCaller for Scripted {
    fn call(
        &self,
        _: &str,
        _: &str,
        variables: &[&str],
        _: &jindou::CancelToken,
        row: TakeRow<'_>,
    ) -> jindou::Result<()> {
        let script = self.rows.lock().expect("a lock");
        let places: Vec<Option<usize>> = variables
            .iter()
            .map(|v| script.0.iter().position(|n| n == v))
            .collect();
        for r in &script.1 {
            let cells: Vec<Option<Vec<u8>>> = places
                .iter()
                .map(|p| p.and_then(|p| r[p].as_ref().map(jindou_model::term::encode)))
                .collect();
            row(&cells)?;
        }
        Ok(())
    }
}

/// Rows of an answer.
pub type Table = Vec<Vec<Option<Term>>>;

/// The answer's rows, or the error's message.
pub fn ask(db: &Database, text: &str, service: Option<&Arc<Scripted>>) -> Result<Table, String> {
    let mut options = QueryOptions::default().with_threads(1);
    options.service = service.map(|s| Arc::clone(s) as Arc<dyn ServiceCaller>);
    match db.query_with(text, &options) {
        Ok(Answer::Solutions { rows, .. }) => Ok(rows),
        Ok(_) => Err("no table".into()),
        Err(e) => Err(e.to_string()),
    }
}
