//! Logs of which an object is missing or damaged: which servers notice, and what they do then.

use crate::store::Tiny;
use crate::world::{DriverTask, begin};
use jindou_replicas::simulate::{EPOCH, State};
use jindou_replicas::{
    Base, Beginning, Bucket, Consistency, Group, Handle, Limits, Name, NoPeers, Options, Outcome,
    Report, RequestKey, Settings,
};
use jindou_testing::{copy_folder, files_below};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Number of groups in the log.
const GROUPS: u64 = 20;

fn settings() -> Settings {
    let ms = Duration::from_millis;
    Settings {
        beat: ms(20),
        prove_every: ms(40),
        list_after: ms(40),
        list_every: ms(20),
        audit_every: ms(100),
        // Long, for slow disks: the log is in a directory, and each object is made durable.
        read_limit: ms(30_000),
        update_limit: ms(30_000),
        ..Settings::default()
    }
}

fn limits() -> Limits {
    Limits {
        request: Duration::from_secs(30),
        ..Limits::default()
    }
}

struct Server {
    handle: Handle<State>,
    tiny: Tiny,
    driver: DriverTask,
}

impl Server {
    /// # Errors
    /// The reason why the server does not start.
    async fn start(log: &Path, tiny: Tiny, name: &str) -> Result<Self, String> {
        Self::with(settings(), log, tiny, name).await
    }

    /// Starts a server with these settings.
    async fn with(settings: Settings, log: &Path, tiny: Tiny, name: &str) -> Result<Self, String> {
        let bucket = Bucket::directory(log, limits()).unwrap();
        let mut options = Options::new(name);
        options.settings = settings;
        options.new_log = Some(EPOCH);
        let (handle, driver) = begin(tiny.clone(), bucket, NoPeers::connect(), options).await?;
        Ok(Self {
            handle,
            tiny,
            driver,
        })
    }

    /// Starts a server with an empty folder.
    async fn empty(log: &Path, name: &str) -> Self {
        Self::start(log, Tiny::default(), name).await.unwrap()
    }

    async fn update(&self, key: u64) -> Outcome {
        let body = vec![(key % 4) as u8; 5];
        self.handle
            .update(RequestKey(key.into()), body.into())
            .await
    }

    /// The number and content that a strict read sees, or the reason why there is none.
    async fn read(&self) -> Result<(u64, State), String> {
        match self.handle.read(Consistency::Strict).await {
            Ok(read) => Ok(read),
            Err(refusal) => {
                let status = self.handle.status().await;
                let why = status.and_then(|status| status.unready);
                Err(why.map_or_else(|| format!("{refusal:?}"), |why| why.to_string()))
            }
        }
    }

    /// The same, after as many attempts as it takes, up to 100.
    async fn read_at_last(&self) -> Result<(u64, State), String> {
        for _ in 0..100 {
            if let Ok(read) = self.read().await {
                return Ok(read);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.read().await
    }
}

/// A log of 20 groups and the states after them.
struct Template {
    folder: tempfile::TempDir,
    states: Vec<State>,
}

/// Bases are saved after these groups.
async fn template(bases: &[u64]) -> Template {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::empty(folder.path(), "maker").await;
    let mut states = vec![State::default()];
    for number in 1..=GROUPS {
        let outcome = server.update(number).await;
        assert!(
            matches!(outcome, Outcome::Done { number: n, .. } if n == number),
            "{outcome:?}"
        );
        states.push(server.read().await.unwrap().1);
        if bases.contains(&number) {
            assert_eq!(server.handle.save().await, Some(number));
            let name = folder.path().join(Name::Base(number).text(EPOCH));
            until(|| name.exists()).await;
        }
    }
    server.handle.stop();
    let entry = folder.path().join("servers/maker");
    until(|| {
        std::fs::read_to_string(&entry)
            .unwrap()
            .contains("\"newest\":20")
    })
    .await;
    Template { folder, states }
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never holds");
}

/// The local folder of a server that has ended after this group.
fn saved(log: &Path, number: u64, state: State) -> Tiny {
    let bytes = std::fs::read(log.join(Name::Group(number).text(EPOCH))).unwrap();
    let base = Base {
        number,
        hash: Group::read(EPOCH, &bytes).unwrap().hash(EPOCH),
        keys: Vec::new(),
    };
    let tiny = Tiny::default();
    *tiny.folder.0.lock().unwrap() = Some((base, state));
    tiny
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Start {
    Empty,
    Behind,
    Ended,
    Running,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Seen {
    /// The server reads the whole log and executes updates.
    Right,
    /// The server refuses reads and updates, and names the object.
    Refused,
    Wrong(String),
}

/// How an object is lost or damaged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Harm {
    Removed,
    /// A bit of the middle byte is flipped.
    Flipped,
    /// The second half is missing.
    Cut,
}

impl Harm {
    fn happen(self, path: &Path) {
        if self == Self::Removed {
            return std::fs::remove_file(path).unwrap();
        }
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        match self {
            Self::Flipped => bytes[middle] ^= 1,
            _ => bytes.truncate(middle),
        }
        std::fs::write(path, bytes).unwrap();
    }
}

/// Starts a server over a copy of a log with these objects removed or damaged.
async fn trial(template: Arc<Template>, lost: Vec<String>, harm: Harm, kind: Start) -> Seen {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    copy_folder(template.folder.path(), &log);
    let states = &template.states;
    let tiny = match kind {
        Start::Empty | Start::Running => Tiny::default(),
        Start::Behind => saved(&log, 10, states[10]),
        Start::Ended => saved(&log, GROUPS, states[GROUPS as usize]),
    };
    let remove = || lost.iter().for_each(|name| harm.happen(&log.join(name)));
    if kind != Start::Running {
        remove();
    }
    let server = match Server::start(&log, tiny, "tried").await {
        Ok(server) => server,
        Err(why) => return named(&lost, why),
    };
    if kind == Start::Running {
        assert_eq!(server.read().await.unwrap().0, GROUPS);
        remove();
        // Time for an audit.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let mut seen = attempt(&server, states, &lost).await;
    // The server may repair the log first.
    for _ in 0..20 {
        if seen != Seen::Refused
            || kind < Start::Ended
            || lost == ["log.json"]
            || harm != Harm::Removed
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        seen = attempt(&server, states, &lost).await;
    }
    if seen == Seen::Right
        && let Some(wrong) = unreported(&server, &lost, harm, kind)
    {
        return wrong;
    }
    if seen == Seen::Right && kind >= Start::Ended {
        // Another server must be able to read the whole log.
        let other = match Server::start(&log, Tiny::default(), "other").await {
            Ok(other) => other,
            Err(_) if lost == ["log.json"] => return Seen::Right,
            Err(why) => return Seen::Wrong(format!("others do not start: {why}")),
        };
        return match other.read().await {
            Ok(read) if read == server.tiny_state() => Seen::Right,
            // A damaged object is not overwritten, and a new base is only written by the next merge.
            Err(why)
                if (harm != Harm::Removed || lost[0].starts_with("parts/"))
                    && named(&lost, why.clone()) == Seen::Refused =>
            {
                Seen::Right
            }
            read => Seen::Wrong(format!("another server reads {read:?}")),
        };
    }
    seen
}

/// Returns a failure if the server must have reported the damage of the newest base and has not.
fn unreported(server: &Server, lost: &[String], harm: Harm, kind: Start) -> Option<Seen> {
    let name = lost
        .first()
        .filter(|name| name.contains(&format!("-{:016x}", 16)))?;
    let document = name.starts_with("base/");
    let compared = match kind {
        Start::Empty => true,
        // An audit compares the lengths of the parts, and reads the document and the part with the request keys.
        Start::Running => harm != Harm::Flipped || document || name.contains("/000000-"),
        Start::Behind | Start::Ended => false,
    };
    if name.starts_with("log/") || !compared || (document && harm == Harm::Removed) {
        return None;
    }
    let reports = server.tiny.reports.lock().unwrap();
    let is_reported =
        |report: &Report| matches!(report, Report::Base(why) if why.starts_with(name));
    (!reports.iter().any(is_reported)).then(|| Seen::Wrong(format!("not reported: {reports:?}")))
}

/// The objects of a folder of a log, and of the folders in it.
fn objects(log: &Path, folder: &str) -> Vec<String> {
    let files = files_below(&log.join(folder)).into_iter();
    let name = |path: PathBuf| path.strip_prefix(log).unwrap().to_str().unwrap().to_owned();
    files.map(name).collect()
}

impl Server {
    fn tiny_state(&self) -> (u64, State) {
        *self.tiny.published.lock().unwrap()
    }
}

fn named(lost: &[String], why: String) -> Seen {
    match lost.iter().any(|name| why.contains(&**name)) {
        true => Seen::Refused,
        false => Seen::Wrong(format!("refused without a name: {why}")),
    }
}

async fn attempt(server: &Server, states: &[State], lost: &[String]) -> Seen {
    let refused_update = async || {
        let update = server.update(1000);
        match lost == ["log.json"] {
            // Without `log.json` requests to the log fail, and the update waits.
            true => tokio::time::timeout(Duration::from_secs(2), update)
                .await
                .unwrap_or(Outcome::Unknown),
            false => update.await,
        }
    };
    match server.read().await {
        Err(why) => match refused_update().await {
            Outcome::Missing(_) => named(lost, why),
            // The server has replaced its store by a base in the meantime.
            Outcome::Done { number: 21, .. }
                if server.read().await.is_ok_and(|(number, _)| number == 21) =>
            {
                Seen::Right
            }
            // A directory without `log.json` is treated as another directory.
            Outcome::Unknown if lost == ["log.json"] => Seen::Refused,
            outcome => Seen::Wrong(format!("reads are refused, and an update is {outcome:?}")),
        },
        Ok((number, state)) if number == GROUPS && state == states[GROUPS as usize] => {
            match server.update(1001).await {
                Outcome::Done { number: 21, .. } => Seen::Right,
                Outcome::Missing(_) => Seen::Refused,
                outcome => Seen::Wrong(format!("an update is {outcome:?}")),
            }
        }
        Ok((number, _)) => Seen::Wrong(format!("a strict read sees {number}")),
    }
}

/// Removes and damages objects of logs with and without bases, while servers have nothing, a part or all of the log.
/// Prints the results as a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lost_object_goes_unnoticed() {
    let mut failed = Vec::new();
    let mut table = Table::new();
    for (what, bases, trimmed) in [
        ("20 groups", &[][..], 0),
        ("20 groups, bases 8 and 16", &[8, 16][..], 0),
        ("groups 9 to 20, bases 8 and 16", &[8, 16][..], 8),
    ] {
        let template = template(bases).await;
        let group = |number| Name::Group(number).text(EPOCH);
        for number in 1..=trimmed {
            std::fs::remove_file(template.folder.path().join(group(number))).unwrap();
        }
        let template = Arc::new(template);
        let log = template.folder.path();
        let parts = objects(log, "parts");
        let mut lost: Vec<(Harm, Vec<String>)> = vec![(Harm::Removed, vec![])];
        let mut lose = |harm, names: Vec<String>| {
            lost.extend(names.into_iter().map(|name| (harm, vec![name])));
        };
        for harm in [Harm::Removed, Harm::Flipped, Harm::Cut] {
            lose(harm, vec!["log.json".into(), "servers/maker".into()]);
            lose(harm, objects(log, "base"));
            lose(harm, parts.clone());
            match harm {
                Harm::Removed => lose(harm, objects(log, "log")),
                _ => lose(harm, [trimmed + 1, 15, 16, GROUPS].map(group).into()),
            }
        }
        lost.push((Harm::Removed, vec![group(15), group(16), group(18)]));
        for harm in [Harm::Removed, Harm::Flipped, Harm::Cut] {
            if trimmed > 0 {
                // Parts of both bases, the newest first: no usable base is left.
                lost.push((harm, vec![parts[3].clone(), parts[1].clone()]));
            }
        }
        let mut trials = JoinSet::new();
        for (harm, lost) in lost {
            for kind in [Start::Empty, Start::Behind, Start::Ended, Start::Running] {
                if trials.len() >= 8 {
                    note(&mut trials, what, &mut table).await;
                }
                let (template, lost) = (template.clone(), lost.clone());
                trials.spawn(async move {
                    let seen = trial(template, lost.clone(), harm, kind).await;
                    (lost, harm, kind, seen)
                });
            }
        }
        while !trials.is_empty() {
            note(&mut trials, what, &mut table).await;
        }
    }
    for ((what, lost, harm), row) in &table {
        println!("{what:32} {lost:64} {harm:?} {row:?}");
        for (kind, seen) in row {
            let intact = lost.is_empty();
            if matches!(seen, Seen::Wrong(_)) || (intact && *seen != Seen::Right) {
                failed.push(format!("{what}: {lost}: {harm:?}: {kind:?}: {seen:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn note<'a>(
    trials: &mut JoinSet<(Vec<String>, Harm, Start, Seen)>,
    what: &'a str,
    table: &mut Table<'a>,
) {
    if let Some(done) = trials.join_next().await {
        let (lost, harm, kind, seen) = done.unwrap();
        let lost: Vec<&str> = lost.iter().map(|name| short(name)).collect();
        table
            .entry((what, lost.join(", "), harm))
            .or_default()
            .insert(kind, seen);
    }
}

/// Actions of each server, by log, objects and harm.
type Table<'a> = BTreeMap<(&'a str, String, Harm), BTreeMap<Start, Seen>>;

/// The name without the log's id epoch.
fn short(name: &str) -> &str {
    name.split_once('-').map_or(name, |(_, number)| number)
}

/// Entries of many former servers do not delay a start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_entries_do_not_delay_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    let server = Server::empty(folder.path(), "one").await;
    server.read().await.unwrap();
    let usual = begun.elapsed();
    server.handle.stop();
    let servers: PathBuf = folder.path().join("servers");
    for number in 0..10_000 {
        let entry = format!(r#"{{"name":"old-{number}","start":{number}}}"#);
        std::fs::write(servers.join(format!("old-{number}")), entry).unwrap();
    }
    let begun = std::time::Instant::now();
    let server = Server::empty(folder.path(), "two").await;
    server.read().await.unwrap();
    let took = begun.elapsed();
    println!("{usual:?} without entries, {took:?} with 10,000");
    let bucket = Bucket::directory(folder.path(), Limits::default()).unwrap();
    assert!(bucket.list_servers(None).await.unwrap().len() < 100);
}

/// The store that the log began with is lost: a server with an empty folder reports this, and a server that has the
/// store uploads it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_base_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = Bucket::directory(folder.path(), Limits::default()).unwrap();
    bucket.begin(EPOCH, Beginning::Changed).await.unwrap();
    let waits = Server::empty(folder.path(), "waits").await;
    let why = waits.read().await.unwrap_err();
    assert!(why.contains(&Name::Base(0).text(EPOCH)), "{why}");
    // The published snapshot is empty, not the store that the log began with, so even `Any` refuses it.
    assert!(waits.handle.read(Consistency::Any).await.is_err());
    let tiny = Tiny::default();
    *tiny.folder.0.lock().unwrap() = Some(Default::default());
    let server = Server::start(folder.path(), tiny, "first").await.unwrap();
    let name = folder.path().join(Name::Base(0).text(EPOCH));
    until(|| name.exists()).await;
    let other = Server::empty(folder.path(), "empty").await;
    assert_eq!(other.read().await, server.read().await);
    assert_eq!(waits.read_at_last().await, server.read().await);
}

/// A group was lost, and a server that did not know it wrote another one under its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_was_written_again_is_noticed() {
    let template = template(&[]).await;
    let log = template.folder.path();
    let path = |number| log.join(Name::Group(number).text(EPOCH));
    let bytes = std::fs::read(path(15)).unwrap();
    let mut other = Group::read(EPOCH, &bytes).unwrap();
    other.records[0].key = RequestKey(5555);
    std::fs::write(path(15), other.write(EPOCH).unwrap()).unwrap();
    let name = Name::Group(15).text(EPOCH);
    // A server that reads the new group and its successor, and a server that has applied the lost group.
    let server = Server::empty(log, "empty").await;
    let why = server.read().await.unwrap_err();
    assert!(why.contains(&name), "{why}");
    let tiny = saved(log, 15, template.states[15]);
    tiny.folder.0.lock().unwrap().as_mut().unwrap().0.hash =
        Group::read(EPOCH, &bytes).unwrap().hash(EPOCH);
    let server = Server::start(log, tiny, "has").await.unwrap();
    // Group 16 continues the group that the second server has.
    let read = server.read_at_last().await;
    assert_eq!(read, Ok((GROUPS, template.states[GROUPS as usize])));
    let changed = Group::read(EPOCH, &std::fs::read(path(15)).unwrap())
        .unwrap()
        .hash(EPOCH);
    let tiny = saved(log, 15, template.states[15]);
    assert_eq!(
        tiny.folder.0.lock().unwrap().as_ref().unwrap().0.hash,
        changed
    );
    let server = Server::start(log, tiny, "other").await.unwrap();
    let why = server.read().await.unwrap_err();
    assert!(why.contains(&name), "{why}");
    assert!(matches!(server.update(77).await, Outcome::Missing(15)));
}

/// If an evaluation panics, only its update fails, with an error that names the location of the panic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_an_evaluation_is_an_internal_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::empty(folder.path(), "one").await;
    let before = jindou_model::invariant::ended();
    let body = b"\xEE".as_slice();
    let outcome = server.handle.update(RequestKey(1), body.into()).await;
    let Outcome::Refused(report) = outcome else {
        panic!("{outcome:?}");
    };
    let why = String::from_utf8_lossy(&report).into_owned();
    assert!(
        why.contains("a planted panic") && why.contains("store.rs:"),
        "{why}"
    );
    assert!(jindou_model::invariant::ended() > before);
    assert!(matches!(
        server.update(2).await,
        Outcome::Done { number: 1, .. }
    ));
}

/// When a server stops, it writes back the groups that the log has lost since the last audit. If it cannot, it reports
/// that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_is_written_back_at_the_end() {
    for away in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let settings = Settings {
            audit_every: Duration::from_secs(3600),
            ..settings()
        };
        let started = Server::with(settings, &log, Tiny::default(), "one").await;
        let server = started.unwrap();
        for number in 1..=GROUPS {
            server.update(number).await;
        }
        let path = |number| log.join(Name::Group(number).text(EPOCH));
        let before = std::fs::read(path(15)).unwrap();
        for number in [15, 16] {
            std::fs::remove_file(path(number)).unwrap();
        }
        if away {
            std::fs::rename(&log, folder.path().join("away")).unwrap();
        }
        server.handle.stop();
        server.driver.await.unwrap().unwrap();
        let reports = server.tiny.reports.lock().unwrap();
        if away {
            let is_reported =
                |report: &Report| matches!(report, Report::Bucket("the last entry in servers/", _));
            assert!(reports.iter().any(is_reported), "{reports:?}");
            continue;
        }
        for number in [15, 16] {
            let name = Name::Group(number).text(EPOCH);
            assert!(reports.contains(&Report::WrittenBack(name)), "{reports:?}");
        }
        assert_eq!(std::fs::read(path(15)).unwrap(), before);
        let entry = std::fs::read_to_string(log.join("servers/one")).unwrap();
        assert!(entry.contains("\"newest\":20"), "{entry}");
    }
}

/// A lost group that is no longer in memory cannot be written back. The servers of a sharded store then merge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_shards_merge_what_cannot_be_written_back() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let settings = Settings {
        // Twice as many groups are in memory.
        span_groups: 4,
        ..settings()
    };
    let tiny = Tiny {
        shards: vec![0],
        ..Tiny::default()
    };
    let started = Server::with(settings, &log, tiny, "one").await;
    let server = started.unwrap();
    for number in 1..=GROUPS {
        server.update(number).await;
    }
    assert_eq!(server.tiny.merges.load(Ordering::SeqCst), 0);
    for span in std::fs::read_dir(log.join("span")).unwrap() {
        std::fs::remove_file(span.unwrap().path()).unwrap();
    }
    std::fs::remove_file(log.join(Name::Group(3).text(EPOCH))).unwrap();
    until(|| server.tiny.merges.load(Ordering::SeqCst) > 0).await;
    server.handle.stop();
    server.driver.await.unwrap().unwrap();
}

/// No new log begins in a folder that has only parts of bases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_alone_are_no_place_for_a_new_log() {
    let template = template(&[8]).await;
    let log = template.folder.path();
    for folder in ["log", "base", "servers"] {
        std::fs::remove_dir_all(log.join(folder)).unwrap();
    }
    std::fs::remove_file(log.join("log.json")).unwrap();
    let refused = Server::start(log, Tiny::default(), "empty").await;
    let Err(why) = refused else {
        panic!("it began a new log");
    };
    assert!(
        why.contains("log.json is missing") && why.contains("parts/"),
        "{why}"
    );
}
