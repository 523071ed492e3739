//! `jindou generate`.

use crate::args::generate::{Generate, WatdivQueries};
use jindou::{Error, QuadSource, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::watdiv::{Template, templates};
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
        Generate::Watdiv {
            scale,
            seed,
            out,
            model,
        } => {
            let source = Watdiv::new(&model_of(model.as_deref())?, scale, seed)?;
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
    let model = model_of(a.model.as_deref())?;
    let templates = a
        .templates
        .as_deref()
        .map_or_else(|| Ok(templates()), read_templates)?;
    std::fs::create_dir_all(&a.out).map_err(|e| Error::io(&a.out, e))?;
    let mut written = 0;
    for template in &templates {
        for instance in template.instances(&model, a.scale, a.seed, a.instances)? {
            let file = a.out.join(format!("{}.rq", instance.name));
            std::fs::write(&file, instance.text).map_err(|e| Error::io(&file, e))?;
            written += 1;
        }
    }
    eprintln!("{written} queries of {} templates", templates.len());
    Ok(ExitCode::SUCCESS)
}

fn model_of(file: Option<&Path>) -> Result<WatdivModel> {
    match file {
        None => Ok(WatdivModel::standard()),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
            WatdivModel::parse(&file.display().to_string(), &text)
        }
    }
}

fn read_templates(folder: &Path) -> Result<Vec<Template>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()).map_err(|e| Error::io(folder, e)))
        .collect::<Result<_>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "txt"));
    files.sort();
    if files.is_empty() {
        return Err(Error::Usage(format!(
            "{} has no templates (files that end in .txt)",
            folder.display()
        )));
    }
    files
        .iter()
        .map(|f| {
            let text = std::fs::read_to_string(f).map_err(|e| Error::io(f, e))?;
            let name = f.file_stem().unwrap_or_default().to_string_lossy();
            Template::parse(&name, &text)
        })
        .collect()
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
