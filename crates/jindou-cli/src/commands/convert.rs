//! `jindou convert`: converts documents from one RDF format to another, without a store.

use super::{cancel_on_interrupt, contexts, counted, load, runtime};
use crate::args::Convert;
use crate::progress::Bar;
use crate::rdf::{NamedGraphs, OutFile, QuadWriter, format_for};
use crate::say::say;
use jindou::parse::{Input, Limits, Sources};
use jindou::{Error, Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_parse::Format;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::sync::Arc;

pub fn run(a: &Convert) -> Result<ExitCode> {
    if let [.., last] = &a.files[..]
        && a.files.len() > 1
        && !last.exists()
        && a.out.as_os_str() == "-"
    {
        let from: Vec<String> = a.files[..a.files.len() - 1]
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        return Err(Error::Usage(format!(
            "there is no file {0} to read; to write it: jindou convert {1} --out {0}",
            last.display(),
            from.join(" ")
        )));
    }
    let format = format_for(&a.out, a.to)?.unwrap_or(Format::NQuads);
    let limits = Limits {
        cancel: cancel_on_interrupt(),
        memory: runtime(Some(1), a.memory).memory().clone(),
    };
    let mut builder = Sources::builder()
        .lenient(a.lenient)
        .base_iri(a.base.clone())
        .format(a.from)
        .contexts(contexts(&a.contexts.context))
        .limits(limits);
    for path in &a.files {
        builder = builder.input(Input {
            path: path.clone(),
            format: a.from,
            graph: a.graph.clone(),
        });
    }
    let sources = builder.build()?;
    for w in sources.warnings() {
        eprintln!("jindou: {w}");
    }
    if let Some(to) = &a.errors {
        let file = File::create(to).map_err(|e| Error::io(to, e))?;
        sources.write_errors_to(BufWriter::new(file));
    }
    let graphs = match a.drop_graphs {
        true => NamedGraphs::Drop,
        false => NamedGraphs::Keep,
    };
    let progress = Arc::new(Progress::default());
    let read = |sink: &mut dyn QuadSink| {
        let _bar = Bar::start(Arc::clone(&progress), sources.size_hint(), a.quiet);
        // With one worker, statements keep the order of the document.
        sources.run(0, 1, sink, &progress)
    };
    let quads = if a.check {
        let mut counter = QuadCounter(0);
        read(&mut counter)?;
        counter.0
    } else {
        let out = OutFile::create(&a.out)?;
        let mut writer = QuadWriter::new(out, &a.out, format, graphs)
            .with_prefixes(&a.prefixes.prefix, !a.prefixes.no_prefixes);
        read(&mut writer)?;
        writer.finish()?
    };
    sources.flush_errors()?;
    load::show_skipped(&sources, a.errors.as_deref());
    if a.check {
        say!("{}", counted(quads, "statement"));
    } else if !a.quiet && a.out.as_os_str() != "-" {
        eprintln!(
            "{}: {} as {format}",
            a.out.display(),
            counted(quads, "statement")
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts quads.
struct QuadCounter(u64);

impl QuadSink for QuadCounter {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.0 += batch.quads.len() as u64;
        Ok(())
    }
}
