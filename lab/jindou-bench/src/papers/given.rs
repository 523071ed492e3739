//! Tables 7, 8 and 9: WatDiv, DBPSB and YAGO2, with data and queries that the user provides.

use super::cost::cost;
use super::published::{TABLE_7, TABLE_8, TABLE_9, Table};
use super::sheet::{Cell, Sheet, geometric_mean};
use super::stores::Stores;
use crate::args::BenchPapers;
use crate::measure::Measured;
use jindou::{Database, Error, QueryOptions, Result};
use jindou_parse::Sources;
use std::collections::BTreeMap;
use std::path::Path;

/// A query file: the table's line that it belongs to, the file's name, the query text.
struct Given {
    line: String,
    name: String,
    text: String,
}

/// Base of the relative IRIs in YAGO2's data and queries.
const YAGO_BASE: &str = "http://yago-knowledge.org/resource/";

pub fn table(number: u32, a: &BenchPapers, stores: &Stores, threads: usize) -> Result<Sheet> {
    let (table, letter, base) = match number {
        7 => (TABLE_7, None, None),
        8 => (TABLE_8, Some('D'), None),
        _ => (TABLE_9, Some('Y'), Some(YAGO_BASE)),
    };
    let Some(folder) = &a.queries else {
        return Err(Error::Usage(format!(
            "table {number} needs a folder of queries: --queries DIR"
        )));
    };
    let queries = read_queries(folder, &table, letter)?;
    let counts = match &a.counts {
        Some(file) => read_counts(file)?,
        None => BTreeMap::new(),
    };
    let mut builder = Sources::builder()
        .lenient(a.lenient)
        .base_iri(base.map(str::to_owned));
    for file in &a.data {
        builder = builder.path(file);
    }
    let sources = builder.build()?;
    let dir = stores.open(&format!("table-{number}"), &sources)?;
    let mut sheet = measured(&table, &dir, &queries, &counts, base, threads, a.repeat)?;
    if sources.skipped() > 0 {
        sheet.notes.push(format!(
            "{} statements of the data are not valid and were skipped",
            sources.skipped()
        ));
    }
    stores.done_with(&dir);
    Ok(sheet)
}

fn measured(
    table: &Table,
    dir: &Path,
    queries: &[Given],
    counts: &BTreeMap<String, u64>,
    base: Option<&str>,
    threads: usize,
    repeat: usize,
) -> Result<Sheet> {
    let info = Database::info(dir)?;
    let db = Database::open(dir)?;
    let mut columns = vec!["query", "files", "rows", "exec ms", "plan ms", "whole ms"];
    columns.extend(table.systems);
    let mut sheet = Sheet::new(
        format!(
            "Table {} ({}): {}, milliseconds. Ours: {} triples, {threads} threads",
            table.number, table.section, table.data, info.quads
        ),
        &columns,
    );
    let options = QueryOptions::default().with_threads(threads);
    let mut costs: BTreeMap<&str, Vec<Measured>> = BTreeMap::new();
    let mut unchecked = 0;
    for q in queries {
        let text = match base {
            Some(b) => format!("BASE <{b}>\n{}", q.text),
            None => q.text.clone(),
        };
        let c = cost(&db, &text, &options, repeat)
            .map_err(|e| Error::Query(format!("query {}: {e}", q.name)))?;
        match counts.get(&q.name) {
            Some(&want) if want != c.seen.rows => sheet.wrong.push(format!(
                "{}: {} rows, {want} are given",
                q.name, c.seen.rows
            )),
            Some(_) => {}
            None => unchecked += 1,
        }
        costs.entry(&q.line).or_default().push(c);
    }
    // A line shows the geometric mean over its files, and a group's line that over its members.
    let mean = |cs: &[Measured], f: fn(&Measured) -> f64| geometric_mean(cs.iter().map(f));
    let of: [fn(&Measured) -> f64; 3] = [
        |c| c.exec.median(),
        |c| c.plan.median(),
        |c| c.whole.median(),
    ];
    for (line, cs) in &costs {
        let mut row: Vec<Cell> = vec![
            (*line).into(),
            (cs.len() as u64).into(),
            cs.iter().map(|c| c.seen.rows).sum::<u64>().into(),
        ];
        row.extend(of.map(|f| Cell::from(mean(cs, f))));
        match table.row(line) {
            Some(paper) => row.extend(paper.iter().map(|&x| Cell::from(x))),
            None => row.extend(table.systems.iter().map(|_| Cell::None)),
        }
        sheet.rows.push(row);
    }
    let group = |title: &str, inside: &dyn Fn(&str) -> bool, paper: &[Option<f64>]| {
        let members: Vec<&Vec<Measured>> =
            costs.iter().filter(|c| inside(c.0)).map(|c| c.1).collect();
        let rows = members
            .iter()
            .flat_map(|m| m.iter())
            .map(|c| c.seen.rows)
            .sum::<u64>();
        let mut row: Vec<Cell> = vec![
            format!("Geo. M {title}").trim().into(),
            (members.iter().map(|m| m.len()).sum::<usize>() as u64).into(),
            rows.into(),
        ];
        row.extend(of.map(|f| Cell::from(geometric_mean(members.iter().map(|m| mean(m, f))))));
        row.extend(paper.iter().map(|&x| Cell::from(x)));
        row
    };
    let groups: Vec<Vec<Cell>> = if table.mean.is_empty() {
        let rows = table.rows.iter();
        rows.map(|(name, paper)| group(name, &|line| line.starts_with(&name[..1]), paper))
            .collect()
    } else {
        vec![group("", &|_| true, table.mean)]
    };
    sheet.rows.extend(groups);
    if unchecked > 0 {
        sheet.notes.push(format!(
            "{unchecked} of {} queries have no count in --counts: their rows are not checked",
            queries.len()
        ));
    }
    sheet.notes.push(
        "exec: every binding found, nothing decoded: what the paper times; whole: text to the last byte of TSV, plan not cached"
            .into(),
    );
    sheet.notes.push(format!(
        "the paper's data: {}; where yours has another size or version, its columns are not a comparison",
        table.data
    ));
    Ok(sheet)
}

/// The queries of a folder in the order of their names. With the `letter` D their lines are D1, D2 …, otherwise the
/// file
/// names up to a dash.
fn read_queries(folder: &Path, table: &Table, letter: Option<char>) -> Result<Vec<Given>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let mut files = Vec::new();
    for e in entries {
        let path = e.map_err(|e| Error::io(folder, e))?.path();
        let query = match path.extension().and_then(|e| e.to_str()) {
            Some(e) => matches!(e, "rq" | "sparql"),
            None => true,
        };
        if path.is_file() && query {
            files.push(path);
        }
    }
    files.sort();
    if let Some(l) = letter
        && files.len() != table.rows.len()
    {
        return Err(Error::Usage(format!(
            "{} holds {} queries (files *.rq, *.sparql or without a dot), table {} has {}: {l}1 to {l}{}",
            folder.display(),
            files.len(),
            table.number,
            table.rows.len(),
            table.rows.len()
        )));
    }
    let mut out = Vec::new();
    for (i, path) in files.iter().enumerate() {
        let stem = path.file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        let line = match letter {
            Some(l) => format!("{l}{}", i + 1),
            None => name.split('-').next().unwrap_or(&name).to_owned(),
        };
        if letter.is_none() && !table.rows.iter().any(|r| line.starts_with(&r.0[..1])) {
            return Err(Error::Usage(format!(
                "{}: table {}'s templates are L1 to L5, S1 to S7, F1 to F5 and C1 to C3",
                path.display(),
                table.number
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        out.push(Given { line, name, text });
    }
    if out.is_empty() {
        return Err(Error::Usage(format!("{} has no query", folder.display())));
    }
    Ok(out)
}

/// Reads lines of `query<TAB>rows` or `template<TAB>instance<TAB>rows`, after a header line.
fn read_counts(file: &Path) -> Result<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
    let mut out = BTreeMap::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let (name, rows) = line.rsplit_once('\t').unwrap_or(("", ""));
        let rows = rows.trim().parse().ok().filter(|_| !name.is_empty());
        let Some(rows) = rows else {
            return Err(Error::Usage(format!(
                "{}, line {}: expected a query's name and its rows, with a tab between",
                file.display(),
                i + 1
            )));
        };
        out.insert(name.replace('\t', "-"), rows);
    }
    Ok(out)
}
