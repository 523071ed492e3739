//! Databases that follow one log in a directory, as servers on several machines would.

#![cfg(feature = "replicas")]

use jindou::parse::{Format, Sources};
use jindou::replica::{Bucket, BucketLimits, Consistency, SharedLog};
use jindou::{
    Access, Batch, Database, Error, GraphName, LoadOptions, MergeOptions, OpenOptions, Progress,
    UpdateOptions,
};
use std::path::Path;

fn open(log: &Path, folder: &Path, name: &str) -> jindou::Result<Database> {
    let bucket = Bucket::directory(log, BucketLimits::default()).unwrap();
    let options = OpenOptions::default().with_log(SharedLog::new(bucket, name));
    Database::open_with(folder, &options)
}

/// The quads, in order, once everything that was acknowledged is there.
fn quads(db: &Database) -> Vec<String> {
    if let Some(replica) = db.replica() {
        replica.wait_for(Consistency::Strict).unwrap();
    }
    let text = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answer = db.query(text).unwrap();
    let mut rows: Vec<String> = answer
        .solutions()
        .iter()
        .map(|r| format!("{r:?}"))
        .collect();
    rows.sort_unstable();
    rows
}

fn turtle(text: &str) -> Sources {
    let source = Sources::builder().text("data.ttl", text.as_bytes(), Format::Turtle);
    source.build().unwrap()
}

const LOADED: &str =
    "@prefix e: <http://e/> . e:a e:p e:b, e:c . e:b a e:Planet . e:c e:name \"c\"@en .";

/// Changes of all kinds.
fn change(db: &Database, n: usize) -> jindou::Result<(u64, u64, Option<bool>)> {
    let options = UpdateOptions::default();
    let progress = Progress::default();
    let graph = GraphName::Named(format!("http://e/g{}", n % 3));
    let text = format!("<http://e/n{n}> <http://e/q> \"{n}\" .");
    let report = match n % 8 {
        0 => db.update(
            &format!("PREFIX e: <http://e/> INSERT {{ ?s e:seen {n} }} WHERE {{ ?s e:p ?o }}"),
            &options,
        ),
        1 => db.insert(&turtle(&text), &options, &progress),
        2 => db.insert(
            &turtle(&format!("@prefix n{n}: <http://e/n{n}/> . n{n}:s <http://e/p> n{n}:o .")),
            &options,
            &progress,
        ),
        3 => db.update(
            "DELETE { ?s <http://e/seen> ?n } WHERE { ?s <http://e/seen> ?n }; INSERT DATA { GRAPH <http://e/g1> { <http://e/x> <http://e/y> <http://e/z> } }",
            &options,
        ),
        4 => db.clear_graph(&graph, &options),
        5 => {
            let source = Sources::builder()
                .graph(Some(format!("http://e/g{}", n % 3)))
                .text("data.ttl", text.into_bytes(), Format::Turtle);
            db.replace_graph(&graph, &source.build().unwrap(), &options, &progress)
        }
        6 => {
            let mut batch = Batch::new();
            let iri = |text: &str| oxrdf::NamedNode::new_unchecked(text);
            let quad = oxrdf::Quad::new(
                iri("http://e/batch"),
                iri("http://e/p"),
                oxrdf::Literal::from(n as i64),
                oxrdf::GraphName::DefaultGraph,
            );
            batch.insert(quad.as_ref());
            db.apply(&batch, &options)
        }
        _ => {
            let mut transaction = db.begin(&options)?;
            transaction.update(&format!("INSERT DATA {{ <http://e/t> <http://e/p> {n} }}"), &options)?;
            transaction.update("DELETE WHERE { <http://e/batch> <http://e/p> ?x }", &options)?;
            transaction.commit()
        }
    }?;
    Ok((report.added, report.removed, report.graph_was_there))
}

#[test]
fn three_servers_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let log = at("log");
    Database::load(
        at("one"),
        &turtle(LOADED),
        &LoadOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let one = open(&log, &at("one"), "one").unwrap();
    // It waits for the upload of the first one's store.
    let two = open(&log, &at("two"), "two").unwrap();
    let mut servers = vec![one, two, open(&log, &at("three"), "three").unwrap()];
    let names = ["one", "two", "three"];
    for n in 0..48 {
        let server = &servers[n % 3];
        server
            .replica()
            .unwrap()
            .wait_for(Consistency::Strict)
            .unwrap();
        let got = change(server, n).unwrap();
        assert_eq!(got, change(&oracle, n).unwrap(), "change {n}");
        assert!(server.snapshot_number() >= n as u64);
        if n % 5 == 0 {
            let server = &servers[(n + 1) % 3];
            assert_eq!(quads(server), quads(&oracle), "after change {n}");
            assert_eq!(server.prefixes().len(), oracle.prefixes().len());
        }
        if n % 7 == 3 {
            servers[n % 3]
                .merge(&MergeOptions::default(), &Progress::default())
                .unwrap();
            assert_eq!(quads(&servers[n % 3]), quads(&oracle));
        }
        if n % 9 == 8 {
            // A server goes and comes back; sometimes its disk is lost.
            let index = n / 9 % 3;
            let name = names[index];
            let gone = servers.remove(index);
            drop(gone);
            let reopened = loop {
                if n % 2 == 0 {
                    let _ = std::fs::remove_dir_all(at(name));
                }
                match open(&log, &at(name), name) {
                    Ok(server) => break server,
                    Err(Error::InUse { .. }) => {}
                    Err(e) => panic!("{e}"),
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            };
            servers.insert(index, reopened);
            assert_eq!(quads(&servers[index]), quads(&oracle), "reopened after {n}");
        }
    }
    // The default graph is one as well.
    let whole =
        turtle("<http://e/default> <http://e/p> 1 . <http://e/a> <http://e/p> <http://e/b> .");
    let options = UpdateOptions::default();
    let mut reports = Vec::new();
    for db in servers.iter().chain([&oracle]) {
        let graph = GraphName::Default;
        let report = db.replace_graph(&graph, &whole, &options, &Progress::default());
        let report = report.unwrap();
        reports.push((report.added, report.removed, report.graph_was_there));
    }
    assert_eq!(reports[0], reports[3]);
    assert_eq!(reports[1], (0, 0, Some(true)));
    assert_eq!(quads(&servers[0]), quads(&oracle));
    let refused = servers[0].update("CREATE GRAPH <http://e/g1>", &UpdateOptions::default());
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let wrong = servers[0].update("INSERT DATA { this is wrong }", &UpdateOptions::default());
    assert!(matches!(wrong, Err(Error::Sparql(_))), "{wrong:?}");
    // The same name, the same answer.
    let options = UpdateOptions::default().with_key("once".to_owned());
    let text = "INSERT DATA { <http://e/once> <http://e/p> 1 }";
    let first = servers[0].update(text, &options).unwrap();
    servers[1]
        .replica()
        .unwrap()
        .wait_for(Consistency::Strict)
        .unwrap();
    let again = servers[1].update(text, &options).unwrap();
    assert_eq!((first.added, first.snapshot), (again.added, again.snapshot));
    oracle.update(text, &UpdateOptions::default()).unwrap();
    for server in &servers {
        assert_eq!(quads(server), quads(&oracle));
    }
}

#[test]
fn folders_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let load = |name: &str, text: &str| {
        Database::load(
            at(name),
            &turtle(text),
            &LoadOptions::default(),
            &Progress::default(),
        )
        .unwrap();
    };
    load("one", LOADED);
    load("same", LOADED);
    load("changed", LOADED);
    load("other", "<http://e/other> <http://e/p> 1 .");
    let options = UpdateOptions::default();
    let write = OpenOptions::default().with_access(Access::Write);
    let changed = Database::open_with(at("changed"), &write).unwrap();
    changed
        .update("INSERT DATA { <http://e/s> <http://e/p> 2 }", &options)
        .unwrap();
    drop(changed);
    let one = open(&at("log"), &at("one"), "one").unwrap();
    one.update("INSERT DATA { <http://e/s> <http://e/p> 1 }", &options)
        .unwrap();
    for name in ["changed", "other"] {
        let refused = open(&at("log"), &at(name), name).map(drop).unwrap_err();
        assert!(
            refused.to_string().contains("another store's"),
            "{name}: {refused}"
        );
    }
    // The same data has the same ids.
    let same = open(&at("log"), &at("same"), "same").unwrap();
    assert_eq!(quads(&same), quads(&one));
    // Without the log it is only read.
    drop(same);
    let refused = loop {
        match Database::open_with(at("same"), &write)
            .map(drop)
            .unwrap_err()
        {
            Error::InUse { .. } => {}
            refused => break refused,
        }
    };
    assert!(
        refused.to_string().contains("follows a shared log"),
        "{refused}"
    );
    let read = Database::open(at("same")).unwrap();
    assert!(read.update("CLEAR ALL", &options).is_err());
    // A changed store begins a log of its own, and what its own log had is in it.
    let changed = open(&at("log-2"), &at("changed"), "changed").unwrap();
    assert_eq!(quads(&changed).len(), 5);
    drop(changed);
    let refused = loop {
        match open(&at("log"), &at("changed"), "changed")
            .map(drop)
            .unwrap_err()
        {
            Error::InUse { .. } => {}
            refused => break refused,
        }
    };
    assert!(refused.to_string().contains("another store's"), "{refused}");
}
