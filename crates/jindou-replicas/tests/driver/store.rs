//! The simulator's store as an [`Application`], with a folder in memory that survives a killed driver.

use jindou_model::CancelToken;
use jindou_replicas::simulate::{EPOCH, State};
use jindou_replicas::{
    Application, Base, BaseFiles, Blob, Evaluated, Group, Incoming, Local, Report, RequestKey,
};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Id epoch of the loaded store.
pub const LOADED: u64 = 77;

#[derive(Clone, Default, Debug)]
pub struct Folder(pub Arc<Mutex<Option<(Base, State)>>>);

#[derive(Clone, Default, Debug)]
pub struct Tiny {
    pub folder: Folder,
    pub published: Arc<Mutex<(u64, State)>>,
    pub reports: Arc<Mutex<Vec<Report>>>,
    /// Duration of each evaluation.
    pub slow: Arc<Mutex<std::time::Duration>>,
    /// While true, reads of a base's file block.
    pub files_wait: Arc<AtomicBool>,
    /// Shards of the store; it is merged by all servers if there are some.
    pub shards: Vec<u32>,
    /// Number of merges by all servers that were asked for.
    pub merges: Arc<AtomicU64>,
}

impl Application for Tiny {
    type Snapshot = State;

    fn open(&self) -> io::Result<Local<State>> {
        Ok(match &*self.folder.0.lock().unwrap() {
            None => Local::Empty,
            Some((base, state)) if base.number == 0 => Local::Other {
                loaded: Some(LOADED),
                begins: EPOCH,
                snapshot: *state,
            },
            Some((base, state)) => Local::Following {
                log: EPOCH,
                base: base.clone(),
                snapshot: *state,
            },
        })
    }

    fn empty(&self, _: Option<u64>) -> io::Result<State> {
        Ok(State::default())
    }

    fn follow(&self, log: u64) -> io::Result<()> {
        assert_eq!(log, EPOCH);
        Ok(())
    }

    fn evaluate(
        &self,
        head: &State,
        key: RequestKey,
        body: &Blob,
        cancel: &CancelToken,
    ) -> Evaluated<State> {
        assert_ne!(body.first(), Some(&0xEE), "a planted panic");
        let slow = *self.slow.lock().unwrap();
        let end = std::time::Instant::now() + slow;
        while std::time::Instant::now() < end && !cancel.is_cancelled() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        match head.evaluate(key, body) {
            None => Evaluated::Refused(b"refused".as_slice().into()),
            Some(record) => {
                let mut snapshot = *head;
                snapshot.apply(&record);
                Evaluated::Record {
                    snapshot,
                    bytes: record.bytes,
                    report: record.report,
                }
            }
        }
    }

    fn apply(&self, head: &State, group: &Group) -> io::Result<State> {
        let mut state = *head;
        for record in &group.records {
            state.apply(record);
        }
        Ok(state)
    }

    fn publish(&self, number: u64, snapshot: &State) {
        *self.published.lock().unwrap() = (number, *snapshot);
    }

    fn save(&self, base: &Base, snapshot: &State) -> io::Result<()> {
        *self.folder.0.lock().unwrap() = Some((base.clone(), *snapshot));
        Ok(())
    }

    fn shards(&self) -> Vec<u32> {
        self.shards.clone()
    }

    fn merge_everywhere(&self) -> io::Result<()> {
        self.merges.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn rebase(&self, snapshot: &State) -> io::Result<State> {
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(*snapshot)
    }

    fn files(&self, number: u64) -> io::Result<Option<Arc<dyn BaseFiles>>> {
        let folder = self.folder.0.lock().unwrap();
        let there = folder.as_ref().filter(|(base, _)| base.number == number);
        let wait = &self.files_wait;
        Ok(there
            .map(|(_, state)| Arc::new(OneFile(state.bytes(), wait.clone())) as Arc<dyn BaseFiles>))
    }

    fn receive(&self, log: u64) -> io::Result<Box<dyn Incoming<State>>> {
        assert_eq!(log, EPOCH);
        Ok(Box::new(Received(Vec::new(), self.folder.clone())))
    }

    fn failed(&self, error: &jindou_model::Error) -> Blob {
        error.to_string().into_bytes().into()
    }

    fn report(&self, report: Report) {
        self.reports.lock().unwrap().push(report);
    }
}

/// A base of two files: the encoded state, whose reads block while the flag is true, and an empty file.
struct OneFile([u8; 48], Arc<AtomicBool>);

impl BaseFiles for OneFile {
    fn files(&self) -> Vec<(String, u64)> {
        vec![("empty".into(), 0), ("state".into(), 48)]
    }

    fn read(&self, file: &str, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        assert_eq!(file, "state");
        while self.1.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        bytes.copy_from_slice(&self.0[at as usize..][..bytes.len()]);
        Ok(())
    }
}

struct Received(Vec<(String, Vec<u8>)>, Folder);

impl Incoming<State> for Received {
    fn write(&mut self, file: &str, bytes: &[u8]) -> io::Result<()> {
        match self.0.last_mut() {
            Some((name, content)) if name == file => content.extend_from_slice(bytes),
            _ => self.0.push((file.to_owned(), bytes.to_vec())),
        }
        Ok(())
    }

    fn finish(self: Box<Self>, base: &Base) -> io::Result<State> {
        let [(empty, nothing), (state, bytes)] = &self.0[..] else {
            panic!("{:?}", self.0);
        };
        assert!(empty == "empty" && nothing.is_empty() && state == "state");
        let state = State::of_bytes(bytes.as_slice().try_into().unwrap());
        *self.1.0.lock().unwrap() = Some((base.clone(), state));
        Ok(state)
    }
}
