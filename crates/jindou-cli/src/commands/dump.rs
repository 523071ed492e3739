//! `jindou dump`: a store's quads as a document.

use super::{cancel_on_interrupt, counted, runtime, show_recovery};
use crate::args::Dump;
use crate::progress::Bar;
use crate::rdf::{NamedGraphs, OutFile, QuadWriter, format_for};
use jindou::{Access, Database, GraphName, OpenOptions, Progress, QuadSource, Result};
use jindou_parse::Format;
use std::process::ExitCode;
use std::sync::Arc;

pub fn run(a: &Dump) -> Result<ExitCode> {
    // The output's format is determined before the store is opened, so that a wrong file name is reported at once.
    let asked = format_for(&a.out, a.to)?;
    let store = a.place.required("dump")?;
    let db = Database::open_with(
        store,
        &OpenOptions::default()
            .with_access(Access::Read)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(Some(1), None)),
    )?;
    super::tell_copy(store);
    show_recovery(&db);
    let only = match (&a.graph, a.default_graph) {
        (Some(iri), _) => Some(GraphName::Named(iri.clone())),
        (None, true) => Some(GraphName::Default),
        (None, false) => None,
    };
    let export = db.export(only.as_ref())?.with_cancel(cancel_on_interrupt());
    // One graph is written as triples by default; with --keep-graph it is written as quads.
    let format = asked.unwrap_or(match &only {
        Some(_) if !a.keep_graph => Format::NTriples,
        _ => Format::NQuads,
    });
    let drop = a.drop_graphs || (only.is_some() && !a.keep_graph);
    let graphs = match drop {
        true => NamedGraphs::Drop,
        false => NamedGraphs::Keep,
    };
    let out = OutFile::create(&a.out)?;
    let mut writer = QuadWriter::new(out, &a.out, format, graphs)
        .with_prefixes(&a.prefixes.prefix, !a.prefixes.no_prefixes);
    let progress = Arc::new(Progress::default());
    {
        let _bar = Bar::start(Arc::clone(&progress), export.size_hint(), a.quiet);
        export.run(0, 1, &mut writer, &progress)?;
    }
    let quads = writer.finish()?;
    if !a.quiet && a.out.as_os_str() != "-" {
        eprintln!(
            "{}: {} as {format}",
            a.out.display(),
            counted(quads, "statement")
        );
    }
    Ok(ExitCode::SUCCESS)
}
