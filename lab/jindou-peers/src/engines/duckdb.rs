//! DuckDB: the relational yardstick. One table a predicate, SPARQL translated to SQL by [`crate::sql`], asked
//! through the standard streams of its command, which stays up between queries.

use super::{Setup, version_of};
use crate::engine::{Failure, Memory, Outcome, Timed};
use crate::process::{Running, disk_usage, lock, run_to_end};
use crate::sql::{Schema, quote, translate};
use crate::{About, Engine, Error, Loaded, Result, Seen, read_tsv};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Statements of one transaction that makes tables: data of thousands of predicates loads in a few.
const TABLES_AT_ONCE: usize = 500;

pub struct DuckDb {
    program: PathBuf,
    setup: Setup,
    schema: Schema,
    up: Option<Up>,
}

struct Up {
    running: Running,
    to: ChildStdin,
    from: ChildStdout,
    errors: PathBuf,
    errors_read: u64,
    asked: u64,
    piece: Vec<u8>,
}

impl DuckDb {
    pub fn new(at: PathBuf, setup: Setup, text: bool) -> Self {
        Self {
            program: at.join("duckdb_cli/duckdb"),
            setup,
            schema: Schema {
                text,
                ..Schema::default()
            },
            up: None,
        }
    }

    fn file(&self) -> PathBuf {
        self.setup.store().join("data.duckdb")
    }

    fn settings(&self) -> String {
        format!(
            "SET threads = {};\nSET memory_limit = '{} MiB';\nSET temp_directory = {};\n",
            self.setup.threads,
            self.setup.mebibytes(),
            quote(&self.setup.work.join("temp").display().to_string())
        )
    }

    fn predicates_file(&self) -> PathBuf {
        self.setup.store().join("predicates.tsv")
    }

    /// Runs a script over the database.
    fn run(&self, name: &str, script: &str) -> Result<(f64, Memory)> {
        let file = self.setup.work.join(format!("{name}.sql"));
        fs::write(&file, script).map_err(|e| Error::io(&file, e))?;
        run_to_end(
            Command::new(&self.program)
                .args(["-bail", "-batch", "-no-init"])
                .arg(self.file())
                .arg("-f")
                .arg(&file),
            &self.setup.log(name),
        )
    }

    /// Splits lines into terms (one space between them) and, with ids, numbers the terms. What is only needed for that is in a database of its own.
    fn first_script(&self, data: &Path, staging: &Path) -> String {
        let mut sql = self.settings();
        let _ = writeln!(
            sql,
            "SET preserve_insertion_order = false;\nATTACH {} AS w;\n\
             CREATE TABLE w.staged AS SELECT DISTINCT s, p, \
             substr(line, length(s) + length(p) + 3, length(line) - length(s) - length(p) - 4) AS o FROM (\n  \
             SELECT line, split_part(line, ' ', 1) AS s, split_part(line, ' ', 2) AS p\n  \
             FROM read_csv({}, columns = {{'line': 'VARCHAR'}}, delim = '\\x01', quote = '', escape = '', \
             header = false, auto_detect = false)\n) WHERE s <> '' AND p <> '';",
            quote(&staging.display().to_string()),
            quote(&data.display().to_string())
        );
        if self.schema.text {
            sql += "CREATE VIEW w.ids AS SELECT s, p, o FROM w.staged;\n";
        } else {
            sql += "CREATE TABLE terms AS SELECT (row_number() OVER (ORDER BY term))::INTEGER AS id, term FROM (\n  \
                    SELECT s AS term FROM w.staged UNION SELECT p FROM w.staged UNION SELECT o FROM w.staged\n) ORDER BY id;\n\
                    CREATE UNIQUE INDEX terms_term ON terms (term);\n\
                    CREATE TABLE w.ids AS SELECT a.id AS s, b.id AS p, c.id AS o FROM w.staged t\n  \
                    JOIN terms a ON a.term = t.s JOIN terms b ON b.term = t.p JOIN terms c ON c.term = t.o ORDER BY p;\n";
        }
        let used = if self.schema.text {
            "SELECT DISTINCT p AS id, p AS term FROM w.staged"
        } else {
            "SELECT id, term FROM terms WHERE id IN (SELECT p FROM w.ids)"
        };
        let _ = writeln!(
            sql,
            "COPY ({used} ORDER BY term) TO {} \
             (FORMAT CSV, DELIMITER E'\\t', HEADER false, QUOTE '', ESCAPE '');",
            quote(&self.predicates_file().display().to_string())
        );
        sql
    }

    /// Makes the tables, sorted, with an index on each column.
    fn second_script(&self, predicates: &[(String, String)], staging: &Path) -> String {
        let mut sql = self.settings();
        let _ = writeln!(
            sql,
            "ATTACH {} AS w (READ_ONLY);",
            quote(&staging.display().to_string())
        );
        let mut parts = Vec::new();
        for (k, (id, _)) in predicates.iter().enumerate() {
            if k.is_multiple_of(TABLES_AT_ONCE) {
                sql += if k == 0 {
                    "BEGIN;\n"
                } else {
                    "COMMIT;\nBEGIN;\n"
                };
            }
            let id = if self.schema.text {
                quote(id)
            } else {
                id.clone()
            };
            let _ = writeln!(
                sql,
                "CREATE TABLE p{k} AS SELECT s, o FROM w.ids WHERE p = {id} ORDER BY s, o;\n\
                 CREATE INDEX p{k}_s ON p{k} (s);\nCREATE INDEX p{k}_o ON p{k} (o);"
            );
            parts.push(format!("SELECT s, {id} AS p, o FROM p{k}"));
        }
        if parts.is_empty() {
            sql += "BEGIN;\n";
            parts.push("SELECT NULL AS s, NULL AS p, NULL AS o WHERE false".into());
        }
        let _ = writeln!(
            sql,
            "CREATE VIEW triples AS {};\nCOMMIT;\nCHECKPOINT;",
            parts.join(" UNION ALL ")
        );
        sql
    }

    fn predicates(&self) -> Result<Vec<(String, String)>> {
        let file = self.predicates_file();
        let text = fs::read_to_string(&file).map_err(|e| Error::io(&file, e))?;
        Ok(text
            .lines()
            .filter_map(|l| l.split_once('\t'))
            .map(|(id, term)| (id.to_owned(), term.to_owned()))
            .collect())
    }

    /// Runs a query's SQL; its rows come as TSV with the header that SPARQL's TSV has.
    fn ask(&mut self, query: &str, limit: Duration, keep: Option<&mut Vec<u8>>) -> Outcome<Timed> {
        let start = Instant::now();
        let sql = translate(query, &self.schema).map_err(Failure::NotAsked)?;
        let up = self
            .up
            .as_mut()
            .ok_or_else(|| Failure::Broken("it does not run".into()))?;
        up.asked += 1;
        // No term begins with '@'.
        let end = format!("@@end {}\n", up.asked);
        let script = format!(
            "{}COPY ({}) TO '/dev/stdout' (FORMAT CSV, DELIMITER E'\\t', HEADER, QUOTE '', ESCAPE '');\n.print {end}",
            sql.before, sql.select
        );
        let (done, watched) = mpsc::channel::<()>();
        let child = std::sync::Arc::clone(up.running.child());
        let watchdog = std::thread::spawn(move || {
            let late = watched.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                // The query has no other end: the command takes no message while it runs.
                let _ = lock(&child).kill();
            }
            late
        });
        let told = up
            .to
            .write_all(script.as_bytes())
            .and_then(|()| up.to.flush());
        let read =
            told.and_then(|()| read_until(&mut up.from, end.as_bytes(), &mut up.piece, keep));
        let seconds = start.elapsed().as_secs_f64();
        let _ = done.send(());
        if watchdog.join().unwrap_or(false) {
            return Err(Failure::Timeout);
        }
        match read {
            Ok(0) => Err(Failure::Refused(up.complaint())),
            Ok(bytes) => Ok(Timed { seconds, bytes }),
            Err(e) => Err(Failure::Broken(format!("{e}: {}", up.complaint()))),
        }
    }
}

impl Up {
    /// The text that it wrote to standard error since the last complaint.
    fn complaint(&mut self) -> String {
        let text = fs::read(&self.errors).unwrap_or_default();
        let new = &text[(self.errors_read as usize).min(text.len())..];
        self.errors_read = text.len() as u64;
        let said = crate::http::first_words(&String::from_utf8_lossy(new), 300);
        if said.is_empty() {
            "no answer and no error".into()
        } else {
            said
        }
    }
}

/// Reads up to and without the line `end`, which must be the last thing there is to read; returns the bytes before it.
fn read_until(
    from: &mut impl Read,
    end: &[u8],
    piece: &mut [u8],
    mut keep: Option<&mut Vec<u8>>,
) -> std::io::Result<u64> {
    let mut bytes = 0u64;
    let mut tail: Vec<u8> = Vec::new();
    loop {
        let n = from.read(piece)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let piece = &piece[..n];
        bytes += n as u64;
        if let Some(keep) = keep.as_deref_mut() {
            keep.extend_from_slice(piece);
        }
        if n >= end.len() {
            tail.clear();
            tail.extend_from_slice(&piece[n - end.len()..]);
        } else {
            tail.extend_from_slice(piece);
            let spare = tail.len().saturating_sub(end.len());
            tail.drain(..spare);
        }
        if tail == end {
            if let Some(keep) = keep {
                keep.truncate(keep.len() - end.len());
            }
            return Ok(bytes - end.len() as u64);
        }
    }
}

impl Engine for DuckDb {
    fn about(&self) -> About {
        let what = if self.schema.text {
            "terms as text"
        } else {
            "terms as 32-bit ids with a table of terms, constants looked up and results joined back in the same script"
        };
        About {
            name: if self.schema.text {
                "duckdb-text"
            } else {
                "duckdb"
            }
            .into(),
            version: version_of(&self.program, &["--version"], None).unwrap_or_default(),
            licence: "MIT".into(),
            how: format!(
                "a relational yardstick, no RDF engine: one table a predicate, sorted, an index on each column; {what}; joins written out in SQL; \
                 {} MiB, {} threads. Answers come as CSV with tabs through a pipe, not over HTTP.",
                self.setup.mebibytes(),
                self.setup.threads
            ),
            over_http: false,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let data = std::path::absolute(data).map_err(|e| Error::io(data, e))?;
        let staging = self.setup.work.join("staging.duckdb");
        let gone = |p: &Path| match fs::remove_file(p) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(p, e)),
            _ => Ok(()),
        };
        gone(&staging)?;
        let (first, m1) = self.run("terms", &self.first_script(&data, &staging))?;
        let predicates = self.predicates()?;
        let (second, m2) = self.run("tables", &self.second_script(&predicates, &staging))?;
        gone(&staging)?;
        Ok(Loaded {
            seconds: first + second,
            disk: disk_usage(&store),
            memory: m1.max(m2),
        })
    }

    fn start(&mut self) -> Result<()> {
        self.stop();
        self.schema.predicates = self
            .predicates()?
            .into_iter()
            .enumerate()
            .filter_map(|(k, (_, term))| {
                let iri = term.strip_prefix('<')?.strip_suffix('>')?;
                Some((iri.to_owned(), k))
            })
            .collect();
        let errors = self.setup.log("errors");
        let stderr = File::create(&errors).map_err(|e| Error::io(&errors, e))?;
        let running = Running::start_as_is(
            Command::new(&self.program)
                .args(["-batch", "-no-init", "-readonly"])
                .arg(self.file())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(stderr),
            &errors,
            Duration::from_millis(1000),
        )?;
        let (to, from) = {
            let mut child = lock(running.child());
            (child.stdin.take(), child.stdout.take())
        };
        let (Some(mut to), Some(from)) = (to, from) else {
            return Err(running.error("it has no streams"));
        };
        to.write_all(self.settings().as_bytes())
            .map_err(|e| Error::io(&self.program, e))?;
        self.up = Some(Up {
            running,
            to,
            from,
            errors,
            errors_read: 0,
            asked: 0,
            piece: vec![0; 256 << 10],
        });
        match self.ask("ASK {}", Duration::from_secs(60), None) {
            Ok(_) => Ok(()),
            Err(e) => Err(Error::Engine(format!("duckdb did not come up: {e}"))),
        }
    }

    fn time(&mut self, query: &str, limit: Duration) -> Outcome<Timed> {
        self.ask(query, limit, None)
    }

    fn check(&mut self, query: &str, limit: Duration) -> Outcome<Seen> {
        let mut text = Vec::new();
        self.ask(query, limit, Some(&mut text))?;
        read_tsv(text.as_slice())
    }

    fn memory(&mut self) -> Memory {
        self.up
            .as_ref()
            .map_or(Memory::default(), |u| u.running.memory())
    }

    fn stop(&mut self) {
        if let Some(up) = self.up.take() {
            // The end of its input ends it.
            drop(up.to);
            up.running.terminate(Duration::from_secs(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of `0.1` bytes.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn an_answer_ends_at_its_mark_however_it_comes() {
        let text = b"?x\n<a:b>\n@@end 7\n";
        for n in 1..=text.len() {
            let mut kept = Vec::new();
            let bytes = read_until(
                &mut Slow(text, n),
                b"@@end 7\n",
                &mut [0; 64],
                Some(&mut kept),
            );
            assert_eq!(bytes.unwrap(), 9, "pieces of {n}");
            assert_eq!(kept, b"?x\n<a:b>\n");
        }
        assert!(read_until(&mut Slow(b"?x\n", 2), b"@@end 7\n", &mut [0; 64], None).is_err());
    }
}
