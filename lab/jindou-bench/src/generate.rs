//! `jindou generate`.

use crate::args::generate::{Generate, WatdivQueries};
use jindou::{Error, QuadSource, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::watdiv::{instances, templates};
use jindou_workloads::sp2b::Sp2b;
use jindou_workloads::ugly::Ugly;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(what: Generate) -> Result<ExitCode> {
    let tags = match what {
        Generate::Ugly { .. } => TagCase::Mixed,
        _ => TagCase::Lower,
    };
    let (source, out): (Box<dyn QuadSource>, PathBuf) = match what {
        Generate::Lubm {
            universities,
            seed,
            out,
        } => (Box::new(Lubm::new(universities, seed)), out),
        Generate::Watdiv { scale, seed, out } => {
            let source = Watdiv::new(&WatdivModel::standard(), scale, seed)?;
            (Box::new(source), out)
        }
        Generate::Bsbm {
            products,
            seed,
            out,
        } => (Box::new(Bsbm::new(products, seed)), out),
        Generate::Sp2b { triples, seed, out } => (Box::new(Sp2b::new(triples, seed)), out),
        Generate::Ugly { quads, seed, out } => (Box::new(Ugly::new(quads, seed)), out),
        Generate::WatdivQueries(a) => return watdiv_queries(&a),
    };
    write(&*source, tags, &out)
}

/// Writes one file per instance.
fn watdiv_queries(a: &WatdivQueries) -> Result<ExitCode> {
    std::fs::create_dir_all(&a.out).map_err(|e| Error::io(&a.out, e))?;
    let instances = instances(a.scale, a.seed, a.instances)?;
    for instance in &instances {
        let file = a.out.join(format!("{}.rq", instance.name));
        std::fs::write(&file, &instance.text).map_err(|e| Error::io(&file, e))?;
    }
    let (written, templates) = (instances.len(), templates().len());
    eprintln!("{written} queries of {templates} templates");
    Ok(ExitCode::SUCCESS)
}

fn write(source: &dyn QuadSource, tags: TagCase, out: &Path) -> Result<ExitCode> {
    let to: Box<dyn Write> = if out.as_os_str() == "-" {
        Box::new(std::io::stdout().lock())
    } else {
        Box::new(File::create(out).map_err(|e| Error::io(out, e))?)
    };
    let mut to = BufWriter::with_capacity(1 << 20, to);
    let quads = write_source(source, tags, &mut to)?;
    to.flush().map_err(|e| {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            Error::SinkClosed
        } else {
            Error::io(out, e)
        }
    })?;
    let end = if quads == 1 { "" } else { "s" };
    eprintln!("{quads} statement{end}");
    Ok(ExitCode::SUCCESS)
}
