//! Data parallelism (algorithm 2 of the paper), but with complete answers: every worker runs subqueries (parts) whose
//! matches each lie inside one partition, and the master joins the results.

use super::algebra::{Bgp, Bindings, Divided, Shape, divide, ground, rebuild};
use super::decompose::{PartQuery, Rules, choices, naive};
use super::join::{Relation, join};
use super::processes::{WorkerProcesses, unexpected};
use super::wire::{Message, Share, Table};
use super::worker::options;
use crate::measure::Null;
use jindou::results::{RowText, Rows};
use jindou::{
    AnswerSink, Database, Error, QueryOptions, Result, ResultFormat, ResultWriter, VertexId,
};
use jindou_plan::Operator;
use spargebra::algebra::GraphPattern;
use std::time::Instant;
use xxhash_rust::xxh3::Xxh3Default;

/// A query that is divided for execution on partitions.
pub struct Prepared {
    divided: Divided,
    /// The parts of each BGP.
    parts: Vec<Vec<PartQuery>>,
    /// For each BGP, a query of the whole BGP, as the paper sends it.
    naive: Vec<PartQuery>,
    /// If the query is a single part and keeps duplicates, the text of that part with the query's own columns. Workers
    /// then write its rows as text, which together are the answer.
    only: Option<String>,
}

/// Options of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// True if results are collected along a tree of workers; false if each goes to the master.
    pub gather: bool,
    /// True if workers first drop their files from memory and open them again.
    pub cold: bool,
    /// True to return the answer's checksum instead of its length as text.
    pub check: bool,
}

/// Times of one round in seconds, and the work of each worker.
#[derive(Clone, Debug, Default)]
pub struct Round {
    pub seconds: f64,
    /// The longest time of a worker.
    pub compute: f64,
    /// Time in which the master joined the parts and ran the remaining query.
    pub merge: f64,
    /// Each worker's time and rows.
    pub workers: Vec<(f64, u64)>,
    /// Processor seconds of all workers together.
    pub processor: f64,
    /// Bytes of ids or of text that the workers sent.
    pub bytes: u64,
    /// Rows, and bytes of TSV or the checksum, see [`How::check`].
    pub answer: (u64, u64),
}

/// Divides a query. Of the ways to cut a BGP into parts, it takes that with the smallest sum of `cost`.
///
/// # Errors
/// [`Error::Unsupported`] for queries that cannot run on partitions; those of `cost`.
pub fn prepare(
    text: &str,
    rules: &Rules,
    cost: impl Fn(&PartQuery) -> Result<f64>,
) -> Result<Prepared> {
    let divided = divide(text)?;
    let mut parts: Vec<Vec<PartQuery>> = vec![];
    for b in &divided.bgps {
        let mut best = (f64::INFINITY, vec![]);
        for choice in choices(&b.patterns, &b.needed, rules)? {
            let mut sum = 0.0;
            for part in &choice {
                sum += cost(part)?;
            }
            if best.1.is_empty() || sum < best.0 {
                best = (sum, choice);
            }
        }
        parts.push(best.1);
    }
    let only = match (&divided.shape, parts.as_slice()) {
        (
            Shape::Bgp {
                columns,
                distinct: false,
            },
            [parts],
        ) if parts.len() == 1 && !columns.is_empty() => Some(parts[0].with_columns(columns)),
        _ => None,
    };
    let naive = divided
        .bgps
        .iter()
        .map(|b| naive(&b.patterns, rules))
        .collect();
    Ok(Prepared {
        divided,
        parts,
        naive,
        only,
    })
}

/// Estimated cost, in about nanoseconds, of finding a part's rows, sending them and joining them. Based on the
/// planner's estimates for the whole store.
pub fn estimate(db: &Database, part: &PartQuery) -> Result<f64> {
    /// Cost of sending, appending and joining one id.
    const AN_ID: f64 = 15.0;
    let planned = db.plan_uncached(&part.unmarked, &options())?;
    let plan = planned.plan();
    let rows = match &plan.root {
        Operator::Explore(e) => e.steps.last().map_or(0.0, |s| s.rows),
        _ => 0.0,
    };
    Ok(plan.cost + AN_ID * rows * (1 + part.columns.len()) as f64)
}

impl Prepared {
    /// True if the query is a single BGP, whose answer then has as many bytes as the single store's.
    pub fn is_pattern(&self) -> bool {
        matches!(self.divided.shape, Shape::Bgp { .. })
    }

    /// Number of parts of all BGPs.
    pub fn parts(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// The text of the only part, see `Self::only`.
    #[cfg(test)]
    pub fn only(&self) -> Option<&str> {
        self.only.as_deref()
    }

    /// The texts of all parts, in order.
    pub fn texts(&self) -> Vec<String> {
        self.parts
            .iter()
            .flatten()
            .map(|p| p.text.clone())
            .collect()
    }

    /// Rows and checksum of the single store's answer, computed in the same way as by [`Self::finish`].
    pub fn right(&self, db: &Database, text: &str) -> Result<(u64, u64)> {
        let options = options();
        match &self.divided.shape {
            Shape::Bgp { .. } => {
                let seen = db.checksum(&db.plan(text, &options)?, &options)?;
                Ok((seen.rows, seen.checksum))
            }
            Shape::General(_) => {
                let mut sum = TermSum::default();
                db.run(text, &options, &mut sum)?;
                Ok((sum.rows, sum.checksum))
            }
        }
    }

    /// Joins the workers' tables, whose ids are those of the whole store `db`, and runs the remaining query. Returns
    /// the number of rows, and the bytes of the answer as TSV (which is discarded) or its checksum.
    pub fn finish(&self, db: &Database, tables: Vec<Table>, check: bool) -> Result<(u64, u64)> {
        let mut tables = tables.into_iter();
        let mut joined = vec![];
        for parts in &self.parts {
            let relations = parts
                .iter()
                .map(|p| Relation {
                    columns: p.columns.clone(),
                    table: tables.next().unwrap_or_default(),
                })
                .collect();
            joined.push(join(relations)?);
        }
        match &self.divided.shape {
            Shape::Bgp { columns, distinct } => match joined.pop() {
                Some(only) if check => Ok(only.checksum(columns, *distinct)),
                Some(only) => write(db, &only, columns, *distinct),
                None => Err(Error::Internal("one pattern without parts".into())),
            },
            Shape::General(query) => {
                let inline = joined
                    .iter()
                    .zip(&self.divided.bgps)
                    .map(|(r, bgp)| inline(db, r, bgp))
                    .collect::<Result<_>>()?;
                let query = rebuild(query, &self.divided.bgps, inline)?;
                let options = options();
                let planned = db.plan_parsed(&(&query).into(), &options)?;
                if check {
                    let mut sum = TermSum::default();
                    db.run_planned(&planned, &options, &mut sum)?;
                    return Ok((sum.rows, sum.checksum));
                }
                let mut out = Null::default();
                let mut writer = ResultWriter::new(&mut out, ResultFormat::Tsv);
                let report = db.run_planned(&planned, &options, &mut writer)?;
                drop(writer);
                Ok((report.rows, out.0))
            }
        }
    }

    /// Number of matches of all BGPs in the whole store, and number of those that the paper's form finds: it sends
    /// every worker each whole BGP, and removes duplicates. For answers that fit in memory.
    pub fn missed(&self, db: &Database, processes: &mut WorkerProcesses) -> Result<(u64, u64)> {
        let options = options();
        let (mut all, mut found) = (0, 0);
        for (bgp, naive) in self.divided.bgps.iter().zip(&self.naive) {
            all += count(db, bgp, &options)?;
            let message = Message::Find {
                cold: false,
                gather: false,
                text: false,
                parts: vec![naive.text.clone()],
            };
            processes.tell_all(&message)?;
            let tables = collect(processes, false, 1)?.1;
            let whole = Relation {
                columns: naive.columns.clone(),
                table: tables.into_iter().next().unwrap_or_default(),
            };
            found += whole.checksum(&naive.columns, true).0;
        }
        Ok((all, found))
    }

    /// Runs the query once on all workers.
    pub fn round(&self, db: &Database, processes: &mut WorkerProcesses, how: How) -> Result<Round> {
        let How {
            gather,
            cold,
            check,
        } = how;
        let only = self.only.as_ref().filter(|_| !check);
        let message = Message::Find {
            cold,
            gather,
            text: only.is_some(),
            parts: only.map_or_else(|| self.texts(), |text| vec![text.clone()]),
        };
        let start = Instant::now();
        processes.tell_all(&message)?;
        let (shares, tables) = collect(processes, gather, self.parts())?;
        let collected = start.elapsed().as_secs_f64();
        let answer = match (only, &self.divided.shape) {
            (Some(_), Shape::Bgp { columns, .. }) => written(&shares, columns)?,
            _ => self.finish(db, tables, check)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let mut workers = vec![(0.0, 0); processes.len()];
        for s in &shares {
            workers[s.worker as usize] = (s.wall as f64 / 1e9, s.rows);
        }
        let compute = workers.iter().map(|w| w.0).fold(0.0, f64::max);
        let ids = shares.iter().flat_map(|s| &s.tables).map(|t| t.ids.len());
        let text: usize = shares.iter().map(|s| s.text.len()).sum();
        Ok(Round {
            seconds,
            compute,
            merge: seconds - collected,
            workers,
            processor: shares.iter().map(|s| s.cpu).sum::<u64>() as f64 / 1e9,
            bytes: (ids.sum::<usize>() * 4 + text) as u64,
            answer,
        })
    }
}

/// Waits for the results of all workers, and appends their tables for each part.
fn collect(
    processes: &mut WorkerProcesses,
    gather: bool,
    parts: usize,
) -> Result<(Vec<Share>, Vec<Table>)> {
    let mut shares: Vec<Share> = vec![];
    while shares.len() < processes.len() {
        // With the tree only worker 0 sends results, but another may report an error.
        let (worker, message) = processes.hear_any()?;
        match message {
            Message::Found(more) if gather == (more.len() > 1) || processes.len() == 1 => {
                shares.extend(more);
            }
            m => return Err(unexpected(worker, &m)),
        }
    }
    let tables = gathered(shares.iter().map(|s| &s.tables), parts);
    Ok((shares, tables))
}

/// Appends the tables of several partitions for each part.
pub fn gathered<'a>(tables: impl IntoIterator<Item = &'a Vec<Table>>, parts: usize) -> Vec<Table> {
    let mut all = vec![Table::default(); parts];
    for share in tables {
        for (all, own) in all.iter_mut().zip(share) {
            all.append(own);
        }
    }
    all
}

/// Number of matches of a BGP in the whole store.
fn count(db: &Database, bgp: &Bgp, options: &QueryOptions) -> Result<u64> {
    let text = format!(
        "SELECT * WHERE {{ {} }}",
        GraphPattern::Bgp {
            patterns: bgp.patterns.clone()
        }
    );
    Ok(db.checksum(&db.plan(&text, options)?, options)?.rows)
}

/// Assembles the answer from rows that the workers wrote as text, and discards it. Returns rows and bytes.
fn written(shares: &[Share], columns: &[String]) -> Result<(u64, u64)> {
    let mut out = Null::default();
    let mut writer = ResultWriter::new(&mut out, ResultFormat::Tsv);
    writer.solutions(columns)?;
    for s in shares {
        writer.raw(&s.text, s.rows)?;
    }
    writer.finish()?;
    drop(writer);
    Ok((shares.iter().map(|s| s.rows).sum(), out.0))
}

/// Rows that are passed to the writer at a time.
const WRITTEN: usize = 1024;

/// Writes columns of a table of ids as TSV and discards it. Returns rows and bytes.
fn write(
    db: &Database,
    relation: &Relation,
    columns: &[String],
    distinct: bool,
) -> Result<(u64, u64)> {
    let snapshot = db.snapshot();
    let mut out = Null::default();
    let mut writer = ResultWriter::new(&mut out, ResultFormat::Tsv);
    writer.solutions(columns)?;
    let mut rows = Rows::default();
    rows.clear(columns.len());
    let mut written = 0;
    relation.project(columns, distinct, |ids| {
        for &id in ids {
            if id != 0 && !snapshot.term(VertexId(id), &mut rows.bytes) {
                return Err(Error::Internal(format!("no term has the id {id}")));
            }
            rows.end_cell();
        }
        rows.rows += 1;
        written += 1;
        if rows.rows == WRITTEN {
            writer.rows(&rows)?;
            rows.clear(columns.len());
        }
        Ok(())
    })?;
    writer.rows(&rows)?;
    writer.finish()?;
    drop(writer);
    Ok((written, out.0))
}

/// A table of ids as inline data.
fn inline(db: &Database, r: &Relation, bgp: &Bgp) -> Result<(Vec<String>, Bindings)> {
    let kept: Vec<usize> = (0..r.columns.len())
        .filter(|&i| bgp.needed.contains(&r.columns[i]))
        .collect();
    let snapshot = db.snapshot();
    let mut bytes = vec![];
    let mut terms = rustc_hash::FxHashMap::default();
    let mut rows = Vec::with_capacity(r.table.rows);
    for at in 0..r.table.rows {
        let row = r.table.row(at);
        let mut out = Vec::with_capacity(kept.len());
        for &i in &kept {
            let id = row[i];
            let term = match terms.get(&id) {
                Some(term) => Clone::clone(term),
                None => {
                    bytes.clear();
                    if !snapshot.term(VertexId(id), &mut bytes) {
                        return Err(Error::Internal(format!("no term has the id {id}")));
                    }
                    let term = ground(&bytes)?;
                    terms.insert(id, term.clone());
                    term
                }
            };
            out.push(Some(term));
        }
        rows.push(out);
    }
    let columns = kept.iter().map(|&i| r.columns[i].clone()).collect();
    Ok((columns, rows))
}

/// Number of rows, and the sum of their hashes by terms. A blank node is hashed as the IRI that stands for it in inline
/// data.
#[derive(Default)]
struct TermSum {
    rows: u64,
    checksum: u64,
}

impl AnswerSink for TermSum {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        for r in 0..rows.rows {
            let mut hash = Xxh3Default::new();
            for cell in rows.row(r) {
                match cell {
                    Some([b'_', b':', label @ ..]) => {
                        hash.update(b"<");
                        hash.update(super::algebra::BLANK.as_bytes());
                        hash.update(label);
                    }
                    Some(term) => hash.update(term),
                    None => {}
                }
                hash.update(&[0, 0xFF]);
            }
            self.checksum = self.checksum.wrapping_add(hash.digest());
        }
        self.rows += rows.rows as u64;
        Ok(())
    }

    fn row_text(&self) -> Option<RowText> {
        None
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        (self.rows, self.checksum) = (1, u64::from(value));
        Ok(())
    }

    fn graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
