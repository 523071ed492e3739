//! Servers that each have some shards of one store, over one log in a directory.

use crate::quads;
use crate::replicas::{self, LOADED, change, change_both, merge, turtle, wait};
use crate::updates::{Model, random_request};
use jindou::replica::{self, Bucket, BucketLimits, HeldShards, PeerReads, SharedLog};
use jindou::{
    Answer, CancelToken, Database, Error, LoadOptions, OpenOptions, Progress, QueryOptions,
    RestoreTo, ResultFormat, ResultWriter, ShardMode, Sharding, UpdateOptions, Verify,
};
use jindou_cluster::servers::Members;
use jindou_cluster::shards::ShardRequest;
use jindou_model::Direction;
use jindou_store::shard::{Cluster, open_shards, shard_folder};
use jindou_testing::{Rng, Stopwatch, copy_folder, from_environment};
use oxrdf::Quad;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Servers with numbers and names, their folders, and the log.
pub(crate) struct Servers {
    dir: TempDir,
    shards: u32,
    options: ServerOptions,
    open: Vec<Option<Database>>,
}

/// Options of all servers.
#[derive(Clone)]
pub(crate) struct ServerOptions {
    pub(crate) changes_memory: Option<u64>,
    pub(crate) keep_replaced_bases: Duration,
    /// How the servers read each other's memory.
    pub(crate) reads: PeerReads,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            changes_memory: None,
            keep_replaced_bases: Duration::from_secs(600),
            reads: PeerReads::Off,
        }
    }
}

impl Servers {
    /// Loads a store in shards with blocks of one id, and starts `count` servers, each of which has the files of its
    /// shards alone.
    pub(crate) fn start(text: &str, shards: u32, count: u32, replicas: u32) -> Self {
        Self::start_with(text, [shards, count, replicas], ServerOptions::default())
    }

    pub(crate) fn start_with(
        text: &str,
        [shards, count, replicas]: [u32; 3],
        options: ServerOptions,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let loaded = dir.path().join("loaded");
        let sharding = Sharding::new(shards).with_block_shift(Some(0));
        let load = LoadOptions::default().with_sharding(Some(sharding));
        Database::load(&loaded, &turtle(text), &load, &Progress::default()).unwrap();
        let mut servers = Self {
            dir,
            shards,
            options,
            open: Vec::new(),
        };
        for number in 0..count {
            let own = servers.folder(number);
            std::fs::create_dir_all(&own).unwrap();
            std::fs::copy(loaded.join("cluster.jd"), own.join("cluster.jd")).unwrap();
            for shard in (0..shards).filter(|s| (s % count + count - number) % count < replicas) {
                copy_folder(
                    &loaded.join(shard_folder(shard)),
                    &own.join(shard_folder(shard)),
                );
            }
            servers.open.push(None);
        }
        // Each needs the others.
        std::thread::scope(|scope| {
            let all = (0..count).map(|n| {
                scope.spawn({
                    let servers = &servers;
                    move || servers.server(n, HeldShards::InFolder)
                })
            });
            let all: Vec<_> = all.collect();
            all.into_iter()
                .map(|t| t.join().unwrap().unwrap())
                .collect::<Vec<_>>()
        })
        .into_iter()
        .enumerate()
        .for_each(|(n, db)| servers.open[n] = Some(db));
        servers
    }

    pub(crate) fn folder(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("server-{number}"))
    }

    fn server(&self, number: u32, shards: HeldShards) -> jindou::Result<Database> {
        let log = self.dir.path().join("log");
        let bucket = Bucket::directory(&log, BucketLimits::default()).unwrap();
        let mut log = SharedLog::new(bucket, format!("server-{number}"));
        log.peer_address = Some("127.0.0.1:0".into());
        log.shards = shards;
        log.keep_replaced_bases = self.options.keep_replaced_bases;
        log.peer_reads = self.options.reads.clone();
        log.report = Arc::new(move |text| println!("server-{number}: {text}"));
        let options = OpenOptions::default()
            .with_changes_memory(self.options.changes_memory)
            .with_verify(Verify::Eager);
        Database::open_with(self.folder(number), &options.with_log(log))
    }

    /// A server that has received its shards and the groups since.
    pub(crate) fn joined(&self, number: u32, shards: HeldShards) -> Database {
        let server = self.again(number, &shards);
        let replica = server.replica().unwrap();
        let is_ready = replica.wait_until_ready(Duration::from_secs(60));
        assert!(is_ready, "{:?}", replica.ended());
        // The others read its new certificate within a quarter of a second, or later on a busy machine.
        let begun = Instant::now();
        while replica
            .shard_figures()
            .iter()
            .any(|of| of.holders.is_empty())
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "not connected");
            std::thread::sleep(Duration::from_millis(10));
        }
        for of in replica.shard_figures() {
            let is_named = of.holders.iter().any(|name| name == replica.name());
            assert_eq!(is_named, of.bases > 0, "{of:?}");
        }
        server
    }

    pub(crate) fn of(&self, number: usize) -> &Database {
        self.open[number].as_ref().unwrap()
    }

    pub(crate) fn stop(&mut self, number: usize) {
        self.open[number] = None;
    }

    pub(crate) fn start_again(&mut self, number: usize) {
        self.open[number] = Some(self.again(number as u32, &HeldShards::InFolder));
    }

    /// A server that may have run before: its folder is free a moment after it was closed.
    fn again(&self, number: u32, shards: &HeldShards) -> Database {
        let begun = Instant::now();
        loop {
            match self.server(number, shards.clone()) {
                Ok(server) => return server,
                Err(Error::InUse { .. }) if begun.elapsed() < Duration::from_secs(20) => {}
                Err(e) => panic!("{e}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Database> {
        self.open.iter().flatten()
    }

    /// All servers have the quads of a store.
    pub(crate) fn assert_are(&self, oracle: &Database, when: &str) {
        for server in self.all() {
            assert_eq!(replicas::quads(server), replicas::quads(oracle), "{when}");
        }
    }
}

/// All files of the shard that two folders have in common are the same.
fn assert_same_files(a: &Path, b: &Path) {
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(a), names(b), "{}", a.display());
    for name in names(a) {
        let [one, two] = [a, b].map(|dir| std::fs::read(dir.join(&name)).unwrap());
        assert!(
            one == two,
            "{} in {} and {}",
            name.display(),
            a.display(),
            b.display()
        );
    }
}

#[test]
fn servers_with_some_shards_are_one_store() {
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let mut servers = Servers::start(LOADED, 3, 3, 2);
    for n in 0..48 {
        change_both(servers.of(n % 3), &oracle, n);
        if n % 5 == 0 {
            servers.assert_are(&oracle, &format!("after change {n}"));
        }
        if n % 12 == 7 {
            merge(servers.of(n % 3)).unwrap();
            servers.assert_are(&oracle, &format!("merged after change {n}"));
            for shard in 0..servers.shards {
                let holders = (0..3).map(|s| servers.folder(s).join(shard_folder(shard)));
                let holders: Vec<_> = holders.filter(|dir| dir.exists()).collect();
                assert_same_files(&holders[0], &holders[1]);
            }
        }
        if n % 9 == 8 {
            // Both others have all shards between them.
            let gone = n / 9 % 3;
            servers.stop(gone);
            servers.assert_are(&oracle, &format!("without {gone}, after change {n}"));
            servers.start_again(gone);
            servers.assert_are(&oracle, &format!("{gone} again, after {n}"));
        }
    }
}

/// The number of reads of other servers' memory that a query makes, and its rows.
fn reads_of(server: &Database, query: &str) -> (u64, Vec<String>) {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_profile(true)
        .with_shard_mode(ShardMode::InPlace);
    let mut out = Vec::new();
    let mut answer = ResultWriter::new(&mut out, ResultFormat::Tsv);
    let report = server.run(query, &options, &mut answer).unwrap();
    let said = report.profile.split_once(" reads of other servers' memory");
    let count = said.and_then(|(before, _)| before.rsplit(' ').next());
    let out = String::from_utf8(out).unwrap();
    let mut rows: Vec<String> = out.lines().map(str::to_owned).collect();
    rows.sort();
    (count.map_or(0, |n| n.parse().unwrap()), rows)
}

/// Lists are read from the other server's memory as often after changes of their predicates as before, also over the base
/// of a merge, and the answers are those of a store that has them itself.
#[test]
fn lists_are_read_from_memory_while_the_store_changes() {
    let mut text = String::new();
    for n in 0..400 {
        let _ = writeln!(
            text,
            "<http://e/v{n}> <http://e/p> <http://e/v{}> .",
            n * 7 % 400
        );
        let _ = writeln!(
            text,
            "<http://e/v{n}> <http://e/q> <http://e/v{}> .",
            n * 11 % 400
        );
    }
    let oracle = Database::in_memory_from(&turtle(&text), &UpdateOptions::default()).unwrap();
    let servers = {
        let options = ServerOptions {
            reads: PeerReads::Files,
            ..ServerOptions::default()
        };
        Servers::start_with(&text, [2, 2, 1], options)
    };
    let query = "SELECT * { ?a <http://e/p> ?b . ?b <http://e/q> ?c . ?c <http://e/p> ?d }";
    // Summaries come after the first requests.
    let reads = |server: &Database| {
        let begun = Instant::now();
        loop {
            let (reads, rows) = reads_of(server, query);
            assert_eq!(rows, reads_of(&oracle, query).1);
            if reads > 0 {
                return reads;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is read");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    for server in servers.all() {
        reads(server);
    }
    let settled = |server: &Database| {
        reads(server);
        reads_of(server, query).0
    };
    let before = servers.all().map(settled).collect::<Vec<_>>();
    for n in 0..30 {
        let (a, b) = (n * 13 % 400, n * 17 % 400);
        let update = format!(
            "INSERT DATA {{ <http://e/v{a}> <http://e/p> <http://e/new{n}>, <http://e/v{b}> . <http://e/new{n}> <http://e/q> <http://e/v{a}> }} ; \
             DELETE DATA {{ <http://e/v{b}> <http://e/q> <http://e/v{}> }}",
            b * 11 % 400
        );
        for db in [servers.of(n % 2), &oracle] {
            db.update(&update, &UpdateOptions::default()).unwrap();
        }
    }
    servers.all().for_each(wait);
    let after = servers.all().map(settled).collect::<Vec<_>>();
    for (before, after) in before.iter().zip(&after) {
        assert!(
            after >= before,
            "{before} reads before, {after} after changes"
        );
    }
    merge(servers.of(0)).unwrap();
    for server in servers.all() {
        wait(server);
        assert!(settled(server) > 0);
        assert_eq!(replicas::quads(server), replicas::quads(&oracle));
    }
}

/// Waits until the log has a complete base of at least this group.
fn wait_for_base(servers: &Servers, group: u64) {
    let place = servers.dir.path().join("log");
    let begun = Instant::now();
    loop {
        let contents = replica::inspect(place.to_str().unwrap()).unwrap();
        if contents.bases.iter().any(|base| base.number >= group) {
            return;
        }
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(60), "{:?}", contents.bases);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn shards_come_from_the_log() {
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let mut servers = Servers::start(LOADED, 4, 3, 1);
    wait_for_base(&servers, 0);
    for n in 0..8 {
        change_both(servers.of(n % 3), &oracle, n);
    }
    // Another server takes over two shards, with nothing but the log.
    let fourth = servers.joined(3, HeldShards::Listed(vec![1, 2]));
    assert_eq!(replicas::quads(&fourth), replicas::quads(&oracle));
    servers.open.push(Some(fourth));
    servers.stop(1);
    servers.stop(2);
    let part = HeldShards::Part {
        number: 1,
        of: 2,
        replicas: 2,
    };
    servers.open[1] = Some(servers.joined(1, part.clone()));
    servers.assert_are(&oracle, "with a fourth server");
    for n in 8..12 {
        change_both(servers.of(1), &oracle, n);
    }
    merge(servers.of(0)).unwrap();
    wait_for_base(&servers, 12);
    change_both(servers.of(3), &oracle, 12);
    // A shard that was not merged with the others is received again, also without a choice of shards.
    servers.stop(0);
    let shard = servers.folder(0).join(shard_folder(0));
    std::fs::remove_dir_all(&shard).unwrap();
    copy_folder(
        &servers.dir.path().join("loaded").join(shard_folder(0)),
        &shard,
    );
    servers.open[0] = Some(servers.joined(0, HeldShards::InFolder));
    assert_eq!(replicas::quads(servers.of(0)), replicas::quads(&oracle));
    // So is one that is gone.
    servers.stop(0);
    std::fs::remove_dir_all(&shard).unwrap();
    servers.open[0] = Some(servers.joined(0, HeldShards::InFolder));
    assert!(shard.join(jindou_store::directory::MANIFEST).exists());
    assert_eq!(replicas::quads(servers.of(0)), replicas::quads(&oracle));
    // A moment of the past.
    let restored = servers.dir.path().join("restored");
    let log = servers.dir.path().join("log");
    let back = replica::restore(
        log.to_str().unwrap(),
        &restored,
        RestoreTo::Newest,
        &CancelToken::new(),
        &Progress::default(),
    );
    assert_eq!(back.unwrap().snapshot, servers.of(3).snapshot_number());
    let own = Database::open(&restored).unwrap();
    assert_eq!(replicas::quads(&own), replicas::quads(&oracle));
    // It goes on by itself.
    change(&own, 13).unwrap();
    merge(&own).unwrap();
    drop(own);
    // All disks are lost.
    for number in [0, 1, 3] {
        servers.stop(number);
    }
    for number in 0..4 {
        std::fs::remove_dir_all(servers.folder(number)).unwrap();
    }
    let one = servers.joined(0, part);
    assert_eq!(replicas::quads(&one), replicas::quads(&oracle));
}

#[test]
fn a_shard_with_a_changed_byte_is_received_again() {
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let mut servers = Servers::start(LOADED, 3, 3, 2);
    for n in 0..6 {
        change_both(servers.of(n % 3), &oracle, n);
    }
    merge(servers.of(0)).unwrap();
    wait_for_base(&servers, 6);
    let [own, other] = [0, 2].map(|s| servers.folder(s).join(shard_folder(0)));
    let entries = std::fs::read_dir(&own).unwrap().map(|e| e.unwrap().path());
    let files: Vec<PathBuf> = entries.filter(|p| p.is_file()).collect();
    for path in files {
        servers.stop(0);
        let mut bytes = std::fs::read(&path).unwrap();
        let Some(byte) = bytes.len().checked_sub(1).map(|last| last / 2) else {
            continue;
        };
        bytes[byte] ^= 4;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        servers.open[0] = Some(servers.joined(0, HeldShards::InFolder));
        assert_eq!(replicas::quads(servers.of(0)), replicas::quads(&oracle));
        assert_same_files(&own, &other);
    }
}

/// A random query's number of rows at a server, by fork-join and in place.
fn check_query(server: &Database, model: &Model, rng: &mut Rng, at: &str) {
    let all: Vec<Quad> = model.0.iter().map(|q| q.into_owned()).collect();
    let query = jindou_testing::query(rng, &all);
    let Ok(want) = jindou_testing::answer(&all, &query.oracle) else {
        return;
    };
    for mode in [ShardMode::Fork, ShardMode::InPlace] {
        let options = QueryOptions::default()
            .with_threads(1)
            .with_shard_mode(mode);
        let rows = match server.query_with(&query.text, &options) {
            Ok(Answer::Boolean(_)) => 1,
            Ok(answer) => answer.solutions().len(),
            Err(e) => panic!("{at}, {mode:?}: {e}\n{}", query.text),
        };
        assert_eq!(rows, want.bag().len(), "{at}, {mode:?}: {}", query.text);
    }
}

/// A cursor over two shards that reads its first rows, then the store is merged twice, then it reads the others. Returns
/// their number.
fn rows_over_merges(keep_replaced_bases: Duration) -> jindou::Result<usize> {
    let lines = (0..PAIRS).map(|n| {
        format!(
            "<http://e/a{n}> <http://e/p0> <http://e/b{n}> . <http://e/b{n}> <http://e/p1> {n} .\n"
        )
    });
    let options = ServerOptions {
        keep_replaced_bases,
        ..ServerOptions::default()
    };
    let servers = Servers::start_with(&lines.collect::<String>(), [2, 2, 1], options);
    let in_place = QueryOptions::default()
        .with_threads(1)
        .with_shard_mode(ShardMode::InPlace);
    let text = "SELECT * { ?a <http://e/p0> ?b . ?b <http://e/p1> ?n }";
    let mut cursor = servers.of(0).cursor(text, &in_place)?;
    let mut rows = cursor.next_batch()?.map_or(0, |batch| batch.rows());
    for n in 0..2 {
        change(servers.of(0), n)?;
        merge(servers.of(0))?;
    }
    // Bases that nothing needs any more are released meanwhile.
    std::thread::sleep(Duration::from_millis(500));
    while let Some(batch) = cursor.next_batch()? {
        rows += batch.rows();
    }
    Ok(rows)
}

/// More rows than a cursor reads ahead.
const PAIRS: usize = 60_000;

#[test]
fn a_base_is_kept_while_a_query_reads_it_and_no_longer_than_allowed() {
    assert_eq!(rows_over_merges(Duration::from_secs(600)).unwrap(), PAIRS);
    let error = rows_over_merges(Duration::ZERO).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Shard { .. }), "{text}");
    assert!(text.contains("began before the last merge"), "{text}");
}

/// A server that has one of two shards of one base.
#[test]
fn requests_for_what_a_server_does_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let sharding = Sharding::new(2).with_block_shift(Some(0));
    let load = LoadOptions::default().with_sharding(Some(sharding));
    Database::load(&dir, &turtle(LOADED), &load, &Progress::default()).unwrap();
    let cluster = Cluster::read(&dir).unwrap().unwrap();
    let bases = open_shards(&dir, &cluster).unwrap();
    let members = Members::new("one", None);
    members.serve(0, Arc::new(vec![Some(Arc::clone(&bases[0])), None]));
    let ask = |base: u64, shard: u32, key: u32| {
        let request = ShardRequest::Degrees {
            predicate: 0,
            direction: Direction::Out,
            keys: vec![key],
        };
        let client = members.client(base);
        match client.ask(&[(shard, request)], &CancelToken::new()) {
            Ok(_) => None,
            Err(Error::Shard { shard: of, message }) => Some((of, message)),
            Err(e) => panic!("{e}"),
        }
    };
    let terms = 1..=cluster.terms as u32;
    let refused: Vec<_> = terms.clone().filter_map(|key| ask(0, 0, key)).collect();
    // Half of the ids are the other shard's.
    assert!(
        !refused.is_empty() && refused.len() < terms.count(),
        "{refused:?}"
    );
    for (shard, message) in refused {
        assert_eq!(shard, 0);
        assert!(message.contains("which it does not own"), "{message}");
    }
    for (base, shard) in [(0, 1), (0, 9), (7, 0)] {
        let (of, message) = ask(base, shard, 1).unwrap();
        // The first one waited for a server. Others need not wait again.
        let again = Stopwatch::start();
        for _ in 0..8 {
            ask(base, shard, 1).unwrap();
        }
        assert!(again.elapsed() < Duration::from_secs(5));
        assert_eq!(of, shard);
        assert!(
            message.contains("no other server is known that could hold it"),
            "{message}"
        );
    }
    members.release(0);
    members.serve(3, Arc::new(vec![Some(Arc::clone(&bases[0])), None]));
    let (_, message) = ask(0, 0, 1).unwrap();
    assert!(message.contains("began before the last merge"), "{message}");
}

/// The number of shards that ran a part of a query.
fn parts(server: &Database) -> usize {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_shard_mode(ShardMode::Fork);
    let text = "SELECT * { ?a <http://e/p0> ?b . ?b <http://e/p1> ?c }";
    let plan = server.plan(text, &options).unwrap();
    server.checksum(&plan, &options).unwrap().shards.len()
}

/// Random updates and queries at three servers, with merges in between and servers that stop and start.
fn random_servers(seed: u64, steps: usize) {
    let mut rng = Rng::new(seed);
    let (mut model, mut lines) = (Model::default(), String::new());
    for q in jindou_testing::quads(&mut rng)
        .into_iter()
        .filter(|q| q.graph_name.is_default_graph())
    {
        let _ = writeln!(lines, "{q} .");
        model.0.insert(&q);
    }
    let shards = 2 + rng.below(5) as u32;
    let reads = match seed % 2 {
        0 => PeerReads::Files,
        _ => PeerReads::Off,
    };
    let options = ServerOptions {
        reads,
        ..ServerOptions::default()
    };
    let mut servers = Servers::start_with(&lines, [shards, 3, 2], options);
    let options = UpdateOptions::default().with_threads(1);
    for step in 0..steps {
        let at = format!("seed {seed}, step {step}");
        let text = random_request(&mut rng, &mut model);
        let server = servers.of(rng.below(3));
        let done = server.update(&text, &options);
        done.unwrap_or_else(|e| panic!("{at}: {e}\n{text}"));
        let server = servers.of(rng.below(3));
        wait(server);
        let got = quads::all_quads(server);
        assert!(
            quads::same(&got, &model.0),
            "{at}: {} quads instead of {}\n{text}",
            got.len(),
            model.0.len()
        );
        match rng.below(16) {
            0..8 => check_query(server, &model, &mut rng, &at),
            8 | 9 => merge(server).unwrap_or_else(|e| panic!("{at}: {e}")),
            10 => {
                let gone = rng.below(3);
                servers.stop(gone);
                servers.start_again(gone);
            }
            _ => {}
        }
    }
    // Parts of queries run at other servers, once these know one another.
    let begun = Instant::now();
    for server in servers.all() {
        while parts(server) != shards as usize {
            assert!(begun.elapsed() < Duration::from_secs(20), "no parts ran");
            let text = "INSERT DATA { <http://e/v0> <http://e/p0> <http://e/v1> . <http://e/v1> <http://e/p1> <http://e/v2> }";
            server.update(text, &options).unwrap();
        }
    }
}

#[test]
fn random_updates_and_queries_of_servers_agree_with_a_set_of_quads() {
    for seed in 0..2 {
        random_servers(seed, 60);
    }
}

#[test]
#[ignore = "long: some 10 minutes"]
fn many_random_updates_and_queries_of_servers() {
    let first = from_environment("JINDOU_SEED", 1000);
    for seed in first..first + 20 {
        random_servers(seed, 400);
    }
}
