//! Merges of a store in shards on several servers. Each has some of the shards, and all follow one log: they write the files
//! that one process with all shards writes, whatever they have been through.

use jindou::{MergeOptions, Placement, Progress, Sharding};
use jindou_cluster::shards::{InProcessShards, ShardSession, snapshot_of_shard};
use jindou_cluster::testing::near_of_terms;
use jindou_dictionary::index::Indexes;
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::OtherShards;
use jindou_log::Directory;
use jindou_model::{Direction, Error, FIRST_TAIL_ID, PredicateId, VertexId, term};
use jindou_store::shard::{Cluster, open_shards_with, shard_folder, tidy_shards};
use jindou_store::testing::{TermQuad, store_of_terms};
use jindou_store::{
    Base, ChangeTerm, Changes, DoneRequest, MergeCommitted, MergePlan, Merging, ShardFiles,
    ShardMerge, ShardResult, Snapshot, check,
};
use jindou_testing::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn iri(kind: &str, n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    term::push_iri(&format!("http://e/{kind}{n}"), &mut out);
    out
}

/// Few terms at first, and more and more of them.
fn quad(rng: &mut Rng, terms: usize) -> TermQuad {
    let (s, o) = (rng.below(terms), rng.below(terms));
    let graph = match rng.chance(40) {
        true => iri("v", rng.below(6)),
        false => Vec::new(),
    };
    match rng.chance(30) {
        true => [iri("v", s), term::rdf_type(), iri("c", rng.below(4)), graph],
        false => [
            iri("v", s),
            iri("p", rng.below(2 + terms / 8)),
            iri("v", o),
            graph,
        ],
    }
}

fn copy(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let to = to.join(&name);
        match entry.file_type().unwrap().is_dir() {
            true if is_wanted(&name) => copy(&entry.path(), &to, is_wanted),
            true => {}
            false => {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = files.filter(|e| e.file_type().unwrap().is_file());
    files
        .map(|e| {
            let name = e.file_name().into_string().unwrap();
            (name, std::fs::read(e.path()).unwrap())
        })
        .collect()
}

/// Number of terms that the first transaction adds.
const FILLED: usize = 1010;

/// One process with some shards.
struct Server {
    dir: PathBuf,
    shards: Vec<u32>,
    bases: Vec<Option<Arc<Base>>>,
    head: Snapshot,
}

/// Open folders of a server.
struct Folders {
    root: Directory,
    shards: Vec<Option<Directory>>,
}

impl Folders {
    fn files<'f>(&'f self, dir: &'f Path) -> ShardFiles<'f> {
        let shards = self.shards.iter();
        ShardFiles {
            dir,
            root: &self.root,
            shards: shards.map(|f| f.as_ref().map(|f| f as _)).collect(),
        }
    }
}

impl Server {
    /// Opens the shards in a directory, over other servers' bases of the same merge.
    fn open(dir: &Path, shards: &[u32], others: &[Arc<Base>]) -> Self {
        let cluster = Cluster::read(dir).unwrap().unwrap();
        tidy_shards(dir, &cluster, shards).unwrap();
        let bases = open_shards_with(dir, &cluster, shards, &Indexes::new()).unwrap();
        let own = bases[shards[0] as usize].clone().unwrap();
        let near = InProcessShards::new(others.to_vec());
        Self {
            dir: dir.to_owned(),
            shards: shards.to_vec(),
            bases,
            head: snapshot_of_shard(own, Arc::new(near)).unwrap(),
        }
    }

    fn follow(&mut self, log: &[Vec<u8>]) {
        for record in &log[self.head.number() as usize..] {
            self.head = self.head.replay(record).unwrap();
        }
    }

    fn folders(&self) -> Folders {
        let of = |s: u32| {
            let here = self.shards.contains(&s);
            here.then(|| Directory::open(self.dir.join(shard_folder(s))).unwrap())
        };
        Folders {
            root: Directory::open(&self.dir).unwrap(),
            shards: (0..self.bases.len() as u32).map(of).collect(),
        }
    }

    fn write(&self, at: &Snapshot, plan: MergePlan, rng: &mut Rng) -> ShardMerge {
        let options = MergeOptions::default().with_threads(1 + rng.below(3));
        let folders = self.folders();
        let files = folders.files(&self.dir);
        let progress = Progress::default();
        ShardMerge::write(&files, at, &self.bases, plan, &options, &progress).unwrap()
    }

    fn finish(&self, merge: ShardMerge, committed: &MergeCommitted) -> Result<Merging, Error> {
        let folders = self.folders();
        let files = folders.files(&self.dir);
        merge.finish(&files, committed, &MergeOptions::default())
    }

    /// Moves to the bases of a merge.
    fn rebase(&mut self, merging: &Merging, others: &[Arc<Base>]) {
        let near = Arc::new(InProcessShards::new(others.to_vec()));
        let session = ShardSession::new(Arc::clone(merging.base()), near).unwrap();
        let others: Arc<dyn OtherShards> = Arc::new(session);
        self.head = merging.rebase_shards(&self.head, others).unwrap();
        self.bases = merging.bases().to_vec();
        let folders = self.folders();
        merging.remove_replaced_in(&folders.files(&self.dir).shards);
    }
}

/// All that queries and plans see, with ids.
fn seen(s: &Snapshot) -> String {
    let mut quads = BTreeSet::new();
    for p in (0..s.predicate_count()).map(PredicateId) {
        let view = s.edges(p, Direction::Out);
        let mut keys = vec![];
        view.candidate_keys(GraphScope::Union, &mut keys);
        for key in keys {
            view.for_each(key, GraphScope::Union, |n, g| {
                quads.insert([g, p.0, key, n]);
            });
        }
    }
    let counts: Vec<_> = (0..s.predicate_count())
        .map(|p| s.predicate_statistics(PredicateId(p)))
        .collect();
    let mut classes = s.classes();
    classes.sort_unstable();
    let runs: Vec<_> = classes
        .iter()
        .map(|c| s.class_intervals(VertexId(c.0)))
        .collect();
    let graphs = s.named_graphs();
    s.check_shards().unwrap();
    let others = (s.number(), s.quads(), s.subjects(), s.open_merge());
    let ids: Vec<u32> = (0..s.tail().len()).map(|n| FIRST_TAIL_ID + n).collect();
    let mut decoding = s.vocabulary().decoding();
    let mut tail = vec![];
    for ids in ids.chunks(100) {
        decoding.prefetch(ids);
        tail.extend(
            ids.iter()
                .map(|&id| decoding.term(VertexId(id)).map(<[u8]>::to_vec)),
        );
    }
    s.check_shards().unwrap();
    let known: Vec<&[u8]> = tail.iter().flatten().map(Vec::as_slice).collect();
    let mut found = vec![];
    s.vocabulary().lookup_many(&known, &mut found);
    for (&id, term) in ids.iter().zip(&tail) {
        assert_eq!(s.is_known(id), term.is_some());
    }
    let assigned = ids.iter().zip(&tail).filter(|(_, term)| term.is_some());
    assert!(assigned.map(|(id, _)| id).eq(&found));
    let shared: Vec<u32> = s.tail().shared().collect();
    let free: Vec<[u32; 2]> = s.tail().free_runs().collect();
    format!(
        "{tail:?} {shared:?} {free:?} {others:?} {quads:?} {counts:?} {classes:?} {runs:?} {graphs:?}"
    )
}

fn quads_of(s: &Snapshot) -> BTreeSet<TermQuad> {
    let mut names: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut name = |v: u32| {
        let term = || {
            let mut out = vec![];
            assert!(v == 0 || s.term(VertexId(v), &mut out));
            out
        };
        names.entry(v).or_insert_with(term).clone()
    };
    let mut out = BTreeSet::new();
    for p in (0..s.predicate_count()).map(PredicateId) {
        let view = s.edges(p, Direction::In);
        let mut keys = vec![];
        view.candidate_keys(GraphScope::Union, &mut keys);
        for key in keys {
            view.for_each(key, GraphScope::Union, |n, g| {
                out.insert([name(n), name(s.vertex_of(p).0), name(key), name(g)]);
            });
        }
    }
    s.check_shards().unwrap();
    out
}

/// A record, sometimes with the request that it did.
fn with_request(rng: &mut Rng, after: &Snapshot, mut record: Vec<u8>) -> Vec<u8> {
    if rng.chance(50) {
        let request = DoneRequest {
            key: after.number().into(),
            ..DoneRequest::default()
        };
        record.extend(after.apply_request(&request, true).unwrap().1);
    }
    record
}

fn results_of(merge: &ShardMerge) -> Vec<(u32, ShardResult)> {
    merge.results().map(|(s, r)| (s, r.clone())).collect()
}

struct Service {
    _folder: tempfile::TempDir,
    /// The first has all shards, and merges as one process does.
    servers: Vec<Server>,
    /// The bases of the present merge.
    bases: Vec<Arc<Base>>,
    log: Vec<Vec<u8>>,
    truth: BTreeSet<TermQuad>,
    /// Quads that are never removed.
    filled: BTreeSet<TermQuad>,
    terms: usize,
    freed: u32,
    /// Sum of the terms whose text servers did not have when they were compared.
    elsewhere: u64,
}

impl Service {
    fn new(seed: u64, rng: &mut Rng) -> Self {
        let shards = 2 + (seed % 4) as u32;
        let placement = rng.one(&[Placement::Hash, Placement::Range]);
        let sharding = Sharding::new(shards).with_placement(placement);
        let truth: BTreeSet<TermQuad> = (0..rng.below(40)).map(|_| quad(rng, 10)).collect();
        let quads: Vec<TermQuad> = truth.iter().cloned().collect();
        let (folder, near) = near_of_terms(&quads, sharding.with_block_shift(Some(0)));
        let bases = near.unwrap().shards().to_vec();
        let loaded = folder.path().join("store");
        let count = 2 + rng.below(2);
        let mut held: Vec<Vec<u32>> = vec![(0..shards).collect(); 1];
        // Each shard is on one server or on two.
        held.extend((0..count).map(|server| {
            let of = |s: usize| (s + seed as usize) % count;
            let has = |&s: &u32| of(s as usize) == server || rng.chance(40);
            (0..shards).filter(has).collect()
        }));
        held.retain(|shards| !shards.is_empty());
        let servers = (0..).zip(&held).map(|(i, shards)| {
            let dir = folder.path().join(format!("server-{i}"));
            let folders: Vec<String> = shards.iter().map(|&s| shard_folder(s)).collect();
            copy(&loaded, &dir, &|name| folders.iter().any(|f| f == name));
            Server::open(&dir, shards, &bases)
        });
        let mut service = Self {
            servers: servers.collect(),
            _folder: folder,
            bases,
            log: Vec::new(),
            truth,
            filled: BTreeSet::new(),
            terms: 10,
            freed: 0,
            elsewhere: 0,
        };
        if seed % 4 == 1 {
            service.fill();
        }
        service
    }

    /// A transaction with nearly as many new terms as the first shard owns, so that later ones are of several shards.
    fn fill(&mut self) {
        let mut changes = Changes::new();
        for n in 0..FILLED / 2 {
            let quad = [iri("f", 2 * n), iri("p", 0), iri("f", 2 * n + 1), vec![]];
            let [s, p, o] = [0, 1, 2].map(|i| ChangeTerm::Bytes(&quad[i]));
            changes.insert(s, p, o, None);
            self.filled.insert(quad);
        }
        let server = &mut self.servers[0];
        let applied = server.head.apply(&changes, 1).unwrap();
        server.head = applied.snapshot;
        self.log.push(applied.record);
    }

    /// Some transactions, each evaluated by any server.
    fn change(&mut self, rng: &mut Rng, count: usize) {
        for _ in 0..count {
            let writer = rng.below(self.servers.len());
            self.servers[writer].follow(&self.log);
            let mut changes = Changes::new();
            for _ in 0..rng.below(8) {
                self.terms += usize::from(rng.chance(20));
                // Half of the removals are of quads that are there.
                let at = rng.below(self.truth.len().max(1));
                let known = self.truth.iter().nth(at).cloned();
                if let Some(known) = known.as_ref().filter(|_| rng.chance(10)) {
                    self.forget(&mut changes, &known[2]);
                    continue;
                }
                let insert = rng.chance(55);
                let quad = match known.filter(|_| !insert && rng.chance(50)) {
                    Some(known) => known,
                    None => quad(rng, self.terms),
                };
                let [s, p, o] = [0, 1, 2].map(|i| ChangeTerm::Bytes(&quad[i]));
                let g = (!quad[3].is_empty()).then(|| ChangeTerm::Bytes(&quad[3]));
                match insert {
                    true => changes.insert(s, p, o, g),
                    false => changes.remove(s, p, o, g),
                }
                match insert {
                    true => self.truth.insert(quad),
                    false => self.truth.remove(&quad),
                };
            }
            let server = &mut self.servers[writer];
            let applied = server.head.apply(&changes, 1).unwrap();
            server.head = applied.snapshot;
            self.log.push(applied.record);
            if rng.chance(15) {
                self.free(writer);
            }
        }
    }

    /// Removes all quads that use a term.
    fn forget(&mut self, changes: &mut Changes, term: &[u8]) {
        self.truth.retain(|quad| {
            let uses = quad.iter().any(|t| t == term);
            if uses {
                let [s, p, o] = [0, 1, 2].map(|i| ChangeTerm::Bytes(&quad[i]));
                let g = (!quad[3].is_empty()).then(|| ChangeTerm::Bytes(&quad[3]));
                changes.remove(s, p, o, g);
            }
            !uses
        });
    }

    /// A server that has followed the log frees the terms that no quad uses.
    fn free(&mut self, server: usize) {
        for part in self.servers[server].head.unused_terms() {
            let server = &mut self.servers[server];
            let Some((next, record)) = server.head.free_terms(&part).unwrap() else {
                continue;
            };
            self.freed += next.tail().free_count() - server.head.tail().free_count();
            server.head = next;
            self.log.push(record);
        }
    }

    fn follow(&mut self) {
        let log = &self.log;
        self.servers.iter_mut().for_each(|s| s.follow(log));
    }

    /// Everything is the same on all servers, and right.
    fn compare(&mut self) {
        self.follow();
        let elsewhere = |s: &Server| u64::from(s.head.tail().elsewhere_count());
        self.elsewhere += self.servers.iter().map(elsewhere).sum::<u64>();
        let all = &self.servers[0];
        let want = seen(&all.head);
        let truth: BTreeSet<_> = self.truth.union(&self.filled).cloned().collect();
        assert_eq!(quads_of(&all.head), truth);
        for server in &self.servers[1..] {
            assert_eq!(seen(&server.head), want);
        }
    }

    fn restart(&mut self, server: usize) {
        let Server { dir, shards, .. } = &self.servers[server];
        self.servers[server] = Server::open(&dir.clone(), &shards.clone(), &self.bases);
    }

    /// A merge of all shards at one snapshot.
    fn merge(&mut self, rng: &mut Rng) {
        let generations = 1 + rng.below(4);
        let writer = rng.below(self.servers.len());
        self.follow();
        let head = &self.servers[writer].head;
        let plan = MergePlan::next(head.base(), generations);
        let (open, record) = head.start_merge(plan).unwrap().unwrap();
        assert_eq!(open.open_merge().map(|o| o.plan), Some(plan));
        assert!(open.start_merge(plan).unwrap().is_none());
        self.log.push(with_request(rng, &open, record));
        let more = rng.below(3);
        self.change(rng, more);
        self.follow();
        let merged = self.log.len() as u64;
        let at: Vec<Snapshot> = self.servers.iter().map(|s| s.head.clone()).collect();
        let more = rng.below(4);
        self.change(rng, more);
        let mut merges: Vec<Option<ShardMerge>> = vec![None];
        for (i, at) in at.iter().enumerate().skip(1) {
            let mut merge = self.servers[i].write(at, plan, rng);
            if rng.chance(30) {
                merge = self.write_again(rng, i, merge, (merged, plan));
            }
            merges.push(Some(merge));
            let more = rng.below(2);
            self.change(rng, more);
        }
        let committed = self.results(merged, &merges);
        let all = &self.servers[0];
        let folders = all.folders();
        let options = MergeOptions::default().with_generations(generations);
        let files = folders.files(&all.dir);
        let alone =
            Merging::write_shards(&files, &at[0], &all.bases, &options, &Progress::default());
        let mut mergings = vec![alone.unwrap()];
        for (server, merge) in self.servers.iter().zip(&mut merges).skip(1) {
            let merge = merge.take().unwrap();
            mergings.push(server.finish(merge, &committed).unwrap());
        }
        self.commit(rng, &committed, &mergings);
        self.compare_files();
    }

    /// A server dies between the two phases, and begins again.
    fn write_again(
        &mut self,
        rng: &mut Rng,
        server: usize,
        died: ShardMerge,
        (merged, plan): (u64, MergePlan),
    ) -> ShardMerge {
        assert_eq!(died.merged(), merged);
        let before = results_of(&died);
        drop(died);
        self.restart(server);
        let server = &mut self.servers[server];
        server.follow(&self.log[..merged as usize]);
        let again = server.write(&server.head, plan, rng);
        assert_eq!(results_of(&again), before);
        again
    }

    /// The results of all shards, which are the same on all servers that have a shard.
    fn results(&self, merged: u64, merges: &[Option<ShardMerge>]) -> MergeCommitted {
        let mut shards: BTreeMap<u32, ShardResult> = BTreeMap::new();
        for (number, result) in merges.iter().flatten().flat_map(ShardMerge::results) {
            let known = shards.entry(number).or_insert_with(|| result.clone());
            assert_eq!(known, result);
        }
        assert_eq!(shards.len(), self.bases.len());
        MergeCommitted {
            merged,
            shards: shards.into_values().collect(),
        }
    }

    fn commit(&mut self, rng: &mut Rng, committed: &MergeCommitted, mergings: &[Merging]) {
        for base in mergings.iter().flat_map(Merging::bases).flatten() {
            // The last server that has a shard.
            self.bases[base.own_data().unwrap().number() as usize] = Arc::clone(base);
        }
        let before = self.servers[0].head.clone();
        for (i, merging) in mergings.iter().enumerate() {
            match i > 0 && rng.chance(30) {
                true => self.restart(i),
                false => self.servers[i].rebase(merging, &self.bases),
            }
            // Others are at most as far as the log.
            if rng.chance(50) {
                self.servers[i].follow(&self.log);
            }
        }
        let more = rng.below(3);
        self.change(rng, more);
        self.compare();
        let writer = rng.below(self.servers.len());
        let (next, record) = self.servers[writer].head.commit_merge(committed).unwrap();
        assert_eq!(next.open_merge(), None);
        assert_eq!(
            MergeCommitted::of_record(&record).unwrap().as_ref(),
            Some(committed)
        );
        let mut old = before;
        for record in &self.log[old.number() as usize..] {
            old = old.replay(record).unwrap();
        }
        // The previous base is not enough for a server, and a store with a log of its own keeps its base.
        assert!(matches!(
            old.commit_merge(committed),
            Err(Error::Conflict(_))
        ));
        let alone = old.replay(&record).unwrap();
        assert_eq!((alone.number(), alone.open_merge()), (next.number(), None));
        let record = with_request(rng, &next, record);
        self.log.push(record);
        self.compare();
        assert_eq!(self.servers[0].head.open_merge(), None);
    }

    fn compare_files(&self) {
        let all = &self.servers[0];
        let report = check(&all.dir).unwrap();
        assert!(report.is_sound(), "{:?}", report.damages);
        let read = |server: &Server| {
            let cluster = Cluster::read(&server.dir).unwrap().unwrap();
            open_shards_with(&server.dir, &cluster, &server.shards, &Indexes::new()).unwrap()
        };
        let want = read(all);
        for server in &self.servers[1..] {
            assert!(contents(&server.dir) == contents(&all.dir));
            for (s, base) in read(server).iter().enumerate() {
                let Some(base) = base else {
                    continue;
                };
                let folder = shard_folder(s as u32);
                let [got, want_files] = [server, all].map(|x| contents(&x.dir.join(&folder)));
                assert!(got.keys().eq(want_files.keys()), "{:?}", got.keys());
                for (name, bytes) in &got {
                    assert!(want_files[name] == *bytes, "{folder}/{name}");
                }
                let merged = base.own_data().unwrap().merged_terms();
                for n in 0..merged.len() {
                    let id = FIRST_TAIL_ID + n;
                    let owner = (n >> 10) % self.bases.len() as u32;
                    let is_here = server.shards.contains(&owner) || merged.shared().any(|s| s == n);
                    let has_text = merged.term(VertexId(id)).is_some();
                    assert_eq!(has_text, is_here && merged.is_assigned(VertexId(id)), "{n}");
                }
                let want = want[s].as_ref().unwrap().statistics();
                assert_eq!(format!("{:?}", base.statistics()), format!("{want:?}"));
            }
        }
    }
}

#[test]
fn servers_of_shards_write_the_files_of_one_process() {
    many_merges(8);
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn many_servers_of_shards_write_the_files_of_one_process() {
    many_merges(200);
}

fn many_merges(seeds: u64) {
    let (mut freed, mut elsewhere) = (0, 0);
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut service = Service::new(seed, &mut rng);
        for _ in 0..4 {
            let count = 1 + rng.below(8);
            service.change(&mut rng, count);
            if rng.chance(40) {
                let server = rng.below(service.servers.len());
                service.restart(server);
            }
            service.compare();
            service.merge(&mut rng);
            service.free(0);
            service.compare();
        }
        freed += service.freed;
        elsewhere += service.elsewhere;
    }
    assert!(elsewhere > 100 * seeds, "{elsewhere}");
    assert!(freed > 3 * seeds as u32, "{freed}");
}

/// Threads in the background write merges.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<ShardMerge>();
};

/// A service with one open merge, which all servers have written.
fn with_open_merge(seed: u64) -> (Service, MergePlan, Vec<ShardMerge>, MergeCommitted) {
    let mut rng = Rng::new(seed);
    let mut service = Service::new(seed, &mut rng);
    service.change(&mut rng, 12);
    service.follow();
    let head = &service.servers[0].head;
    let plan = MergePlan::next(head.base(), 8);
    let (_, record) = head.start_merge(plan).unwrap().unwrap();
    service.log.push(record);
    service.follow();
    let servers = service.servers.iter();
    let merges: Vec<_> = servers
        .map(|s| Some(s.write(&s.head, plan, &mut rng)))
        .collect();
    let committed = service.results(service.log.len() as u64, &merges);
    (
        service,
        plan,
        merges.into_iter().flatten().collect(),
        committed,
    )
}

#[test]
fn damaged_statistics_and_other_merges_are_refused() {
    let mut refused = 0;
    for seed in 0..12 {
        let (service, plan, merges, committed) = with_open_merge(seed);
        let mut rng = Rng::new(seed);
        for (server, mut merge) in service.servers.iter().zip(merges).skip(1) {
            let before = contents(&server.dir);
            let results = results_of(&merge);
            for _ in 0..20 {
                let mut bad = committed.clone();
                let at = rng.below(bad.shards.len());
                match rng.below(4) {
                    0 => bad.merged += 1,
                    1 => drop(bad.shards.pop()),
                    2 => bad.shards[at].hash ^= 1,
                    _ => {
                        let bytes = &mut bad.shards[at].statistics;
                        let byte = rng.below(bytes.len());
                        match rng.chance(30) {
                            true => bytes.truncate(byte),
                            false => bytes[byte] ^= 1 << rng.below(8),
                        }
                    }
                }
                let is_held = server.shards.contains(&(at as u32));
                match server.finish(merge, &bad) {
                    Err(Error::Damaged { .. }) => refused += 1,
                    Err(e) => panic!("{e}"),
                    // Other numbers of another server's shard, which may be right as far as this server knows.
                    Ok(_) => {
                        assert!(!is_held);
                        break;
                    }
                }
                assert_eq!(contents(&server.dir), before);
                merge = server.write(&server.head, plan, &mut rng);
                assert_eq!(results_of(&merge), results);
                if is_held && rng.chance(20) {
                    server.finish(merge, &committed).unwrap();
                    break;
                }
            }
        }
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn records_of_merges_are_refused_where_they_do_not_belong() {
    let (service, plan, merges, committed) = with_open_merge(5);
    let open = &service.servers[0].head;
    let started = service.log.last().unwrap();
    let is_damaged = |r: Result<Snapshot, Error>| matches!(r, Err(Error::Damaged { .. }));
    // The base of the merge is needed.
    assert!(matches!(
        open.commit_merge(&committed),
        Err(Error::Conflict(_))
    ));
    let merging = service.servers[0].finish(merges.into_iter().next().unwrap(), &committed);
    let merging = merging.unwrap();
    let bases: Vec<Arc<Base>> = merging.bases().iter().flatten().cloned().collect();
    let near = Arc::new(InProcessShards::new(bases));
    let session = ShardSession::new(Arc::clone(merging.base()), near).unwrap();
    let over = merging.rebase_shards(open, Arc::new(session)).unwrap();
    let (done, record) = over.commit_merge(&committed).unwrap();
    for length in 0..record.len() {
        assert!(over.replay(&record[..length]).is_err());
        let _ = MergeCommitted::of_record(&record[..length]);
        let mut bad = record.clone();
        bad[length] ^= 1 << (length % 8);
        let _ = (
            over.replay(&bad).is_ok(),
            MergeCommitted::of_record(&bad).is_ok(),
        );
    }
    let others = [
        MergeCommitted {
            merged: 0,
            ..committed.clone()
        },
        MergeCommitted {
            merged: open.number() + 1,
            ..committed.clone()
        },
        MergeCommitted {
            shards: Vec::new(),
            ..committed.clone()
        },
    ];
    for other in others {
        assert!(is_damaged(over.commit_merge(&other).map(|r| r.0)));
    }
    assert!(matches!(done.start_merge(plan), Err(Error::Usage(_))));
    assert!(is_damaged(done.commit_merge(&committed).map(|r| r.0)));
    // A store that is not sharded has neither.
    let (_folder, base) = store_of_terms(&[]);
    let mut whole = Snapshot::of_base(base);
    assert!(matches!(
        whole.start_merge(plan),
        Err(Error::Unsupported(_))
    ));
    while whole.number() + 1 < service.log.len() as u64 {
        whole = whole.apply(&Changes::new(), 1).unwrap().snapshot;
    }
    assert!(is_damaged(whole.replay(started)));
    whole = whole.apply(&Changes::new(), 1).unwrap().snapshot;
    assert!(is_damaged(whole.replay(&record)));
}
