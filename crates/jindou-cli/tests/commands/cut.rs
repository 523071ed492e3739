//! Documents of every syntax, plain and compressed, are cut at every byte and passed to `jindou load`, `jindou convert`
//! and LOAD. The result must be an error that names the document, or the same quads as those of the whole document.
//! There may be fewer quads only if the part before the cut is a valid document, as with lines of N-Quads and
//! statements of Turtle.

use jindou::{
    Database, Documents, LoadOptions, Progress, QuadBatch, QuadSink, QuadSource, UpdateOptions,
};
use jindou_parse::Sources;
use jindou_testing::{Document, documents, may_end};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The quads of a document, or the error.
type Outcome = Result<Vec<String>, String>;
/// A function that reads a document with one of the commands.
type Way = fn(&StorePlace, &str) -> Outcome;

/// A folder for documents, and a store in memory into which LOAD reads them.
struct StorePlace {
    folder: tempfile::TempDir,
    db: Database,
    options: UpdateOptions,
}

impl StorePlace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::new().folder(folder.path()).unwrap();
        let db = Database::in_memory();
        db.update(OLD, &UpdateOptions::default()).unwrap();
        Self {
            folder,
            db,
            options: UpdateOptions::default().with_documents(Arc::new(documents)),
        }
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }
}

const OLD: &str = "INSERT DATA { <http://e/old> <http://e/p> 1 }";

/// The sorted lines, with all blank nodes written alike, since they get other labels each time.
fn comparable(lines: &str) -> Vec<String> {
    let blank = unlabelled(lines);
    let mut lines: Vec<String> = blank.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The text with each blank node written as `_:b`.
fn unlabelled(text: &str) -> String {
    let mut parts = text.split("_:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '\n']).unwrap_or(part.len());
        out.push_str("_:b");
        out.push_str(&part[end..]);
    }
    out
}

fn command(folder: &Path, args: &[&str]) -> Outcome {
    let o = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(!error.contains("panicked"), "{args:?}: {error}");
    match o.status.code() {
        Some(0) => Ok(comparable(&String::from_utf8(o.stdout).unwrap())),
        Some(1) => Err(error),
        code => panic!("{args:?}: {code:?} {error}"),
    }
}

fn convert(place: &StorePlace, name: &str) -> Outcome {
    command(
        place.at(),
        &[
            "convert",
            "-q",
            "--to",
            "nq",
            "--base",
            "http://base/",
            name,
        ],
    )
}

/// Loads the document into a new store with `jindou load`. Returns the store's quads.
fn load(place: &StorePlace, name: &str) -> Outcome {
    let folder = place.at();
    let _ = fs::remove_dir_all(folder.join("s"));
    let loaded = command(
        folder,
        &["load", "-q", "--base", "http://base/", "--store", "s", name],
    );
    if loaded.is_err() {
        assert!(!folder.join("s").exists(), "{name}");
        return loaded;
    }
    command(folder, &["dump", "-q", "--store", "s", "--to", "nq"])
}

#[derive(Default)]
struct Lines(String);

impl QuadSink for Lines {
    fn batch(&mut self, batch: &QuadBatch) -> jindou::Result<()> {
        for quad in &batch.quads {
            for &span in quad.iter().filter(|s| s.len > 0) {
                let term = jindou_model::term::decode(batch.term(span)).unwrap();
                self.0.push_str(&format!("{term} "));
            }
            self.0.push_str(".\n");
        }
        Ok(())
    }
}

fn stored(db: &Database) -> Vec<String> {
    let mut lines = Lines::default();
    let all = db.export(None).unwrap();
    all.run(0, 1, &mut lines, &Progress::default()).unwrap();
    comparable(&lines.0)
}

/// Does the same with the library, without starting a process.
fn load_here(place: &StorePlace, name: &str) -> Outcome {
    let folder = place.at();
    let store = folder.join("here");
    let _ = fs::remove_dir_all(&store);
    let source = Sources::builder()
        .base_iri(Some("http://base/".into()))
        .path(folder.join(name))
        .build()
        .unwrap();
    let options = LoadOptions::default().with_threads(1);
    match Database::load(&store, &source, &options, &Progress::default()) {
        Ok(_) => Ok(stored(&Database::open(&store).unwrap())),
        Err(e) => {
            assert!(!store.exists(), "{name}");
            Err(e.to_string())
        }
    }
}

/// Loads the document with an update, LOAD. A document with an error must leave the store unchanged.
fn update(place: &StorePlace, name: &str) -> Outcome {
    let path = fs::canonicalize(place.at().join(name)).unwrap();
    let load = format!("LOAD <file://{}>", path.display());
    let done = place.db.update(&load, &place.options);
    let mut quads = stored(&place.db);
    let old = quads.iter().position(|q| q.contains("<http://e/old>"));
    quads.remove(old.expect("what was there"));
    match done {
        Ok(_) => {
            let again = format!("CLEAR ALL ; {OLD}");
            place.db.update(&again, &place.options).unwrap();
            Ok(quads)
        }
        Err(e) => {
            assert!(quads.is_empty(), "{name}");
            Err(e.to_string())
        }
    }
}

const WAYS: [(&str, Way); 3] = [("convert", convert), ("load", load_here), ("LOAD", update)];

/// Cuts each document at about every `step`-th byte and at its last two bytes. Returns the number of cuts.
fn cut(way: (&str, Way), all: &[Document], step: usize) -> usize {
    let (title, way) = way;
    let place = StorePlace::new();
    let at = place.at();
    let mut count = 0;
    for (n, (format, text)) in all.iter().enumerate() {
        let name = format!("d.{}", format);
        fs::write(at.join(&name), text).unwrap();
        let whole = way(&place, &name).unwrap_or_else(|e| panic!("{title}, {format} {n}: {e}"));
        assert!(!whole.is_empty(), "{title}, {text}");
        for to in (0..text.len()).filter(|to| to % step == n % step || to + 3 > text.len()) {
            count += 1;
            fs::write(at.join(&name), &text.as_bytes()[..to]).unwrap();
            match way(&place, &name) {
                // The error names the file.
                Err(e) => assert!(e.contains(&name), "{title}, {format} {n} at {to}: {e}"),
                Ok(quads) => {
                    let before = std::str::from_utf8(&text.as_bytes()[..to]).unwrap();
                    assert!(
                        quads == whole || may_end(format, before),
                        "{title}, {before:?}: {quads:?}"
                    );
                    assert!(quads.len() <= whole.len());
                }
            }
        }
        fs::remove_file(at.join(&name)).unwrap();
    }
    count
}

fn compressed(text: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(text).unwrap();
    [
        ("gz", gzip.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zst", zstd::encode_all(text, 3).unwrap()),
    ]
}

/// Does the same with compressed documents. A cut one is an error, unless all of its quads can be read.
fn cut_compressed(way: (&str, Way), all: &[Document], step: usize) -> usize {
    let (title, way) = way;
    let place = StorePlace::new();
    let at = place.at();
    let mut count = 0;
    for (n, (format, text)) in all.iter().enumerate() {
        for (packing, bytes) in compressed(text.as_bytes()) {
            let name = format!("d.{}.{packing}", format);
            fs::write(at.join(&name), &bytes).unwrap();
            let whole = way(&place, &name).unwrap_or_else(|e| panic!("{title}, {name} {n}: {e}"));
            for to in (0..bytes.len()).filter(|to| to % step == n % step || to + 3 > bytes.len()) {
                count += 1;
                fs::write(at.join(&name), &bytes[..to]).unwrap();
                match way(&place, &name) {
                    Err(e) => assert!(e.contains(&name), "{title}, {name} {n} at {to}: {e}"),
                    Ok(quads) => assert_eq!(quads, whole, "{title}, {name} {n} at {to}"),
                }
            }
            fs::remove_file(at.join(&name)).unwrap();
        }
    }
    count
}

#[test]
fn documents_that_are_cut_are_whole_or_errors() {
    for (way, documents_each, step) in [(("load", load as Way), 1, 97), (WAYS[0], 1, 41)] {
        cut(way, &documents(documents_each), step);
    }
    for way in [WAYS[1], WAYS[2]] {
        cut(way, &documents(2), 11);
    }
}

#[test]
fn compressed_documents_that_are_cut_are_whole_or_errors() {
    cut_compressed(("load", load as Way), &documents(1), 211);
    cut_compressed(WAYS[0], &documents(1), 101);
    cut_compressed(WAYS[2], &documents(1), 7);
}

/// The whole test. `JINDOU_WAY=load` selects a command, `JINDOU_DOCUMENTS` another number of documents of each syntax.
#[test]
#[ignore = "long: every byte of 50 documents of each syntax"]
fn every_cut() {
    let count = std::env::var("JINDOU_DOCUMENTS").map_or(50, |n| n.parse().unwrap());
    let all = documents(count);
    for way in WAYS {
        if std::env::var("JINDOU_WAY").is_ok_and(|only| only != way.0) {
            continue;
        }
        let start = std::time::Instant::now();
        let plain = cut(way, &all, 1);
        let packed = cut_compressed(way, &all, 1);
        println!(
            "{}: {} documents, {plain} cuts plain, {packed} compressed, {:.0} s",
            way.0,
            all.len(),
            start.elapsed().as_secs_f64()
        );
    }
}
