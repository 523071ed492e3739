//! Runs one query many times and measures how long it takes.

use jindou::{
    Checksum, Database, Error, PlannedQuery, QueryOptions, Result, ResultFormat, ResultWriter,
};
pub use jindou_testing::process_time as cpu_time;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Times in milliseconds, sorted.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<f64>);

impl Times {
    pub fn new(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut v: Vec<f64> = durations
            .into_iter()
            .map(|d| d.as_secs_f64() * 1e3)
            .collect();
        v.sort_by(f64::total_cmp);
        Self(v)
    }

    /// The median; with an even number of times, the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The quantile `q`, interpolated linearly between neighbouring ranks; NaN without times.
    pub fn quantile(&self, q: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else {
            return f64::NAN;
        };
        let at = q * last as f64;
        let (a, b) = (self.0[at.floor() as usize], self.0[at.ceil() as usize]);
        a + (b - a) * at.fract()
    }
}

/// The median; with an even number of values, the larger of the two in the middle; 0 without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.into_iter().collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

/// Times and checksum of one query.
#[derive(Clone, Debug)]
pub struct Measured {
    pub seen: Checksum,
    /// Parsing and planning without caches.
    pub plan: Times,
    /// Execution alone: every row is written to a batch and added to the checksum.
    pub exec: Times,
    /// Everything from the query's text to the last byte of TSV, with the plan cached.
    pub total: Times,
    /// The same without cached plan: for each run the sum of `plan` and `total`.
    pub whole: Times,
}

/// Measures planning, execution and serialisation of a query `repeat` times each, after one warm-up. The three kinds of
/// runs alternate, so that changes in the machine's speed affect all alike.
pub fn measure(
    db: &Database,
    text: &str,
    options: &QueryOptions,
    repeat: usize,
) -> Result<Measured> {
    let (mut plan, mut exec, mut total) = (Vec::new(), Vec::new(), Vec::new());
    let cached = db.plan(text, options)?;
    let seen = run(db, &cached, options)?;
    serialise(db, text, options)?;
    for _ in 0..repeat.max(1) {
        let start = Instant::now();
        std::hint::black_box(db.plan_uncached(text, options)?);
        plan.push(start.elapsed());
        let start = Instant::now();
        let again = run(db, &cached, options)?;
        exec.push(start.elapsed());
        if again.rows != seen.rows || again != seen && !casts_to_floats(text) {
            return Err(jindou::Error::Internal(format!(
                "two runs of one query differ: {seen:?}, then {again:?}"
            )));
        }
        let start = Instant::now();
        serialise(db, text, options)?;
        total.push(start.elapsed());
    }
    let whole = plan.iter().zip(&total).map(|(plan, total)| *plan + *total);
    Ok(Measured {
        seen,
        whole: Times::new(whole),
        plan: Times::new(plan),
        exec: Times::new(exec),
        total: Times::new(total),
    })
}

/// True if the query casts to floats. Workers add in no fixed order, and the last digits of sums of floats depend on
/// it.
fn casts_to_floats(text: &str) -> bool {
    ["xsd:float(", "xsd:double("]
        .iter()
        .any(|cast| text.contains(cast))
}

/// One execution into a checksum.
pub fn run(db: &Database, query: &PlannedQuery, options: &QueryOptions) -> Result<Checksum> {
    db.checksum(query, options)
}

/// Counts the bytes written to it and discards them, like a reader that is never the bottleneck.
#[derive(Default)]
pub struct Null(pub u64);

impl std::io::Write for Null {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0 += std::hint::black_box(buf).len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a query to the last byte of TSV and returns the number of bytes. The plan is taken from the cache if possible.
pub fn serialise(db: &Database, text: &str, options: &QueryOptions) -> Result<u64> {
    let mut out = Null(0);
    let mut writer = ResultWriter::new(&mut out, ResultFormat::Tsv);
    db.run(text, options, &mut writer)?;
    drop(writer);
    Ok(out.0)
}

/// A size in a file of `/proc`, in bytes; `None` if the system does not tell.
pub fn size_in(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn status(name: &str) -> u64 {
    size_in("/proc/self/status", name).unwrap_or(0)
}

/// The most memory this process ever had resident, in bytes.
pub fn peak_memory() -> u64 {
    status("VmHWM:")
}

/// Memory resident now, in bytes: (anonymous, mapped from files).
pub fn resident_memory() -> (u64, u64) {
    (status("RssAnon:"), status("RssFile:"))
}

/// The number of threads asked for, or one per core if `None`.
pub fn threads_or_all(asked: Option<usize>) -> usize {
    asked
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        .max(1)
}

/// A temporary folder, in `dir` if that is given.
pub fn temporary_folder(dir: Option<&Path>) -> Result<TempDir> {
    match dir {
        Some(dir) => tempfile::tempdir_in(dir).map_err(|e| Error::io(dir, e)),
        None => tempfile::tempdir().map_err(|e| Error::io("a temporary folder", e)),
    }
}

/// A folder that is given, or one within a temporary folder, which is removed when this value is dropped. It may not exist
/// yet.
pub struct Folder {
    pub dir: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    pub fn new(given: Option<&Path>) -> Result<Self> {
        if let Some(dir) = given {
            return Ok(Self {
                dir: dir.to_owned(),
                _temporary: None,
            });
        }
        let temporary = temporary_folder(None)?;
        Ok(Self {
            dir: temporary.path().join("store"),
            _temporary: Some(temporary),
        })
    }
}

/// Bytes of the files below a folder.
pub fn bytes_in(folder: &Path) -> u64 {
    let files = jindou_testing::files_below(folder);
    let bytes = files.iter().map(|f| f.metadata().map_or(0, |m| m.len()));
    bytes.sum()
}

/// Copies the files of a folder, but no folders in it.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Writes a document to a file, or to standard output if that is `-`.
pub fn write_json(to: &Path, document: &serde_json::Value) -> Result<()> {
    if to.as_os_str() == "-" {
        println!("{document:#}");
        return Ok(());
    }
    std::fs::write(to, format!("{document:#}\n")).map_err(|e| Error::io(to, e))
}

/// Prints wrong answers; the exit status is 3 if there are any.
pub fn verdict<T: std::fmt::Display>(wrong: &[T]) -> ExitCode {
    for w in wrong {
        eprintln!("WRONG ANSWER {w}");
    }
    ExitCode::from(if wrong.is_empty() { 0 } else { 3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_times() {
        let t = Times::new([3, 1, 2].map(Duration::from_millis));
        assert_eq!((t.min(), t.median(), t.max()), (1.0, 2.0, 3.0));
        assert_eq!(Times::new([1, 2].map(Duration::from_millis)).median(), 1.5);
        assert!(Times::new([]).median().is_nan());
    }
}
