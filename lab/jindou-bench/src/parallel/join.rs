//! The master's hash joins of partial results, which are tables of ids.

use super::wire::Table;
use jindou::{Error, Result};
use jindou_engine::ChecksumSink;
use rustc_hash::{FxHashMap, FxHashSet};

/// A table with column names.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    pub columns: Vec<String>,
    pub table: Table,
}

/// Limit on the ids of an intermediate result, beyond which the query fails.
const MOST_IDS: usize = 400_000_000;

/// The natural join of all relations with multiset semantics. It begins with the smallest, and continues with the
/// smallest that shares a column with the result so far. O(input + output) per join.
pub fn join(mut relations: Vec<Relation>) -> Result<Relation> {
    let size = |r: &Relation| r.table.rows;
    let Some(first) = (0..relations.len()).min_by_key(|&i| size(&relations[i])) else {
        // No patterns: one solution without variables.
        return Ok(Relation {
            columns: vec![],
            table: Table {
                width: 0,
                rows: 1,
                ids: vec![],
            },
        });
    };
    let mut out = relations.swap_remove(first);
    while !relations.is_empty() {
        let next = (0..relations.len())
            .min_by_key(|&i| (shared(&out, &relations[i]).is_empty(), size(&relations[i])))
            .unwrap_or(0);
        let other = relations.swap_remove(next);
        out = if other.table.rows < out.table.rows {
            pair(&other, &out)?
        } else {
            pair(&out, &other)?
        };
    }
    Ok(out)
}

/// Indices of the common columns in both relations.
fn shared(a: &Relation, b: &Relation) -> Vec<(usize, usize)> {
    let at = |c: &String| b.columns.iter().position(|d| c == d);
    let columns = a.columns.iter().enumerate();
    columns.filter_map(|(i, c)| Some((i, at(c)?))).collect()
}

const END: u32 = u32::MAX;

/// Joins two relations, with a hash table of `build`.
fn pair(build: &Relation, probe: &Relation) -> Result<Relation> {
    let keys = shared(build, probe);
    let extra: Vec<usize> = (0..build.columns.len())
        .filter(|i| keys.iter().all(|k| k.0 != *i))
        .collect();
    let mut columns = probe.columns.clone();
    columns.extend(extra.iter().map(|&i| build.columns[i].clone()));
    let mut key = vec![0; keys.len()];
    // Rows with equal keys form a linked list.
    let mut heads: FxHashMap<u64, u32> = FxHashMap::default();
    let mut next = vec![END; build.table.rows];
    heads.reserve(build.table.rows);
    for (r, link) in next.iter_mut().enumerate() {
        let row = build.table.row(r);
        for (k, at) in key.iter_mut().zip(&keys) {
            *k = row[at.0];
        }
        let head = heads.entry(ChecksumSink::row_hash(&key)).or_insert(END);
        *link = std::mem::replace(head, r as u32);
    }
    let mut out = Table {
        width: columns.len(),
        ..Table::default()
    };
    for r in 0..probe.table.rows {
        let row = probe.table.row(r);
        for (k, at) in key.iter_mut().zip(&keys) {
            *k = row[at.1];
        }
        let mut at = heads
            .get(&ChecksumSink::row_hash(&key))
            .copied()
            .unwrap_or(END);
        while at != END {
            let other = build.table.row(at as usize);
            if keys.iter().all(|&(b, p)| other[b] == row[p]) {
                out.rows += 1;
                out.ids.extend_from_slice(row);
                out.ids.extend(extra.iter().map(|&i| other[i]));
                if out.ids.len() > MOST_IDS {
                    return Err(Error::external(format!(
                        "a join of partial results has more than {} rows",
                        out.rows
                    )));
                }
            }
            at = next[at as usize];
        }
    }
    Ok(Relation {
        columns,
        table: out,
    })
}

impl Relation {
    /// Calls `take` with the given columns of every row; with `distinct`, of every distinct one. A missing column has
    /// the id 0, which means unbound.
    pub fn project(
        &self,
        columns: &[String],
        distinct: bool,
        mut take: impl FnMut(&[u32]) -> Result<()>,
    ) -> Result<()> {
        let at: Vec<Option<usize>> = columns
            .iter()
            .map(|c| self.columns.iter().position(|d| c == d))
            .collect();
        let mut seen: FxHashSet<Vec<u32>> = FxHashSet::default();
        let mut projected = vec![0; columns.len()];
        for r in 0..self.table.rows {
            let row = self.table.row(r);
            for (to, at) in projected.iter_mut().zip(&at) {
                *to = at.map_or(0, |i| row[i]);
            }
            if !distinct || seen.insert(projected.clone()) {
                take(&projected)?;
            }
        }
        Ok(())
    }

    /// Rows and checksum of the given columns, as computed by [`jindou::Database::checksum`].
    pub fn checksum(&self, columns: &[String], distinct: bool) -> (u64, u64) {
        let (mut rows, mut sum) = (0, 0u64);
        let all = self.project(columns, distinct, |row| {
            rows += 1;
            sum = sum.wrapping_add(ChecksumSink::row_hash(row));
            Ok(())
        });
        debug_assert!(all.is_ok());
        (rows, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relation(columns: &[&str], rows: &[Vec<u32>]) -> Relation {
        Relation {
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            table: Table {
                width: columns.len(),
                rows: rows.len(),
                ids: rows.concat(),
            },
        }
    }

    fn rows(width: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
        prop::collection::vec(prop::collection::vec(1..4u32, width), 0..12)
    }

    proptest! {
        #[test]
        fn joins_are_those_of_nested_loops(a in rows(2), b in rows(2), c in rows(2), d in rows(1)) {
            // A triangle, and a relation that shares no column with it.
            let joined = join(vec![
                relation(&["x", "y"], &a),
                relation(&["y", "z"], &b),
                relation(&["z", "x"], &c),
                relation(&["w"], &d),
            ]).unwrap();
            let names = ["x", "y", "z", "w"].map(str::to_owned);
            let (mut n, mut sum) = (0, 0u64);
            let mut set = std::collections::BTreeSet::new();
            for r in &a {
                for s in b.iter().filter(|s| s[0] == r[1]) {
                    for _ in c.iter().filter(|t| t[0] == s[1] && t[1] == r[0]) {
                        for u in &d {
                            n += 1;
                            let row = [r[0], r[1], s[1], u[0]];
                            sum = sum.wrapping_add(ChecksumSink::row_hash(&row));
                            set.insert(row);
                        }
                    }
                }
            }
            prop_assert_eq!(joined.checksum(&names, false), (n, sum));
            prop_assert_eq!(joined.checksum(&names, true).0, set.len() as u64);
        }
    }
}
