//! The log: a queue of records, and a thread that writes them in groups.

use crate::clock::ThreadClock;
use crate::files::{Files, TEMPORARY};
use crate::options::{Durability, LogOptions, Status};
use crate::recovery::{Recovery, numbers_used_up, recover};
use crate::writer::{FailureCause, LogFailure, LogWriter, Record, remove_before};
use jindou_model::sync::lock;
use jindou_model::{Error, Resource, Result};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Smallest and largest size in bytes of the file with which [`Log::probe`] tests whether the disk has space.
const PROBE: usize = 4096;
const LARGEST_PROBE: usize = 16 << 20;

/// A log of opaque records of one id epoch, which are numbered consecutively.
///
/// [`Log::append`] queues a record and returns a ticket, which reports when the record is durable. One thread takes all
/// queued records, writes them as one group and syncs once (group commit). Dropping the log writes the queued records
/// and syncs.
pub struct Log {
    shared: Arc<LogShared>,
    files: Arc<dyn Files>,
    epoch: u64,
    thread: Option<JoinHandle<()>>,
}

jindou_model::debug_format!(Log, |this| "Log({:?})", this.status());

struct LogShared {
    state: Mutex<LogQueue>,
    /// Notified when the thread has work.
    work: Condvar,
    /// Notified when the queue has space, for appenders, and when the thread is idle, for [`Log::reset`].
    room: Condvar,
    writer: Mutex<LogWriter>,
    options: LogOptions,
}

#[derive(Default)]
struct LogQueue {
    queue: VecDeque<WaitingRecord>,
    bytes: usize,
    /// Number of the next record to be appended.
    next: u64,
    acknowledged: u64,
    failed: Option<LogFailure>,
    /// Reason why the last group could not be written, and its size in bytes; reset when a group, or a test file of
    /// that size, was written.
    refused: Option<(LogFailure, usize)>,
    /// Reason why acknowledged records could not be synced in time.
    not_durable: Option<LogFailure>,
    /// True while a group is being written.
    busy: bool,
    closing: bool,
    groups: u64,
    records: u64,
    durable: u64,
    files: u64,
    file_bytes: u64,
    /// Number of queued records at which the thread is notified; until then, it waits for a limited time.
    wanted: usize,
}

struct WaitingRecord {
    record: Record,
    slot: Arc<ResultSlot>,
}

impl Drop for WaitingRecord {
    fn drop(&mut self) {
        lock(&self.slot.outcome).get_or_insert_with(|| Err(thread_failed()));
        self.slot.done.notify_all();
    }
}

/// The failure that is reported to waiting callers if the log's thread panics.
fn thread_failed() -> LogFailure {
    LogFailure {
        path: "log".into(),
        cause: FailureCause::Bug,
        what: "the log's thread failed; open the store again".into(),
    }
}

#[derive(Default)]
struct ResultSlot {
    outcome: Mutex<Option<Result<(), LogFailure>>>,
    done: Condvar,
}

impl ResultSlot {
    fn set(&self, outcome: Result<(), LogFailure>) {
        *lock(&self.outcome) = Some(outcome);
        self.done.notify_all();
    }
}

fn wait<'a, T>(c: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    c.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Reports the outcome of an appended record once it is known.
#[must_use = "a record is durable only once its ticket says so"]
pub struct Ticket {
    number: u64,
    slot: Arc<ResultSlot>,
}

jindou_model::debug_format!(Ticket, |this| "Ticket {{ number: {:?}, .. }}", this.number);

impl Ticket {
    /// The record's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits until the record is durable, as far as the log's [`Durability`] promises.
    ///
    /// # Errors
    /// [`Error::Io`] if the disk refuses; the error's kind gives the reason (`StorageFull`, `ReadOnlyFilesystem`,
    /// `PermissionDenied`, …). [`Error::Damaged`] if retrying is useless. After an error, the
    /// record is not in the log, with one exception: if the process dies before the next record was written, the log
    /// may contain the record, complete, like any record that was not acknowledged before a crash.
    pub fn wait(&self) -> Result<()> {
        let mut outcome = lock(&self.slot.outcome);
        loop {
            match &*outcome {
                None => outcome = wait(&self.slot.done, outcome),
                Some(Ok(())) => return Ok(()),
                Some(Err(f)) => return Err(f.to_error()),
            }
        }
    }

    /// True if [`Ticket::wait`] would return at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        lock(&self.slot.outcome).is_some()
    }
}

impl Log {
    /// Opens the log of an id epoch, or creates it. `after` is the number of the last record that the base includes;
    /// records after it are passed to `record` in order.
    ///
    /// No other process may write to the log at the same time. In a directory, [`crate::StoreLock`] ensures this.
    ///
    /// # Errors
    /// [`Error::Damaged`] if existing data is damaged, with file and position; [`Error::Io`] if it cannot be read;
    /// errors of `record`. If the log can be read but not written, this succeeds ([`Recovery::read_only`] gives the
    /// reason), and the first record fails.
    pub fn open(
        files: Arc<dyn Files>,
        epoch: u64,
        after: u64,
        options: LogOptions,
        record: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<(Self, Recovery)> {
        let begun = Instant::now();
        let (mut writer, mut found) = recover(Arc::clone(&files), epoch, after, session(), record)?;
        writer.file_bytes = options.file_bytes;
        if options.durability == Durability::Batch {
            writer.lengthen = options.lengthen_bytes;
        }
        let unsynced = writer.unsynced.len() as u64;
        if unsynced > 0 {
            match writer.start() {
                Ok(()) => found.rewritten = unsynced,
                Err(f) => {
                    writer.mark_unrecorded();
                    found.read_only = Some(f.to_error().to_string());
                }
            }
        } else if let Err(f) = writer.record_existing_newest() {
            found
                .read_only
                .get_or_insert_with(|| f.to_error().to_string());
        }
        let shared = Arc::new(LogShared {
            state: Mutex::new(LogQueue {
                next: writer.next,
                acknowledged: writer.next - 1,
                ..LogQueue::default()
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            writer: Mutex::new(writer),
            options,
        });
        shared.publish(&lock(&shared.writer));
        let thread = std::thread::Builder::new()
            .name("jindou-log".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run()
            })
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("cannot start the log's thread: {e}"),
                )
            })?;
        found.time = begun.elapsed();
        let log = Self {
            shared,
            files,
            epoch,
            thread: Some(thread),
        };
        Ok((log, found))
    }

    /// Queues the record of snapshot `number`, which must be one more than the number before. Returns at once, unless
    /// [`LogOptions::queue_bytes`] of records are queued already.
    ///
    /// # Errors
    /// The error with which an earlier record failed, until [`Log::reset`] is called.
    pub fn append(&self, number: u64, record: Vec<u8>) -> Result<Ticket> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(failure) = &state.failed {
                return Err(failure.to_error());
            }
            let full = state.bytes.saturating_add(record.len()) > self.shared.options.queue_bytes;
            if !full || state.queue.is_empty() {
                break;
            }
            state = wait(&self.shared.room, state);
        }
        if number != state.next {
            return Err(Error::Internal(format!(
                "the log was given record {number}, expected {}",
                state.next
            )));
        }
        state.next = number.checked_add(1).ok_or_else(numbers_used_up)?;
        state.bytes += record.len();
        let slot = Arc::new(ResultSlot::default());
        state.queue.push_back(WaitingRecord {
            record: (number, record),
            slot: Arc::clone(&slot),
        });
        if state.queue.len() >= state.wanted {
            self.shared.work.notify_one();
        }
        Ok(Ticket { number, slot })
    }

    /// Accepts records again after a failure. `number` is that of the next record, the one after the last acknowledged
    /// record.
    ///
    /// # Errors
    /// [`Error::Internal`] if `number` is not that number, or if records are queued.
    pub fn reset(&self, number: u64) -> Result<()> {
        let mut state = lock(&self.shared.state);
        while state.busy {
            state = wait(&self.shared.room, state);
        }
        if number != state.acknowledged + 1 || !state.queue.is_empty() {
            return Err(Error::Internal(format!(
                "the log continues from record {}, not {number}",
                state.acknowledged + 1
            )));
        }
        state.failed = None;
        state.next = number;
        Ok(())
    }

    /// Removes records up to number `upto`, which must be durable in the base. Only whole files are removed, so some of
    /// these records may stay.
    ///
    /// # Errors
    /// [`Error::Io`] if files cannot be removed. No data is lost then, and the next call tries again.
    pub fn truncate(&self, upto: u64) -> Result<()> {
        let oldest = self.with_writer(|w| w.truncate(upto))?;
        // The writer is not locked meanwhile, since removing many files takes long.
        remove_before(&*self.files, self.epoch, oldest)
    }

    /// Makes the next group start a new file, so that [`Log::truncate`] can remove everything appended before it.
    pub fn begin_file(&self) {
        lock(&self.shared.writer).roll = true;
    }

    /// Syncs records that were acknowledged without being durable ([`Durability::Interval`], [`Durability::None`]).
    ///
    /// # Errors
    /// [`Error::Io`] if that fails now; the log's thread will try again.
    pub fn sync(&self) -> Result<()> {
        self.with_writer(LogWriter::sync)
    }

    /// Tests whether files can be created in the log's folder, with a file that is then removed. If the last group was
    /// refused, the file is as large as that group, otherwise small. Does not sync.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be created.
    pub fn probe(&self) -> Result<()> {
        let refused = lock(&self.shared.state).refused.as_ref().map(|r| r.1);
        let bytes = refused.map_or(PROBE, |bytes| bytes.clamp(PROBE, LARGEST_PROBE));
        let name = format!("probe{TEMPORARY}");
        let written = self
            .files
            .create(&name)
            .and_then(|mut file| file.write_at(0, &vec![0; bytes]));
        // Several callers may create and remove the same file at the same time, without harm. If the process dies here,
        // the next opening removes the file.
        let _ = self.files.remove(&name);
        written.map_err(|e| Error::io(self.files.path(&name), e))?;
        let mut state = lock(&self.shared.state);
        let was_disk = |r: &mut (LogFailure, usize)| matches!(r.0.cause, FailureCause::Disk(_));
        if state.failed.is_none() {
            state.refused.take_if(was_disk);
        }
        Ok(())
    }

    fn with_writer<T>(
        &self,
        act: impl FnOnce(&mut LogWriter) -> Result<T, LogFailure>,
    ) -> Result<T> {
        let mut writer = lock(&self.shared.writer);
        let result = act(&mut writer);
        self.shared.publish(&writer);
        result.map_err(|f| f.to_error())
    }

    /// Current state of the log, as of the last group that was written.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = lock(&self.shared.state);
        Status {
            acknowledged: state.acknowledged,
            durable: state.durable,
            files: state.files,
            bytes: state.file_bytes,
            queued: (state.queue.len() as u64, state.bytes as u64),
            groups: state.groups,
            records: state.records,
            failure: state
                .failed
                .as_ref()
                .or(state.refused.as_ref().map(|(failure, _)| failure))
                .or(state.not_durable.as_ref())
                .map(|f| f.to_error().to_string()),
        }
    }

    /// Writes queued records, syncs, and ends the log's thread, as dropping does, but returns the error.
    ///
    /// # Errors
    /// [`Error::Io`] if acknowledged records that were not durable cannot be synced.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        lock(&self.shared.state).closing = true;
        self.shared.work.notify_one();
        let _ = thread.join();
        lock(&self.shared.writer).close().map_err(|f| f.to_error())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The error is ignored. Callers that need it call `close`.
        let _ = self.end();
    }
}

/// A random number that identifies this process.
fn session() -> u64 {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u128(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos(),
    );
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// The next task of the log's thread.
enum WriterTask {
    Group(Vec<WaitingRecord>),
    Sync,
    Mark,
    End,
}

impl LogShared {
    fn run(&self) {
        // If this thread panics, waiting callers get an error rather than wait for ever.
        struct Fail<'a>(&'a LogShared);
        impl Drop for Fail<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.fail(Vec::new(), thread_failed(), 0);
                }
            }
        }
        let _fail = Fail(self);
        let mut clock = ThreadClock::default();
        loop {
            match self.next_work(&mut clock) {
                WriterTask::Group(group) => self.write(group, &mut clock),
                WriterTask::Sync => {
                    clock.sync_at = None;
                    let mut writer = lock(&self.writer);
                    let result = writer.sync();
                    self.publish(&writer);
                    if let Err(failure) = result {
                        clock.sync_after(self.options.durability);
                        lock(&self.state).not_durable = Some(failure);
                    }
                }
                WriterTask::Mark => {
                    clock.marked = true;
                    let mut writer = lock(&self.writer);
                    writer.mark();
                    self.publish(&writer);
                }
                WriterTask::End => return,
            }
        }
    }

    fn next_work(&self, clock: &mut ThreadClock) -> WriterTask {
        let mut state = lock(&self.state);
        let gather_until = Instant::now() + clock.gather();
        loop {
            let now = Instant::now();
            let until = if !state.queue.is_empty() {
                let all = state.queue.len() >= clock.wanted;
                if all || now >= gather_until || state.closing {
                    clock.gathered(all);
                    break;
                }
                Some(gather_until)
            } else if state.closing {
                return WriterTask::End;
            } else if clock.wanted > 0 && now < gather_until {
                Some(gather_until)
            } else {
                clock.wanted = 0;
                match clock.sync_at {
                    Some(at) if at <= now => return WriterTask::Sync,
                    Some(at) => Some(at),
                    None if clock.marked => None,
                    None if clock.idle_since + self.options.idle <= now => return WriterTask::Mark,
                    None => Some(clock.idle_since + self.options.idle),
                }
            };
            state.wanted = clock.wanted;
            state = match until {
                None => wait(&self.work, state),
                Some(until) => {
                    let time = until.saturating_duration_since(now);
                    let waited = self.work.wait_timeout(state, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let mut group = Vec::new();
        let mut bytes = 0usize;
        while let Some(w) = state.queue.front() {
            bytes = bytes.saturating_add(w.record.1.len());
            if !group.is_empty() && bytes > self.options.group_bytes {
                break;
            }
            state.bytes -= w.record.1.len();
            group.extend(state.queue.pop_front());
        }
        state.busy = true;
        state.wanted = 0;
        self.room.notify_all();
        WriterTask::Group(group)
    }

    fn publish(&self, w: &LogWriter) {
        let bytes = w.kept.iter().map(|k| k.bytes).sum();
        let mut state = lock(&self.state);
        state.durable = w.durable_upto();
        if state.durable >= state.acknowledged {
            state.not_durable = None;
        }
        (state.files, state.file_bytes) = (w.kept.len() as u64, bytes);
    }

    fn write(&self, mut group: Vec<WaitingRecord>, clock: &mut ThreadClock) {
        let records: Vec<Record> = group
            .iter_mut()
            .map(|w| (w.record.0, std::mem::take(&mut w.record.1)))
            .collect();
        let last = records.last().map_or(0, |(n, _)| *n);
        let bytes = records.iter().map(|(_, r)| r.len()).sum();
        let begun = Instant::now();
        let result = {
            let mut writer = lock(&self.writer);
            let sync = self.options.durability == Durability::Batch
                || writer.unsynced_bytes >= self.options.unsynced_bytes
                || clock.sync_at.is_some_and(|at| at <= begun);
            let result = writer.write(records, sync);
            clock.sync_at = match writer.unsynced.is_empty() {
                true => None,
                false => clock.sync_at,
            };
            if !writer.unsynced.is_empty() && clock.sync_at.is_none() {
                clock.sync_after(self.options.durability);
            }
            self.publish(&writer);
            result
        };
        clock.wrote(begun.elapsed(), &self.options);
        if let Err(failure) = result {
            clock.wanted = 0;
            self.fail(group, failure, bytes);
            return;
        }
        {
            let mut state = lock(&self.state);
            state.acknowledged = last;
            state.refused = None;
            state.busy = false;
            state.groups += 1;
            state.records += group.len() as u64;
            // Estimated size of the next group. Clients that are acknowledged now usually send another record soon, as
            // do those whose records are queued. An eighth is subtracted, since some clients stop.
            let all = group.len() + state.queue.len();
            clock.wanted = all - all / 8;
        }
        self.room.notify_all();
        for w in group {
            w.slot.set(Ok(()));
        }
    }

    fn fail(&self, group: Vec<WaitingRecord>, failure: LogFailure, bytes: usize) {
        let queue = {
            let mut state = lock(&self.state);
            state.failed = Some(failure.clone());
            state.refused = Some((failure.clone(), bytes));
            state.busy = false;
            state.bytes = 0;
            std::mem::take(&mut state.queue)
        };
        self.room.notify_all();
        for w in group.into_iter().chain(queue) {
            w.slot.set(Err(failure.clone()));
        }
    }
}
