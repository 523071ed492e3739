//! `jindou info`.

use super::{counted, indexes};
use crate::args::Info;
use crate::say::say;
use jindou::{Database, InfoReport, Result};
use std::path::Path;
use std::process::ExitCode;

pub fn run(a: &Info) -> Result<ExitCode> {
    let store = a.place.required("info")?;
    let report = Database::info_with(store, &indexes()?)?;
    super::tell_copy(store);
    if a.json {
        say!("{:#}", json(&report, a.top));
    } else {
        print(store, &report, a.top);
    }
    Ok(ExitCode::SUCCESS)
}

/// A term's canonical bytes in readable form: IRIs and literals as in SPARQL.
fn text(canonical: &[u8]) -> String {
    let mut out = Vec::new();
    match jindou_parse::write::write_term(canonical, Default::default(), &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => "(damaged term)".into(),
    }
}

fn print(store: &Path, r: &InfoReport, top: usize) {
    print_totals(store, r);
    say!();
    print_parts(r);
    say!();
    print_predicates(r, top);
    say!();
    print_finders(r);
    say!();
    print_classes(r, top);
}

/// Bytes per quad in the store's files, or `-` if the files contain no quads.
fn per_quad(r: &InfoReport, bytes: u64, digits: usize) -> String {
    match r.quads_in_files {
        0 => "-".to_owned(),
        n => format!("{:.digits$}", bytes as f64 / n as f64),
    }
}

fn print_totals(store: &Path, r: &InfoReport) {
    say!("store           {}", store.display());
    say!(
        "quads           {} ({} in {})",
        r.quads,
        r.named_quads,
        counted(r.graphs, "named graph")
    );
    let freed = match r.free_ids {
        0 => String::new(),
        n => format!("; {n} ids of removed terms are free"),
    };
    say!(
        "terms           {} ({} ids left{freed})",
        r.terms,
        r.ids_left
    );
    say!("predicates      {}", r.predicates.len());
    say!("classes         {}", r.classes.len());
    say!(
        "set runs        {} (characteristic sets kept for the planner: {})",
        r.set_runs,
        r.planner_sets
    );
    say!(
        "default graph   {}",
        if r.union_default {
            "the union of all graphs"
        } else {
            "its own"
        }
    );
    say!("id epoch        {:016x}", r.epoch);
    if r.merged > 0 {
        say!(
            "merged          changes up to snapshot {}, in {} generation{}",
            r.merged,
            r.generations,
            if r.generations == 1 { "" } else { "s" }
        );
    }
    if r.log[0] > 0 {
        say!(
            "in the log      {}, {} counts here ({} bytes, read at every opening; `jindou merge` merges them)",
            counted(r.log[0], "transaction"),
            if r.with_log {
                "part of all"
            } else {
                "in none of the"
            },
            r.log[1]
        );
    }
    say!(
        "size            {} bytes, {} a quad{}",
        r.bytes,
        per_quad(r, r.bytes, 2),
        match r.quads == r.quads_in_files {
            true => String::new(),
            false => format!(" (of the {} that the files hold)", r.quads_in_files),
        }
    );
}

fn print_parts(r: &InfoReport) {
    say!(
        "{:<28} {:>15} {:>8} {:>7}",
        "part",
        "bytes",
        "a quad",
        "share"
    );
    for (part, bytes) in &r.parts {
        let share = 100.0 * *bytes as f64 / r.bytes.max(1) as f64;
        say!(
            "{part:<28} {bytes:>15} {:>8} {share:>6.1}%",
            per_quad(r, *bytes, 3)
        );
    }
}

fn print_predicates(r: &InfoReport, top: usize) {
    say!(
        "{:>13} {:>13} {:>12} {:>12}  {:<22} predicate",
        "edges",
        "named edges",
        "subjects",
        "objects",
        "keys found by (out/in)"
    );
    for p in r.predicates.iter().take(top) {
        say!(
            "{:>13} {:>13} {:>12} {:>12}  {:<22} {}",
            p.edges[0],
            p.edges[1],
            p.ends[0],
            p.ends[1],
            format!("{}/{}", p.finders[0].name(), p.finders[1].name()),
            text(&p.term)
        );
    }
    more(r.predicates.len(), top);
}

fn print_finders(r: &InfoReport) {
    let mut kinds = std::collections::BTreeMap::<&str, [usize; 2]>::new();
    for p in &r.predicates {
        for (side, f) in p.finders.iter().enumerate() {
            kinds.entry(f.name()).or_default()[side] += 1;
        }
    }
    say!(
        "{:<14} {:>13} {:>13}",
        "keys found by",
        "out segments",
        "in segments"
    );
    for (kind, [out, into]) in kinds {
        say!("{kind:<14} {out:>13} {into:>13}");
    }
}

fn print_classes(r: &InfoReport, top: usize) {
    say!("{:>13}  class", "instances");
    for (class, count) in r.classes.iter().take(top) {
        say!("{count:>13}  {}", text(class));
    }
    more(r.classes.len(), top);
}

fn more(all: usize, shown: usize) {
    if all > shown {
        say!("{:>13}  ({} more; --top {all} shows all)", "…", all - shown);
    }
}

fn json(r: &InfoReport, top: usize) -> serde_json::Value {
    let predicates: Vec<_> = r
        .predicates
        .iter()
        .take(top)
        .map(|p| {
            serde_json::json!({
                "predicate": text(&p.term),
                "edges": p.edges[0], "named_edges": p.edges[1],
                "subjects": p.ends[0], "objects": p.ends[1],
                "out_keys": p.finders[0].name(), "in_keys": p.finders[1].name(),
                "out_bytes": p.bytes[0], "in_bytes": p.bytes[1],
            })
        })
        .collect();
    let parts: serde_json::Map<_, _> = r
        .parts
        .iter()
        .map(|(k, v)| (k.clone(), serde_json::json!(v)))
        .collect();
    let classes: Vec<_> = r
        .classes
        .iter()
        .take(top)
        .map(|(c, n)| serde_json::json!({"class": text(c), "instances": n}))
        .collect();
    serde_json::json!({
        "quads": r.quads, "named_quads": r.named_quads, "graphs": r.graphs, "terms": r.terms,
        "ids_left": r.ids_left, "free_ids": r.free_ids, "predicate_count": r.predicates.len(), "class_count": r.classes.len(),
        "set_runs": r.set_runs, "planner_sets": r.planner_sets, "bytes": r.bytes,
        "log": {"transactions": r.log[0], "bytes": r.log[1], "counted": r.with_log},
        "quads_in_files": r.quads_in_files,
        "merged": r.merged, "generations": r.generations,
        "union_default_graph": r.union_default, "epoch": format!("{:016x}", r.epoch),
        "parts": parts, "predicates": predicates, "classes": classes,
    })
}
