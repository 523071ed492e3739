//! Databases that follow one log in a directory, as servers on several machines would.

use jindou::parse::{Format, Sources};
use jindou::replica::{self, Bucket, BucketLimits, Consistency, SharedLog};
use jindou::testing::source;
use jindou::{
    Access, Batch, CancelToken, Database, Error, GraphName, LoadOptions, MergeOptions, OpenOptions,
    Progress, RestoreReport, RestoreTo, UpdateOptions,
};
use jindou_store::directory::{BaseLocation, MANIFEST, Manifest};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Loads a store.
fn load(dir: &Path, text: &str) {
    let (options, progress) = (LoadOptions::default(), Progress::default());
    Database::load(dir, &turtle(text), &options, &progress).unwrap();
}

/// The options of a server over a log in a directory. It keeps terms after merges, so that groups can be counted.
fn shared(log: &Path, name: &str) -> SharedLog {
    let bucket = Bucket::directory(log, BucketLimits::default()).unwrap();
    let mut shared = SharedLog::new(bucket, name);
    shared.keeps_terms = true;
    shared
}

fn open_with(shared: SharedLog, folder: &Path) -> jindou::Result<Database> {
    Database::open_with(folder, &OpenOptions::default().with_log(shared))
}

fn open(log: &Path, folder: &Path, name: &str) -> jindou::Result<Database> {
    open_with(shared(log, name), folder)
}

/// As [`open`], for a server that frees terms after merges.
fn open_freeing(log: &Path, folder: &Path, name: &str) -> jindou::Result<Database> {
    let mut shared = shared(log, name);
    shared.keeps_terms = false;
    open_with(shared, folder)
}

/// The result of opening a folder that was closed just now, once it is free.
fn once_free(mut open: impl FnMut() -> jindou::Result<Database>) -> jindou::Result<Database> {
    loop {
        match open() {
            Err(Error::InUse { .. }) => sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
}

/// Waits until a server has everything that was acknowledged.
pub(crate) fn wait(db: &Database) {
    let replica = db.replica().unwrap();
    replica.wait_for(Consistency::Strict).unwrap();
}

pub(crate) fn merge(db: &Database) -> jindou::Result<()> {
    let (options, progress) = (MergeOptions::default(), Progress::default());
    db.merge(&options, &progress).map(drop)
}

/// The quads, in order, once everything that was acknowledged is there.
pub(crate) fn quads(db: &Database) -> Vec<String> {
    if db.replica().is_some() {
        wait(db);
    }
    let text = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answer = db.query(text).unwrap();
    let mut rows: Vec<String> = answer
        .solutions()
        .iter()
        .map(|r| format!("{r:?}"))
        .collect();
    rows.sort_unstable();
    rows
}

pub(crate) fn turtle(text: &str) -> Sources {
    source(text, Format::Turtle)
}

pub(crate) const LOADED: &str =
    "@prefix e: <http://e/> . e:a e:p e:b, e:c . e:b a e:Planet . e:c e:name \"c\"@en .";

/// Changes of all kinds.
pub(crate) fn change(db: &Database, n: usize) -> jindou::Result<(u64, u64, Option<bool>)> {
    let options = UpdateOptions::default();
    let progress = Progress::default();
    let graph = GraphName::Named(format!("http://e/g{}", n % 3));
    let text = format!("<http://e/n{n}> <http://e/q> \"{n}\" .");
    let report = match n % 8 {
        0 => db.update(
            &format!("PREFIX e: <http://e/> INSERT {{ ?s e:seen {n} }} WHERE {{ ?s e:p ?o }}"),
            &options,
        ),
        1 => db.insert(&turtle(&text), &options, &progress),
        2 => db.insert(
            &turtle(&format!("@prefix n{n}: <http://e/n{n}/> . n{n}:s <http://e/p> n{n}:o .")),
            &options,
            &progress,
        ),
        3 => db.update(
            "DELETE { ?s <http://e/seen> ?n } WHERE { ?s <http://e/seen> ?n }; INSERT DATA { GRAPH <http://e/g1> { <http://e/x> <http://e/y> <http://e/z> } }",
            &options,
        ),
        4 => db.clear_graph(&graph, &options),
        5 => {
            let source = Sources::builder()
                .graph(Some(format!("http://e/g{}", n % 3)))
                .text("data.ttl", text.into_bytes(), Format::Turtle);
            db.replace_graph(&graph, &source.build().unwrap(), &options, &progress)
        }
        6 => {
            let mut batch = Batch::new();
            let iri = |text: &str| oxrdf::NamedNode::new_unchecked(text);
            let quad = oxrdf::Quad::new(
                iri("http://e/batch"),
                iri("http://e/p"),
                oxrdf::Literal::from(n as i64),
                oxrdf::GraphName::DefaultGraph,
            );
            batch.insert(quad.as_ref());
            db.apply(&batch, &options)
        }
        _ => loop {
            let mut transaction = db.begin(&options)?;
            transaction.update(&format!("INSERT DATA {{ <http://e/t> <http://e/p> {n} }}"), &options)?;
            transaction.update("DELETE WHERE { <http://e/batch> <http://e/p> ?x }", &options)?;
            match transaction.commit() {
                // Freeing terms after a merge is a change as any other.
                Err(Error::Conflict(_)) => {}
                done => break done,
            }
        },
    }?;
    Ok((report.added, report.removed, report.graph_was_there))
}

/// Makes the same change at a server that has everything and at an oracle, with the same result.
pub(crate) fn change_both(server: &Database, oracle: &Database, n: usize) {
    wait(server);
    let got = change(server, n).unwrap();
    assert_eq!(got, change(oracle, n).unwrap(), "change {n}");
}

#[test]
fn three_servers_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let log = at("log");
    load(&at("one"), LOADED);
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let one = open_freeing(&log, &at("one"), "one").unwrap();
    // It waits for the upload of the first one's store.
    let two = open_freeing(&log, &at("two"), "two").unwrap();
    let mut servers = vec![one, two, open_freeing(&log, &at("three"), "three").unwrap()];
    let names = ["one", "two", "three"];
    for n in 0..48 {
        let server = &servers[n % 3];
        change_both(server, &oracle, n);
        assert!(server.snapshot_number() >= n as u64);
        if n % 5 == 0 {
            let server = &servers[(n + 1) % 3];
            assert_eq!(quads(server), quads(&oracle), "after change {n}");
            assert_eq!(server.prefixes().len(), oracle.prefixes().len());
        }
        if n % 7 == 3 {
            merge(&servers[n % 3]).unwrap();
            assert_eq!(quads(&servers[n % 3]), quads(&oracle));
        }
        if n % 9 == 8 {
            // A server goes and comes back; sometimes its disk is lost.
            let index = n / 9 % 3;
            let name = names[index];
            let gone = servers.remove(index);
            drop(gone);
            let reopened = once_free(|| {
                if n % 2 == 0 {
                    let _ = std::fs::remove_dir_all(at(name));
                }
                open_freeing(&log, &at(name), name)
            });
            let reopened = reopened.unwrap();
            servers.insert(index, reopened);
            assert_eq!(quads(&servers[index]), quads(&oracle), "reopened after {n}");
        }
    }
    // The default graph is one as well.
    let whole =
        turtle("<http://e/default> <http://e/p> 1 . <http://e/a> <http://e/p> <http://e/b> .");
    let options = UpdateOptions::default();
    let mut reports = Vec::new();
    for db in servers.iter().chain([&oracle]) {
        let graph = GraphName::Default;
        let report = db.replace_graph(&graph, &whole, &options, &Progress::default());
        let report = report.unwrap();
        reports.push((report.added, report.removed, report.graph_was_there));
    }
    assert_eq!(reports[0], reports[3]);
    assert_eq!(reports[1], (0, 0, Some(true)));
    assert_eq!(quads(&servers[0]), quads(&oracle));
    let refused = servers[0].update("CREATE GRAPH <http://e/g1>", &UpdateOptions::default());
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let wrong = servers[0].update("INSERT DATA { this is wrong }", &UpdateOptions::default());
    assert!(matches!(wrong, Err(Error::Sparql(_))), "{wrong:?}");
    // The same name, the same answer.
    let options = UpdateOptions::default().with_key("once".to_owned());
    let text = "INSERT DATA { <http://e/once> <http://e/p> 1 }";
    let first = servers[0].update(text, &options).unwrap();
    wait(&servers[1]);
    let again = servers[1].update(text, &options).unwrap();
    assert_eq!((first.added, first.snapshot), (again.added, again.snapshot));
    oracle.update(text, &UpdateOptions::default()).unwrap();
    for server in &servers {
        assert_eq!(quads(server), quads(&oracle));
    }
}

#[test]
fn folders_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["one", "same", "changed"] {
        load(&at(name), LOADED);
    }
    load(&at("other"), "<http://e/other> <http://e/p> 1 .");
    let options = UpdateOptions::default();
    let write = OpenOptions::default().with_access(Access::Write);
    let changed = Database::open_with(at("changed"), &write).unwrap();
    changed
        .update("INSERT DATA { <http://e/s> <http://e/p> 2 }", &options)
        .unwrap();
    drop(changed);
    let one = open(&at("log"), &at("one"), "one").unwrap();
    one.update("INSERT DATA { <http://e/s> <http://e/p> 1 }", &options)
        .unwrap();
    for name in ["changed", "other"] {
        let refused = open(&at("log"), &at(name), name).map(drop).unwrap_err();
        assert!(
            refused.to_string().contains("another store's"),
            "{name}: {refused}"
        );
    }
    // The same data has the same ids.
    let same = open(&at("log"), &at("same"), "same").unwrap();
    assert_eq!(quads(&same), quads(&one));
    // Without the log it is only read.
    drop(same);
    let refused = once_free(|| Database::open_with(at("same"), &write));
    let refused = refused.map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("follows a shared log"),
        "{refused}"
    );
    let read = Database::open(at("same")).unwrap();
    assert!(read.update("CLEAR ALL", &options).is_err());
    // A changed store begins a log of its own, and what its own log had is in it.
    let changed = open(&at("log-2"), &at("changed"), "changed").unwrap();
    assert_eq!(quads(&changed).len(), 5);
    drop(changed);
    let refused = once_free(|| open(&at("log"), &at("changed"), "changed"));
    let refused = refused.map(drop).unwrap_err();
    assert!(refused.to_string().contains("another store's"), "{refused}");
}

#[test]
fn a_store_of_more_than_32_bits_of_snapshots_is_kept_by_servers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    load(&at("one"), LOADED);
    let progress = Progress::default();
    let mut manifest = Manifest::of_store(&at("one")).unwrap();
    let from = u64::from(u32::MAX) - 9;
    manifest.snapshot = from;
    std::fs::write(at("one").join(MANIFEST), manifest.to_text()).unwrap();
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let log = at("log");
    let mut one = open(&log, &at("one"), "one").unwrap();
    let mut two = open(&log, &at("two"), "two").unwrap();
    for n in 0..32 {
        change_both([&one, &two][n % 2], &oracle, n);
        match n {
            5 | 11 | 20 => {
                for server in [&one, &two] {
                    quads(server);
                    merge(server).unwrap();
                }
            }
            8 | 15 | 24 => {
                drop((one, two));
                let again = |name: &str| once_free(|| open(&log, &at(name), name)).unwrap();
                one = again("one");
                two = again("two");
            }
            _ => {}
        }
        for server in [&one, &two] {
            assert_eq!(quads(server), quads(&oracle), "after change {n}");
        }
    }
    for name in ["one", "two"] {
        let place = BaseLocation::find(&at(name)).unwrap();
        let manifest = Manifest::of_store(&place.folder()).unwrap();
        assert!(manifest.holds() > u64::from(u32::MAX), "{name}");
        let note = format!("replica/{}-{}.jd", place.number(), manifest.holds());
        assert!(at(name).join(note).exists(), "{name}");
    }
    drop((one, two));
    let (cancel, log) = (CancelToken::new(), log.to_str().unwrap());
    for (number, to) in [(32, RestoreTo::Newest), (31, RestoreTo::Snapshot(31))] {
        let new = at(&format!("restored-{number}"));
        let report = replica::restore(log, &new, to, &cancel, &progress).unwrap();
        assert_eq!(report.snapshot, number);
        let db = Database::open(&new).unwrap();
        assert!(db.snapshot_number() > from + 24);
        if number == 32 {
            assert_eq!(quads(&db), quads(&oracle));
        }
        assert!(Database::check(&new).unwrap().is_sound());
    }
}

/// A state that the store had: its number, a time at which it was the newest one, its quads.
type State = (u64, u64, Vec<String>);

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Names and times of all files below a folder.
fn files_of(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of(&path));
        } else {
            let written = path.metadata().unwrap().modified().unwrap();
            found.push((path, written));
        }
    }
    found.sort();
    found
}

/// Waits until a folder of the log has this number of objects.
fn wait_for_objects(folder: &Path, count: usize) {
    let end = Instant::now() + Duration::from_secs(30);
    let whole = || {
        let files = files_of(folder);
        let names = files.iter().map(|(path, _)| path.to_string_lossy());
        names.filter(|name| !name.contains('#')).count()
    };
    while whole() < count {
        assert!(Instant::now() < end, "{}", folder.display());
        sleep(Duration::from_millis(20));
    }
}

struct Restores<'a> {
    folder: &'a Path,
    log: PathBuf,
    made: usize,
}

impl Restores<'_> {
    /// A store of a moment. Nothing is left of one that failed.
    fn make(&mut self, to: RestoreTo) -> jindou::Result<(RestoreReport, PathBuf)> {
        self.made += 1;
        let stores = self.folder.join("restored");
        std::fs::create_dir_all(&stores).unwrap();
        let dir = stores.join(self.made.to_string());
        let there = || std::fs::read_dir(&stores).unwrap().count();
        let (before, log) = (there(), self.log.to_str().unwrap());
        let (cancel, progress) = (CancelToken::new(), Progress::default());
        let report = replica::restore(log, &dir, to, &cancel, &progress);
        assert_eq!(there(), before + usize::from(report.is_ok()), "{report:?}");
        Ok((report?, dir))
    }

    fn is(&mut self, to: RestoreTo, (number, _, want): &State) {
        let (report, dir) = self.make(to).unwrap_or_else(|e| panic!("{to:?}: {e}"));
        assert_eq!(
            (report.snapshot, report.quads),
            (*number, want.len() as u64)
        );
        let db = Database::open(&dir).unwrap();
        assert_eq!(&quads(&db), want, "{to:?}");
        drop(db);
        std::fs::remove_dir_all(dir).unwrap();
    }

    fn all_are(&mut self, states: &[State]) {
        for state in states {
            self.is(
                match state.0 % 2 {
                    0 => RestoreTo::Snapshot(state.0),
                    _ => RestoreTo::Time(state.1),
                },
                state,
            );
        }
        self.is(RestoreTo::Newest, states.last().unwrap());
    }

    /// The message with which the restore is refused.
    fn refused(&mut self, to: RestoreTo) -> String {
        match self.make(to) {
            Err(Error::Usage(why)) => why,
            other => panic!("{to:?}: {other:?}"),
        }
    }

    /// True if the restore failed because an object was removed meanwhile.
    fn is_removed(&mut self, to: RestoreTo) -> bool {
        matches!(self.make(to), Err(Error::Conflict(why)) if why.contains("try again"))
    }
}

/// While merges follow one another, every state within `keep` can be restored.
#[test]
fn the_time_that_is_kept_can_be_restored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = folder.join("log");
    load(&folder.join("one"), LOADED);
    let mut shared = shared(&log, "one");
    shared.keeps_terms = false;
    let keep = Duration::from_secs(4);
    shared.settings.keep = keep;
    let one = open_with(shared, &folder.join("one")).unwrap();
    wait_for_objects(&log.join("base"), 1);
    let mut restores = Restores {
        folder,
        log: log.clone(),
        made: 0,
    };
    let began = Instant::now();
    let mut states: Vec<State> = vec![(0, now(), quads(&one))];
    sleep(Duration::from_millis(30));
    let mut checked = 0;
    let mut most = 0;
    while began.elapsed() < keep * 4 {
        for _ in 0..5 {
            let n = states.len();
            let text = format!("INSERT DATA {{ <http://e/n{n}> <http://e/q> {n} }}");
            one.update(&text, &UpdateOptions::default()).unwrap();
            sleep(Duration::from_millis(30));
            states.push((one.snapshot_number(), now(), quads(&one)));
            sleep(Duration::from_millis(30));
        }
        merge(&one).unwrap();
        sleep(Duration::from_millis(100));
        // The oldest state to restore is a second younger than `keep`, since restoring takes some time.
        let from = now() - u64::try_from(keep.as_micros()).unwrap() + 1_000_000;
        let oldest = states.partition_point(|state| state.1 < from);
        for at in [oldest, (oldest + states.len()) / 2] {
            let (number, time, want) = &states[at];
            // The base from which a restore begins may be removed meanwhile; a retry then begins from an older one.
            let mut again = 0;
            let (report, dir) = loop {
                match restores.make(RestoreTo::Time(*time)) {
                    Err(Error::Conflict(_)) if again < 3 => again += 1,
                    made => break made.unwrap(),
                }
            };
            assert_eq!(report.snapshot, *number);
            assert_eq!(&quads(&Database::open(&dir).unwrap()), want);
        }
        checked += 1;
        most = most.max(files_of(&log.join("base")).len());
    }
    assert!(checked > 8, "{checked}");
    // The newest two bases, the newest one older than `keep`, one that will replace it, and one that was just uploaded;
    // one more is tolerated.
    assert!((3..=6).contains(&most), "{most}");
    println!("{checked} times, at most {most} bases");
    // Older groups were trimmed.
    let groups = files_of(&log.join("log")).len();
    assert!(groups < states.len(), "{groups} of {}", states.len());
    restores.refused(RestoreTo::Snapshot(1));
}

fn moments(loaded: bool) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = folder.join("log");
    if loaded {
        load(&folder.join("one"), LOADED);
    }
    let began = now();
    let (one, states) = changed_and_merged(folder, loaded);
    // Without the note that the running server renews.
    let objects = || {
        let mut of = files_of(&log);
        of.retain(|(path, _)| !path.starts_with(log.join("servers")));
        of
    };
    let before = objects();
    let mut restores = Restores {
        folder,
        log: log.clone(),
        made: 0,
    };
    // With a server that runs.
    restores.all_are(&states);
    // What is not there. A time after the end is the end's.
    let why = restores.refused(RestoreTo::Snapshot(23));
    assert!(why.contains("snapshots 0 to 22"), "{why}");
    let why = restores.refused(RestoreTo::Time(began - 1_000_000));
    assert!(why.contains("every time since"), "{why}");
    restores.is(RestoreTo::Time(now()), states.last().unwrap());
    assert_eq!(objects(), before);
    drop(one);

    restores.is_a_store_as_any_other(&states);
    restores.need_spans_or_groups(&states);
    restores.survive_trimming(&states);

    // Not a log, and a place that is taken.
    restores.log = folder.join("nothing");
    restores.refused(RestoreTo::Newest);
    restores.log = folder.join("restored");
    assert!(restores.refused(RestoreTo::Newest).contains("no log"));
    let taken = replica::restore(
        log.to_str().unwrap(),
        folder.join("one"),
        RestoreTo::Newest,
        &CancelToken::new(),
        &Progress::default(),
    );
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
}

/// A server over a new log after 22 changes and two merges, and the state after each change.
fn changed_and_merged(folder: &Path, loaded: bool) -> (Database, Vec<State>) {
    let log = folder.join("log");
    let mut shared = shared(&log, "one");
    shared.settings.span_groups = 4;
    let one = open_with(shared, &folder.join("one")).unwrap();
    let mut bases = usize::from(loaded);
    wait_for_objects(&log.join("base"), bases);
    let pause = || sleep(Duration::from_millis(30));
    let mut states: Vec<State> = Vec::new();
    let mut state = |db: &Database| {
        pause();
        states.push((db.snapshot_number(), now(), quads(db)));
        pause();
    };
    state(&one);
    for n in 0..22 {
        change(&one, n).unwrap();
        state(&one);
        if [8, 16].contains(&n) {
            merge(&one).unwrap();
            bases += 1;
            wait_for_objects(&log.join("base"), bases);
        }
    }
    assert_eq!(states.last().unwrap().0, 22);
    wait_for_objects(&log.join("span"), 5);
    (one, states)
}

impl Restores<'_> {
    /// The object with this number in a folder of the log.
    fn object(&self, name: &str, number: u64) -> PathBuf {
        let of = files_of(&self.log.join(name));
        let number = format!("-{number:016x}");
        let found = of.into_iter().map(|(path, _)| path);
        let found = found.filter(|path| path.to_string_lossy().contains(&number));
        found.collect::<Vec<_>>().remove(0)
    }

    /// A restored store can be changed, begin a log of its own, and be restored from that.
    fn is_a_store_as_any_other(&mut self, states: &[State]) {
        let folder = self.folder;
        let (_, dir) = self.make(RestoreTo::Snapshot(13)).unwrap();
        let write = OpenOptions::default().with_access(Access::Write);
        let db = Database::open_with(&dir, &write).unwrap();
        let text = "INSERT DATA { <http://e/later> <http://e/p> 1 }";
        db.update(text, &UpdateOptions::default()).unwrap();
        let want = quads(&db);
        assert_eq!(want.len(), states[13].2.len() + 1);
        drop(db);
        let first = open(&folder.join("log-2"), &dir, "first").unwrap();
        let second = open(&folder.join("log-2"), &folder.join("second"), "second").unwrap();
        assert_eq!(quads(&first), want);
        assert_eq!(quads(&second), want);
        change(&second, 97).unwrap();
        assert_eq!(quads(&first), quads(&second));
        drop((first, second));
        let log = std::mem::replace(&mut self.log, folder.join("log-2"));
        let (report, _) = self.make(RestoreTo::Newest).unwrap();
        assert_eq!(report.quads, want.len() as u64 + 1);
        self.log = log;
    }

    /// Spans are enough, and so are groups.
    fn need_spans_or_groups(&mut self, states: &[State]) {
        let aside = self.folder.join("aside");
        let whole = self.folder.join("whole");
        let group = self.object("log", 11);
        std::fs::rename(&group, &aside).unwrap();
        self.is(RestoreTo::Snapshot(14), &states[14]);
        for (span, _) in files_of(&self.log.join("span")) {
            let mut bytes = std::fs::read(&span).unwrap();
            bytes[40] ^= 1;
            std::fs::write(&span, bytes).unwrap();
        }
        // No retry mends it.
        let lost = self.make(RestoreTo::Snapshot(14)).unwrap_err();
        let lost = lost.to_string();
        assert!(
            lost.contains("cluster repair") && !lost.contains("try again"),
            "{lost}"
        );
        std::fs::rename(&aside, &group).unwrap();
        self.is(RestoreTo::Snapshot(14), &states[14]);
        let mut bytes = std::fs::read(&group).unwrap();
        bytes[70] ^= 1;
        std::fs::write(&aside, &bytes).unwrap();
        std::fs::rename(&group, &whole).unwrap();
        std::fs::rename(&aside, &group).unwrap();
        let damaged = self.make(RestoreTo::Snapshot(14)).unwrap_err();
        assert!(damaged.to_string().contains("is damaged"), "{damaged}");
        std::fs::rename(&whole, &group).unwrap();
    }

    /// Snapshots before the removed groups are refused, and all others come back.
    fn survive_trimming(&mut self, states: &[State]) {
        // A group before the second newest base that was written after it is not the first of its name.
        let early = self.object("log", 5);
        let written = early.metadata().unwrap().modified().unwrap();
        let touch = |time| {
            let file = std::fs::File::options().append(true).open(&early);
            file.unwrap().set_modified(time).unwrap();
        };
        touch(SystemTime::now());
        assert!(self.is_removed(RestoreTo::Snapshot(6)));
        self.is(RestoreTo::Snapshot(4), &states[4]);
        touch(written);
        self.is(RestoreTo::Snapshot(6), &states[6]);

        // What a server trims.
        for number in 1..=7 {
            std::fs::remove_file(self.object("log", number)).unwrap();
        }
        let why = self.refused(RestoreTo::Snapshot(6));
        assert!(why.contains("snapshots 9 to 22"), "{why}");
        let why = self.refused(RestoreTo::Time(states[8].1));
        assert!(why.contains("snapshots 9 to 22"), "{why}");
        self.all_are(&states[9..]);
        for number in 8..=9 {
            std::fs::remove_file(self.object("log", number)).unwrap();
        }
        self.refused(RestoreTo::Snapshot(8));
        self.is(RestoreTo::Snapshot(9), &states[9]);
        self.is(RestoreTo::Time(states[10].1), &states[10]);
    }
}

#[test]
fn moments_of_a_log_that_begins_empty() {
    moments(false);
}

#[test]
fn moments_of_a_log_that_begins_with_a_store() {
    moments(true);
}
