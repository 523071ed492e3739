//! The fair comparison: each engine loads the same file, alone; then all are up and answer the same queries in
//! turn (A B C, A B C, …), so that the machine's drift hits all alike.

use crate::engine::{Engine, Failure, Loaded};
use crate::machine::{Machine, load_average};
use crate::report::{Answer, Data, EngineReport, QueryReport, Report};
use crate::{Error, Result};
use jindou_workloads::queries::Instance;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::Xxh3;

/// A query with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The query's name in tables.
    pub name: String,
    /// The template that it is an instance of, if any.
    pub template: Option<String>,
    /// SPARQL.
    pub text: String,
    /// How many rows are right, where that is known from elsewhere.
    pub rows: Option<u64>,
}

impl Named {
    /// A query of no template, whose number of rows is not known.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            template: None,
            text: text.into(),
            rows: None,
        }
    }
}

impl From<Instance> for Named {
    fn from(i: Instance) -> Self {
        Self {
            template: Some(i.template),
            ..Self::new(i.name, i.text)
        }
    }
}

/// How to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Timed rounds; a query that takes everyone less than `FAST` gets four times as many, an engine that takes
    /// more than `SLOW` for it gets two, or one beyond four times that.
    pub rounds: usize,
    /// A query may take so long.
    pub limit: Duration,
    /// Folder with a folder for each engine's store; a store that was loaded there from the same file is used again.
    pub work: PathBuf,
    /// Title of the report.
    pub title: String,
    /// The command line, for the report.
    pub command: String,
}

/// See [`Options::rounds`].
pub const FAST: Duration = Duration::from_millis(50);
/// See [`Options::rounds`].
pub const SLOW: Duration = Duration::from_secs(5);
/// Timed rounds of `ASK {}`.
const FLOOR_ROUNDS: usize = 25;

/// A record of a load, kept next to its store.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Remembered {
    fingerprint: String,
    version: String,
    loaded: Loaded,
}

struct Entrant {
    engine: Box<dyn Engine>,
    report: EngineReport,
    up: bool,
}

/// Compares engines; the first is the one that the ratios are of. `say` is told what is being done.
///
/// An engine that fails to load or start stays in the report with its reason.
pub fn compare(
    engines: Vec<Box<dyn Engine>>,
    data: &Path,
    statements: Option<u64>,
    queries: &[Named],
    options: &Options,
    say: &mut dyn FnMut(&str),
) -> Result<Report> {
    let machine = Machine::this();
    let fingerprint = fingerprint(data)?;
    let mut entrants: Vec<Entrant> = engines
        .into_iter()
        .map(|engine| Entrant {
            report: EngineReport {
                about: engine.about(),
                ..EngineReport::default()
            },
            engine,
            up: false,
        })
        .collect();
    for e in &mut entrants {
        let name = e.report.about.name.clone();
        say(&format!("{name}: loading"));
        match load(e, data, &fingerprint, options) {
            Ok((loaded, reused)) => {
                e.report.loaded = Some(loaded);
                e.report.load_reused = reused;
            }
            Err(error) => {
                say(&format!("{name}: {error}"));
                e.report.failed = Some(error.to_string());
            }
        }
    }
    for e in &mut entrants {
        if e.report.failed.is_none() {
            say(&format!("{}: starting", e.report.about.name));
            e.start(say);
        }
    }
    if let Some(first) = entrants.first()
        && let Some(why) = &first.report.failed
    {
        return Err(Error::Engine(format!("{}: {why}", first.report.about.name)));
    }
    floors(&mut entrants, options);
    let mut reports = Vec::new();
    for q in queries {
        say(&format!("query {}", q.name));
        reports.push(one_query(&mut entrants, q, options, say));
    }
    for e in &mut entrants {
        e.report.serving = e.report.serving.max(e.engine.memory());
        e.engine.stop();
    }
    Ok(Report {
        title: options.title.clone(),
        data: Data {
            name: data
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            bytes: fs::metadata(data).map_or(0, |m| m.len()),
            statements,
        },
        machine,
        load_after: load_average(),
        unix_seconds: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs()),
        command: options.command.clone(),
        rounds: options.rounds,
        limit_seconds: options.limit.as_secs_f64(),
        engines: entrants.into_iter().map(|e| e.report).collect(),
        queries: reports,
    })
}

impl Entrant {
    fn start(&mut self, say: &mut dyn FnMut(&str)) {
        match self.engine.start() {
            Ok(()) => self.up = true,
            Err(error) => {
                say(&format!("{}: {error}", self.report.about.name));
                self.report.failed = Some(error.to_string());
                self.up = false;
            }
        }
    }

    /// Makes an engine that may be busy with a query nothing waits for ready for the next.
    fn restart(&mut self, say: &mut dyn FnMut(&str)) {
        say(&format!("{}: starting anew", self.report.about.name));
        self.report.serving = self.report.serving.max(self.engine.memory());
        self.engine.stop();
        self.start(say);
    }
}

fn load(e: &mut Entrant, data: &Path, fingerprint: &str, o: &Options) -> Result<(Loaded, bool)> {
    let note = o.work.join(format!("{}.loaded.json", e.report.about.name));
    let version = e.report.about.version.clone();
    if let Ok(text) = fs::read_to_string(&note)
        && let Ok(r) = serde_json::from_str::<Remembered>(&text)
        && r.fingerprint == fingerprint
        && r.version == version
    {
        return Ok((r.loaded, true));
    }
    // What is there is about to go; if the load fails, no note must say otherwise.
    let _ = fs::remove_file(&note);
    let loaded = e.engine.load(data)?;
    let remembered = Remembered {
        fingerprint: fingerprint.to_owned(),
        version,
        loaded,
    };
    let text = serde_json::to_string(&remembered)
        .map_err(|e| Error::Engine(format!("{}: {e}", note.display())))?;
    fs::write(&note, text).map_err(|e| Error::io(&note, e))?;
    Ok((loaded, false))
}

/// Length and a hash of the first and last mebibyte: enough to tell two generated files apart.
fn fingerprint(data: &Path) -> Result<String> {
    let io = |e| Error::io(data, e);
    let mut f = File::open(data).map_err(io)?;
    let length = f.metadata().map_err(io)?.len();
    let mut hash = Xxh3::new();
    let mut piece = Vec::new();
    for at in [0, length.saturating_sub(1 << 20)] {
        f.seek(SeekFrom::Start(at)).map_err(io)?;
        piece.clear();
        (&mut f).take(1 << 20).read_to_end(&mut piece).map_err(io)?;
        hash.update(&piece);
    }
    Ok(format!("{length}-{:016x}", hash.digest()))
}

/// Times `ASK {}`: what a question costs that asks nothing.
fn floors(entrants: &mut [Entrant], options: &Options) {
    for round in 0..=FLOOR_ROUNDS {
        for i in turn(entrants.len(), round) {
            let e = &mut entrants[i];
            if e.up
                && let Ok(t) = e.engine.time("ASK {}", options.limit)
                && round > 0
            {
                e.report.floor_ms.push(t.seconds * 1e3);
            }
        }
    }
}

fn one_query(
    entrants: &mut [Entrant],
    q: &Named,
    options: &Options,
    say: &mut dyn FnMut(&str),
) -> QueryReport {
    let mut answers: Vec<Answer> = Vec::new();
    let mut rounds = vec![0; entrants.len()];
    // The first asking reads every term, the second warms what the timed ones do.
    for (e, rounds) in entrants.iter_mut().zip(&mut rounds) {
        let mut answer = Answer::default();
        if e.up {
            match e.engine.check(&q.text, options.limit) {
                Ok(seen) => answer.seen = Some(seen),
                Err(f) => answer.fail(&f),
            }
            if answer.failure.is_none() {
                match e.engine.time(&q.text, options.limit) {
                    Ok(t) => {
                        answer.bytes = t.bytes;
                        answer.warm_up_ms = t.seconds * 1e3;
                        *rounds = rounds_for(options.rounds, t.seconds);
                    }
                    Err(f) => answer.fail(&f),
                }
            }
            answer.restart_if_needed(e, say);
        } else {
            answer.failure = Some("it does not run".into());
        }
        answers.push(answer);
    }
    let slowest = answers.iter().map(|a| a.warm_up_ms).fold(0.0, f64::max);
    if answers.iter().all(|a| !a.over_limit) && slowest < FAST.as_secs_f64() * 1e3 {
        for r in &mut rounds {
            *r *= 4;
        }
    }
    for round in 0..rounds.iter().copied().max().unwrap_or(0) {
        for i in turn(entrants.len(), round) {
            let e = &mut entrants[i];
            if round >= rounds[i] || answers[i].failure.is_some() || !e.up {
                continue;
            }
            match e.engine.time(&q.text, options.limit) {
                Ok(t) => answers[i].times_ms.push(t.seconds * 1e3),
                Err(f) => answers[i].fail(&f),
            }
            answers[i].restart_if_needed(e, say);
        }
    }
    for (e, a) in entrants.iter_mut().zip(&mut answers) {
        e.report.serving = e.report.serving.max(e.engine.memory());
        a.times_ms.sort_by(f64::total_cmp);
    }
    QueryReport {
        name: q.name.clone(),
        template: q.template.clone(),
        text: q.text.clone(),
        known_rows: q.rows,
        answers,
    }
}

/// The order in which engines are asked in a round. An engine pays for following one that is still busy (with its garbage
/// collector) or that left cold caches, so over several rounds each follows every other equally often, and none follows itself
/// (from four engines on, within a round, by a balanced Latin square: E. J. Williams, 1949).
fn turn(of: usize, round: usize) -> impl Iterator<Item = usize> {
    let backwards = of % 2 == 1 && round / of % 2 == 1;
    (0..of).map(move |place| match of {
        0..=2 => place,
        3 if round % 2 == 1 => (3 - place) % 3,
        3 => place,
        _ => {
            let place = if backwards { of - 1 - place } else { place };
            let first = if place % 2 == 0 {
                place / 2
            } else {
                of - place.div_ceil(2)
            };
            (first + round) % of
        }
    })
}

fn rounds_for(wanted: usize, seconds: f64) -> usize {
    let slow = SLOW.as_secs_f64();
    if seconds <= slow {
        wanted.max(1)
    } else if seconds <= 4.0 * slow {
        2
    } else {
        1
    }
}

impl Answer {
    fn fail(&mut self, f: &Failure) {
        self.over_limit = *f == Failure::Timeout;
        self.broke = matches!(f, Failure::Timeout | Failure::Broken(_));
        self.failure = Some(f.to_string());
    }

    fn restart_if_needed(&mut self, e: &mut Entrant, say: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.broke) {
            e.restart(say);
        }
    }
}

/// The geometric mean; `None` of nothing.
pub fn geometric_mean(of: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0usize);
    for x in of {
        sum += x.ln();
        n += 1;
    }
    (n > 0).then(|| (sum / n as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{About, Outcome, Timed};
    use crate::{Memory, Seen};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn everyone_follows_everyone_equally_often() {
        for of in 1..8 {
            let rounds = of * (1 + of % 2);
            let turns: Vec<Vec<usize>> = (0..=rounds).map(|r| turn(of, r).collect()).collect();
            for t in &turns {
                let mut all = t.clone();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..of), "{t:?}");
            }
            let mut follows = vec![0; of * of];
            let mut between = 0;
            for (t, next) in turns.iter().zip(&turns[1..]) {
                for pair in t.windows(2) {
                    follows[pair[0] * of + pair[1]] += 1;
                }
                between += usize::from(t.last() == next.first());
                if of < 4 {
                    follows[t[of - 1] * of + next[0]] += 1;
                }
            }
            if of > 1 {
                assert_eq!(between, 0, "nobody follows itself: {turns:?}");
                for (at, n) in follows.into_iter().enumerate() {
                    let most = if of < 4 {
                        of * rounds / (of * (of - 1))
                    } else {
                        rounds / of
                    };
                    let expected = if at / of == at % of { 0 } else { most };
                    assert_eq!(n, expected, "{} after {} of {of}", at % of, at / of);
                }
            }
        }
    }

    type Diary = Rc<RefCell<Vec<String>>>;

    /// Answers after a while, refuses or times out as its queries say.
    struct Double {
        name: &'static str,
        diary: Diary,
        rows: u64,
    }

    impl Double {
        fn act(&self, what: &str, query: &str) -> Outcome<()> {
            if query != "ASK {}" {
                self.diary
                    .borrow_mut()
                    .push(format!("{} {what} {query}", self.name));
            }
            match query {
                "late" if self.name == "b" => Err(Failure::Timeout),
                "refused" if self.name == "b" => Err(Failure::Refused("no".into())),
                _ => Ok(()),
            }
        }
    }

    impl Engine for Double {
        fn about(&self) -> About {
            About {
                name: self.name.into(),
                ..About::default()
            }
        }

        fn load(&mut self, _: &Path) -> Result<Loaded> {
            self.diary.borrow_mut().push(format!("{} load", self.name));
            if self.name == "broken" {
                return Err(Error::Engine("cannot load".into()));
            }
            Ok(Loaded::default())
        }

        fn start(&mut self) -> Result<()> {
            self.diary.borrow_mut().push(format!("{} start", self.name));
            Ok(())
        }

        fn time(&mut self, query: &str, _: Duration) -> Outcome<Timed> {
            self.act("time", query)?;
            let seconds = if query == "slow" { 6.0 } else { 0.06 };
            Ok(Timed { seconds, bytes: 3 })
        }

        fn check(&mut self, query: &str, _: Duration) -> Outcome<Seen> {
            self.act("check", query)?;
            Ok(Seen {
                rows: self.rows,
                checksum: 9,
            })
        }

        fn memory(&mut self) -> Memory {
            Memory {
                resident: 5,
                own: 2,
            }
        }

        fn stop(&mut self) {
            self.diary.borrow_mut().push(format!("{} stop", self.name));
        }
    }

    fn run(names: &[&'static str], queries: &[&str], work: &Path) -> (Result<Report>, Vec<String>) {
        let diary = Diary::default();
        let data = work.join("data.nt");
        fs::write(&data, "<a:b> <a:c> <a:d> .\n").unwrap();
        let engines = names
            .iter()
            .map(|&name| {
                Box::new(Double {
                    name,
                    diary: Rc::clone(&diary),
                    rows: if name == "wrong" { 8 } else { 7 },
                }) as Box<dyn Engine>
            })
            .collect();
        let queries: Vec<Named> = queries
            .iter()
            .map(|&q| Named {
                rows: Some(7),
                ..Named::new(q, q)
            })
            .collect();
        let options = Options {
            rounds: 3,
            limit: Duration::from_secs(1),
            work: work.into(),
            title: "t".into(),
            command: "c".into(),
        };
        let r = compare(engines, &data, Some(1), &queries, &options, &mut |_| {});
        let diary = diary.borrow().clone();
        (r, diary)
    }

    #[test]
    fn engines_take_turns() {
        let dir = tempfile::tempdir().unwrap();
        let (r, diary) = run(&["a", "b"], &["q"], dir.path());
        let r = r.unwrap();
        let expected = "a load|b load|a start|b start|a check q|a time q|b check q|b time q|\
                        a time q|b time q|a time q|b time q|a time q|b time q|a stop|b stop";
        assert_eq!(diary.join("|"), expected);
        assert_eq!(r.queries[0].answers[1].times_ms.len(), 3);
        assert_eq!(r.engines[0].floor_ms.len(), FLOOR_ROUNDS);
        assert_eq!(r.engines[1].serving.resident, 5);
    }

    #[test]
    fn who_is_slow_is_asked_less_and_who_is_late_is_started_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (r, diary) = run(&["a", "b"], &["slow", "late", "refused"], dir.path());
        let r = r.unwrap();
        assert_eq!(r.queries[0].answers[0].times_ms.len(), 2);
        let late = &r.queries[1].answers;
        assert!(late[1].over_limit && late[1].times_ms.is_empty() && !late[0].over_limit);
        assert_eq!(r.queries[2].answers[1].failure.as_deref(), Some("no"));
        assert_eq!(diary.iter().filter(|d| *d == "b start").count(), 2);
        assert_eq!(diary.iter().filter(|d| *d == "b check late").count(), 1);
    }

    #[test]
    fn a_store_is_loaded_once_and_a_failure_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (r, _) = run(&["a", "broken"], &["q"], dir.path());
        let r = r.unwrap();
        assert_eq!(r.engines[1].failed.as_deref(), Some("cannot load"));
        assert!(r.queries[0].answers[1].failure.is_some());
        let (r, diary) = run(&["a", "broken"], &["q"], dir.path());
        assert!(r.unwrap().engines[0].load_reused);
        assert!(!diary.contains(&"a load".to_owned()) && diary.contains(&"broken load".to_owned()));
        assert!(run(&["broken", "a"], &["q"], dir.path()).0.is_err());
    }

    #[test]
    fn means() {
        assert_eq!(geometric_mean([]), None);
        assert!((geometric_mean([1.0, 100.0]).unwrap() - 10.0).abs() < 1e-9);
    }
}
