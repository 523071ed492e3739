//! `jindou bench files`: runs the user's own queries over the user's own data.

use super::peers::{PeerWork, Workload, run as run_peers};
use crate::args::peers::BenchFiles;
use crate::measure::threads_or_all;
use jindou::{Error, Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_parse::Sources;
use jindou_parse::write::write_batch;
use jindou_peers::Named;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(a: &BenchFiles) -> Result<ExitCode> {
    let queries = queries(&a.queries)?;
    let work = PeerWork::new(&a.peers)?;
    let (data, statements) = data(a, &work)?;
    let mut names: Vec<_> = a
        .data
        .iter()
        .map(|d| {
            d.file_name()
                .map_or_else(|| d.display().to_string(), |n| n.to_string_lossy().into())
        })
        .collect();
    // Data folders often contain files of the same name.
    names.dedup();
    run_peers(
        &Workload {
            title: names.join(", "),
            data: &data,
            statements: Some(statements),
            queries,
            threads: threads_or_all(a.threads),
        },
        &a.peers,
        &work,
        a.json.as_deref(),
    )
}

/// Every query of a folder, by name; numbers in names count as numbers (`q2` before `q10`).
pub fn queries(dir: &Path) -> Result<Vec<Named>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let path = entry.map_err(|e| Error::io(dir, e))?.path();
        if path.extension().is_some_and(|e| e == "rq" || e == "sparql") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
            out.push(Named::new(name, text));
        }
    }
    if out.is_empty() {
        return Err(Error::external(format!(
            "{} has no *.rq or *.sparql file",
            dir.display()
        )));
    }
    out.sort_by_key(|q| natural(&q.name));
    Ok(out)
}

/// Pads numbers with zeros, so that text order sorts them by value.
fn natural(name: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in name.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            out += &format!("{digits:0>20}");
            digits.clear();
        }
        out.push(c);
    }
    out
}

/// Writes all data as one file of N-Triples in the canonical layout, since not every engine reads every syntax and
/// compression, and all must load the same statements in the same spelling. Blank nodes of different files stay
/// different; named graphs are merged into the default graph.
fn data(a: &BenchFiles, work: &PeerWork) -> Result<(PathBuf, u64)> {
    let mut sources = Sources::builder().lenient(a.lenient);
    for path in &a.data {
        sources = sources.path(path);
    }
    let sources = sources.build()?;
    // Always rebuilt, since the inputs may have changed. The engines' stores next to it are reused only if its content
    // is the same.
    let path = work.dir.join("data.nt");
    let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
    let mut sink = Flat {
        out: BufWriter::with_capacity(1 << 20, file),
        path: &path,
        text: Vec::new(),
        statements: 0,
        in_graphs: 0,
        plain: QuadBatch::default(),
    };
    sources.run(0, 1, &mut sink, &Progress::default())?;
    sink.out.flush().map_err(|e| Error::io(&path, e))?;
    let (statements, in_graphs) = (sink.statements, sink.in_graphs);
    drop(sink);
    for w in sources.warnings() {
        eprintln!("jindou: {w}");
    }
    if sources.skipped() > 0 {
        eprintln!(
            "jindou: skipped {} statements that are not valid",
            sources.skipped()
        );
    }
    if in_graphs > 0 {
        eprintln!("jindou: {in_graphs} statements of named graphs were merged into one graph");
    }
    Ok((path, statements))
}

/// Writes quads as triples, without their graphs.
struct Flat<'a> {
    out: BufWriter<File>,
    path: &'a Path,
    text: Vec<u8>,
    statements: u64,
    in_graphs: u64,
    plain: QuadBatch,
}

impl QuadSink for Flat<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.plain.clear();
        self.plain.bytes.extend_from_slice(&batch.bytes);
        for [s, p, o, g] in &batch.quads {
            self.in_graphs += u64::from(g.len > 0);
            self.plain.quads.push([*s, *p, *o, Default::default()]);
        }
        self.statements += batch.quads.len() as u64;
        self.text.clear();
        write_batch(&self.plain, &mut self.text)?;
        self.out
            .write_all(&self.text)
            .map_err(|e| Error::io(self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_people_expect() {
        let mut names = ["q10", "q9", "a", "q1b", "q1"];
        names.sort_by_key(|n| natural(n));
        assert_eq!(names, ["a", "q1", "q1b", "q9", "q10"]);
    }
}
