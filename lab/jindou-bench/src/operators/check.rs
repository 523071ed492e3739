//! Checks an answer against that of another query. Terms are compared rather than ids, which may differ between runs.

use super::questions::{Check, Questions};
use jindou::{Database, Error, QueryOptions, Result, ResultFormat, ResultWriter};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Write;

/// Collects an answer's rows, given as lines of TSV.
trait Rows: Send {
    fn row(&mut self, line: &[u8]);
}

/// A writer that splits its input into lines and drops the first, which names the columns.
struct Lines<R> {
    rows: R,
    part: Vec<u8>,
    head: bool,
}

impl<R: Rows> Write for Lines<R> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        for piece in buf.split_inclusive(|&b| b == b'\n') {
            self.part.extend_from_slice(piece);
            if self.part.last() == Some(&b'\n') {
                self.part.pop();
                if self.head {
                    self.rows.row(&self.part);
                }
                self.head = true;
                self.part.clear();
            }
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A multiset of rows: their number, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    rows: u64,
    sum: u64,
}

impl Rows for Bag {
    fn row(&mut self, line: &[u8]) {
        self.rows += 1;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(line);
        self.sum = self.sum.wrapping_add(hash);
    }
}

/// A [`Bag`], and whether the first column is in ascending order.
#[derive(Default)]
struct Ascending {
    bag: Bag,
    last: Vec<u8>,
    wrong: bool,
}

impl Rows for Ascending {
    fn row(&mut self, line: &[u8]) {
        self.bag.row(line);
        // Without quotes or angle brackets, which do not take part in the order.
        let first = line.split(|&b| b == b'\t').next().unwrap_or(&[]);
        let first = first.get(1..first.len().saturating_sub(1)).unwrap_or(&[]);
        self.wrong |= first < &self.last[..];
        self.last.clear();
        self.last.extend_from_slice(first);
    }
}

/// All rows in their order.
#[derive(Default)]
struct All(Vec<Vec<u8>>);

impl Rows for All {
    fn row(&mut self, line: &[u8]) {
        self.0.push(line.to_vec());
    }
}

fn answer<R: Rows + Default>(db: &Database, text: &str, options: &QueryOptions) -> Result<R> {
    let mut lines = Lines {
        rows: R::default(),
        part: vec![],
        head: false,
    };
    let mut writer = ResultWriter::new(&mut lines, ResultFormat::Tsv);
    db.run(text, options, &mut writer)?;
    drop(writer);
    Ok(lines.rows)
}

/// The rows of a query's answer.
pub fn bag(db: &Database, set: &Questions, text: &str, options: &QueryOptions) -> Result<Bag> {
    answer(db, &format!("{}{text}", set.prefixes), options)
}

/// Error message if the answer to `text` is wrong; `None` if it is right.
pub fn fault(
    db: &Database,
    set: &Questions,
    text: &str,
    check: Check,
    options: &QueryOptions,
) -> Result<Option<String>> {
    let with = |text: &str| format!("{}{text}", set.prefixes);
    let text = with(text);
    let differ = |a: Bag, b: Bag| {
        (a != b).then(|| {
            format!(
                "{} rows (sum {:x}), another formulation gives {} (sum {:x})",
                a.rows, a.sum, b.rows, b.sum
            )
        })
    };
    Ok(match check {
        Check::Same(other) => differ(
            answer(db, &text, options)?,
            answer(db, &with(other), options)?,
        ),
        Check::Count(other) => {
            let counted: All = answer(db, &with(other), options)?;
            let number = match &counted.0[..] {
                [one] => std::str::from_utf8(one)
                    .ok()
                    .and_then(|n| n.parse::<u64>().ok()),
                _ => None,
            }
            .ok_or_else(|| Error::Internal(format!("gives no number: {other}")))?;
            let rows = answer::<Bag>(db, &text, options)?.rows;
            (rows != number).then(|| format!("{rows} rows, counted are {number}"))
        }
        Check::Ascending(other) => {
            let sorted: Ascending = answer(db, &text, options)?;
            if sorted.wrong {
                Some("a row comes before one that is less".into())
            } else {
                differ(sorted.bag, answer(db, &with(other), options)?)
            }
        }
        Check::First(n, other) => {
            let first: All = answer(db, &text, options)?;
            let mut all: All = answer(db, &with(other), options)?;
            all.0.sort_unstable();
            all.0.truncate(n);
            (first.0 != all.0).then(|| {
                let at = first.0.iter().zip(&all.0).position(|(a, b)| a != b);
                format!(
                    "{} rows where {} are right, the first difference at {at:?}",
                    first.0.len(),
                    all.0.len()
                )
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_pieces_end() {
        let mut lines = Lines {
            rows: All::default(),
            part: vec![],
            head: false,
        };
        for piece in ["?a", "\t?b\n1\t", "2", "\n3\t4\n"] {
            lines.write_all(piece.as_bytes()).unwrap();
        }
        assert_eq!(lines.rows.0, [b"1\t2".to_vec(), b"3\t4".to_vec()]);
    }

    #[test]
    fn bags_forget_the_order_and_orders_do_not() {
        let (mut a, mut b) = (Ascending::default(), Ascending::default());
        for line in ["\"a\"\t1", "\"b\"\t2"] {
            a.row(line.as_bytes());
        }
        for line in ["\"b\"\t2", "\"a\"\t1"] {
            b.row(line.as_bytes());
        }
        assert_eq!(a.bag, b.bag);
        assert!(!a.wrong && b.wrong);
    }
}
