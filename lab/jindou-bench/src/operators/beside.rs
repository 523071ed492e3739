//! Asks DuckDB the same questions, over tables of the operators' input rows with terms as text.

use super::super::measure::Times;
use super::questions::{Question, Questions};
use jindou::{Database, Error, QueryOptions, Result, ResultFormat, ResultWriter};
use jindou_peers::install::{Peer, default_folder};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times and rows of a question's SQL in DuckDB.
#[derive(Clone, Default)]
pub struct Beside {
    pub exec: Times,
    /// Processor time, all threads together.
    pub cpu: Times,
    pub rows: u64,
    /// True if DuckDB exceeded the time limit.
    pub given_up: bool,
}

/// DuckDB's command line program, and a folder for its database.
pub struct DuckDb {
    program: PathBuf,
    folder: tempfile::TempDir,
    threads: usize,
    limit: Duration,
}

/// STR and LANG of a term's text in N-Triples.
const FUNCTIONS: &str = r#"CREATE MACRO str(t) AS CASE WHEN t[1] = '<' THEN t[2:-2]
  ELSE regexp_extract(t, '^"(.*)"(@[A-Za-z0-9-]+|\^\^<[^>]*>)?$', 1) END;
CREATE MACRO lang(t) AS CASE WHEN t[1] = '"' THEN regexp_extract(t, '"@([A-Za-z0-9-]+)$', 1) END;
"#;
const UNLIMITED: Duration = Duration::from_secs(24 * 3600);
const LOOK: Duration = Duration::from_millis(5);

impl DuckDb {
    /// Uses the DuckDB that `jindou peers install duckdb` put into the folder `engines`; if empty, into the default
    /// one.
    ///
    /// # Errors
    /// If DuckDB is not installed there.
    pub fn new(engines: &Path, threads: usize, limit: Option<Duration>) -> Result<Self> {
        let engines = match engines.as_os_str().is_empty() {
            true => default_folder(),
            false => engines.to_owned(),
        };
        let peer = Peer::named("duckdb").map_err(crate::peers::wrong)?;
        let program = peer.installed(&engines).ok_or_else(|| {
            Error::external(format!(
                "DuckDB is not in {}; `jindou peers install duckdb --engines {}` puts it there",
                engines.display(),
                engines.display()
            ))
        })?;
        let folder = tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?;
        Ok(Self {
            program: program.join("duckdb_cli/duckdb"),
            folder,
            threads,
            limit: limit.unwrap_or(UNLIMITED),
        })
    }

    /// Runs the question's SQL `repeat` times; `None` if the question has none.
    ///
    /// # Errors
    /// Errors of DuckDB and of files, [`Error::Timeout`], and errors of the queries that produce the inputs.
    pub fn ask(
        &self,
        db: &Database,
        set: &Questions,
        q: &Question,
        options: &QueryOptions,
        repeat: usize,
    ) -> Result<Option<Beside>> {
        let Some(sql) = q.sql else { return Ok(None) };
        let mut script = format!("SET threads = {};\n{FUNCTIONS}", self.threads);
        for (i, text) in q.inputs.iter().enumerate() {
            let text = format!("{}{text}", set.prefixes);
            let file = self.folder.path().join(format!("in{i}.tsv"));
            let out = File::create(&file).map_err(|e| Error::io(&file, e))?;
            let mut writer = ResultWriter::new(BufWriter::new(out), ResultFormat::Tsv);
            db.run(&text, options, &mut writer)?;
            drop(writer);
            let columns = db.plan(&text, options)?.plan().output.len();
            let columns: Vec<String> = (0..columns).map(|c| format!("'c{c}': 'VARCHAR'")).collect();
            let _ = writeln!(
                script,
                "CREATE TABLE in{i} AS SELECT * FROM read_csv('{}', columns = {{{}}}, delim = '\\t', quote = '', \
                 escape = '', header = true, auto_detect = false);",
                file.display(),
                columns.join(", ")
            );
        }
        // The first run is not counted.
        script += ".mode csv\n.headers off\n.timer on\n";
        for _ in 0..=repeat.max(1) {
            let _ = writeln!(script, "SELECT count(*), bit_xor(hash(x, y)) FROM ({sql});");
        }
        let said = self.run(&script)?;
        read(&said, repeat.max(1))
            .map(Some)
            .ok_or_else(|| Error::external(format!("DuckDB said: {said}")))
    }

    fn run(&self, script: &str) -> Result<String> {
        let path = |name: &str| self.folder.path().join(name);
        let (from, to) = (path("script.sql"), path("said"));
        std::fs::write(&from, script).map_err(|e| Error::io(&from, e))?;
        let out = File::create(&to).map_err(|e| Error::io(&to, e))?;
        let errors = out.try_clone().map_err(|e| Error::io(&to, e))?;
        let mut child = Command::new(&self.program)
            .args(["-bail", "-batch", "-no-init", "-f"])
            .arg(&from)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .spawn()
            .map_err(|e| Error::io(&self.program, e))?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|e| Error::io(&self.program, e))? {
                let said = std::fs::read_to_string(&to).map_err(|e| Error::io(&to, e))?;
                return match status.success() {
                    true => Ok(said),
                    false => Err(Error::external(format!("DuckDB failed: {said}"))),
                };
            }
            if start.elapsed() > self.limit {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Timeout(self.limit));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Parses the last `repeat` answers of DuckDB: a line with the number of rows and a checksum, followed by one of times.
fn read(said: &str, repeat: usize) -> Option<Beside> {
    let mut times: Vec<[f64; 3]> = vec![];
    let mut rows = None;
    for line in said.lines() {
        if let Some(of) = line.strip_prefix("Run Time (s): real ") {
            let mut words = of.split_whitespace();
            let mut next = || words.next()?.parse().ok();
            let real = next()?;
            let mut rest = of.split_whitespace().skip(1);
            let mut of = |name: &str| -> Option<f64> {
                (rest.next()? == name).then_some(())?;
                rest.next()?.parse().ok()
            };
            times.push([real, of("user")?, of("sys")?]);
        } else if let Some((n, _)) = line.split_once(',') {
            rows = Some(n.parse().ok()?);
        }
    }
    let last = times.len().checked_sub(repeat)?;
    let list = || times.iter().skip(last);
    Some(Beside {
        exec: Times::new(list().map(|t| Duration::from_secs_f64(t[0]))),
        cpu: Times::new(list().map(|t| Duration::from_secs_f64(t[1] + t[2]))),
        rows: rows?,
        given_up: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_duckdb_says_is_read() {
        let said = "3,18163921042752710693\nRun Time (s): real 0.050 user 0.060 sys 0.010\n\
                    3,18163921042752710693\nRun Time (s): real 0.002 user 0.003 sys 0.001\n";
        let read = read(said, 1).unwrap();
        assert_eq!(read.rows, 3);
        assert!((read.exec.median() - 2.0).abs() < 1e-9);
        assert!((read.cpu.median() - 4.0).abs() < 1e-9);
        assert!(super::read("Error: no", 1).is_none());
    }
}
