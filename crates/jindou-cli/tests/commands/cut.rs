//! Documents of every syntax, plain and compressed, cut at every byte, through `jindou load`, `jindou convert` and LOAD: an error with its place, or the
//! same quads as the whole; fewer only where what stands before the cut is a document itself, as lines of N-Quads and statements of Turtle are.

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

/// The quads that came of a document, or the error.
type Outcome = Result<Vec<String>, String>;
/// A way that documents take.
type Way = fn(&StorePlace, &str) -> Outcome;

/// A folder for documents, and a store in memory for their quads.
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

/// Nodes without labels get other ones each time.
fn comparable(lines: &str) -> Vec<String> {
    let blank = unlabelled(lines);
    let mut lines: Vec<String> = blank.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The text with `_:b` for every blank node.
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

/// The command, into a new store.
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

/// The command's work, in this process.
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

/// An update. A document that fails leaves what is there.
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

/// Cuts documents at each byte that is a multiple of `step`, and at the last ones. Returns how many cuts there were.
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
                // The file's name, and where a text has one the line.
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

/// The same for compressed documents, of which no part is whole.
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

/// `JINDOU_WAY=load` for one way, `JINDOU_DOCUMENTS` for another number of documents of each syntax.
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
