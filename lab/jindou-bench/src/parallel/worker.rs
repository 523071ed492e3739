//! A worker process, which executes the master's messages in their order on one thread.

use super::footprint;
use super::wire::{Message, Ran, Share, Table, receive, send};
use crate::args::parallel::ParallelWorker;
use crate::measure::{Null, cpu_time};
use jindou::{Database, Error, QueryOptions, Result, ResultFormat, ResultWriter};
use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_streaming};
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Path of the socket on which the master listens.
pub fn master_socket(folder: &Path) -> PathBuf {
    folder.join("master")
}

fn socket(folder: &Path, worker: u32) -> PathBuf {
    folder.join(format!("worker-{worker}"))
}

/// The worker to which a worker sends its results in the binomial tree; `None` for worker 0, which sends them to the
/// master.
fn parent(worker: u32) -> Option<u32> {
    worker.checked_sub(1).map(|less| worker & less)
}

/// The workers that send their results to this one.
fn children(worker: u32, workers: u32) -> impl Iterator<Item = u32> {
    (worker + 1..workers).filter(move |&w| parent(w) == Some(worker))
}

/// Options with which a worker runs queries: on one thread.
pub fn options() -> QueryOptions {
    QueryOptions::default().with_threads(1)
}

/// Runs a query and writes the answer as TSV. The plan is not cached, so that running one query many times, as the
/// paper does, costs as much as running different ones. Returns the number of rows.
pub fn answer(
    db: &Database,
    text: &str,
    options: &QueryOptions,
    out: impl Write + Send,
) -> Result<u64> {
    let planned = db.plan_uncached(text, options)?;
    let mut writer = ResultWriter::new(out, ResultFormat::Tsv);
    Ok(db.run_planned(&planned, options, &mut writer)?.rows)
}

/// Runs a query and discards the answer. Returns rows and bytes, which do not depend on the rows' order.
pub fn size_of_answer(db: &Database, text: &str, options: &QueryOptions) -> Result<(u64, u64)> {
    let mut out = Null::default();
    Ok((answer(db, text, options, &mut out)?, out.0))
}

/// An open store, and the ids of its terms in the whole store (empty if it is the whole store).
pub struct Opened {
    dir: PathBuf,
    db: Option<Database>,
    ids: Vec<u32>,
    options: QueryOptions,
}

impl Opened {
    /// Opens a store; `ids` is the file that [`super::build`] wrote next to a partition's store.
    pub fn new(dir: &Path, ids: Option<&Path>) -> Result<Self> {
        let ids = match ids {
            Some(path) => {
                let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
                let (words, _) = bytes.as_chunks::<4>();
                words.iter().map(|w| u32::from_le_bytes(*w)).collect()
            }
            None => vec![],
        };
        Ok(Self {
            dir: dir.to_owned(),
            db: Some(Database::open(dir)?),
            ids,
            options: options(),
        })
    }

    /// Closes the store and drops its files from the page cache; the next run opens it again.
    fn cool(&mut self) -> Result<()> {
        self.db = None;
        footprint::drop_from_cache(&self.dir)
    }

    fn db(&mut self) -> Result<&Database> {
        let db = match self.db.take() {
            Some(db) => db,
            None => Database::open(&self.dir)?,
        };
        Ok(self.db.insert(db))
    }

    /// Runs one query on the whole store. Returns the answer's rows and bytes.
    fn run(&mut self, text: &str) -> Result<(u64, u64)> {
        let options = self.options.clone();
        size_of_answer(self.db()?, text, &options)
    }

    /// Runs one part of a query. Returns the number of rows, and the rows as TSV without the header line.
    pub fn write(&mut self, text: &str) -> Result<(u64, Vec<u8>)> {
        let options = self.options.clone();
        let mut out = vec![];
        let rows = answer(self.db()?, text, &options, &mut out)?;
        let names = out.iter().position(|&b| b == b'\n').map_or(0, |n| n + 1);
        out.drain(..names);
        Ok((rows, out))
    }

    /// Runs one part of a query. Returns the rows in ids of the whole store.
    pub fn find(&mut self, text: &str) -> Result<Table> {
        let options = self.options.clone();
        let db = self.db()?;
        let planned = db.plan_uncached(text, &options)?;
        let exec = ExecOptions {
            threads: 1,
            memory: db.runtime().memory().clone(),
            ..ExecOptions::default()
        };
        let mut rows = CollectSink::default();
        let terms = QueryTerms::new();
        execute_streaming(planned.plan(), planned.snapshot(), &exec, &terms, &mut rows)?;
        let mut table = Table {
            width: rows.width,
            rows: rows.rows,
            ids: rows.ids,
        };
        for id in &mut table.ids {
            *id = *self.ids.get(*id as usize).ok_or_else(|| {
                Error::external(format!(
                    "{}: the table of ids has none for {id}; remove the work folder",
                    self.dir.display()
                ))
            })?;
        }
        Ok(table)
    }

    /// Bytes of the store's files that a query accesses. A first run maps the pages, so that the second marks only
    /// those that it reads.
    fn touch(&mut self, text: &str) -> Result<u64> {
        let options = self.options.clone();
        let dir = self.dir.clone();
        let db = self.db()?;
        size_of_answer(db, text, &options)?;
        footprint::clear()?;
        size_of_answer(db, text, &options)?;
        footprint::touched(&dir)
    }
}

/// The connections of one worker.
struct Worker {
    number: u32,
    master: UnixStream,
    parent: Option<UnixStream>,
    children: Vec<UnixStream>,
    opened: Option<Opened>,
}

/// Runs `jindou bench parallel-worker`.
pub fn run(a: &ParallelWorker) -> Result<ExitCode> {
    // Listens before it sends `Hello`, since a worker that starts later may connect to it at once.
    let place = socket(&a.sockets, a.number);
    let listener = UnixListener::bind(&place).map_err(|e| Error::io(&place, e))?;
    let hello = Message::Hello {
        worker: a.number,
        process: std::process::id(),
    };
    let mut master = connect(&master_socket(&a.sockets))?;
    send(&mut master, &hello)?;
    let parent = match parent(a.number) {
        Some(p) => Some(connect(&socket(&a.sockets, p))?),
        None => None,
    };
    let mut below = vec![];
    for _ in children(a.number, a.workers) {
        let (stream, _) = listener.accept().map_err(|e| Error::io(&place, e))?;
        below.push(stream);
    }
    let mut worker = Worker {
        number: a.number,
        master,
        parent,
        children: below,
        opened: None,
    };
    loop {
        let message = match receive(&mut worker.master) {
            // The master has closed the socket; it reports any error itself.
            Err(Error::SinkClosed) => return Ok(ExitCode::SUCCESS),
            m => m?,
        };
        if message == Message::Quit {
            return Ok(ExitCode::SUCCESS);
        }
        if let Err(e) = worker.answer(message) {
            send(&mut worker.master, &Message::Failed(e.to_string()))?;
        }
    }
}

/// Connects to a socket, waiting until it exists.
fn connect(path: &Path) -> Result<UnixStream> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(e) if Instant::now() > until => return Err(Error::io(path, e)),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

impl Worker {
    fn opened(&mut self) -> Result<&mut Opened> {
        self.opened
            .as_mut()
            .ok_or_else(|| Error::Internal("no store was opened".into()))
    }

    fn answer(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Open { store, ids } => {
                self.opened = None;
                let ids = (!ids.is_empty()).then(|| Path::new(&ids));
                self.opened = Some(Opened::new(Path::new(&store), ids)?);
                send(&mut self.master, &Message::Opened)
            }
            Message::Run { cold, queries } => {
                let outcomes = self.outcomes(cold, &queries)?;
                send(&mut self.master, &Message::Outcomes(outcomes))
            }
            Message::Touch { queries } => {
                let opened = self.opened()?;
                let bytes = queries
                    .iter()
                    .map(|q| opened.touch(q))
                    .collect::<Result<_>>()?;
                send(&mut self.master, &Message::Touched(bytes))
            }
            Message::Find {
                cold,
                gather,
                text,
                parts,
            } => {
                let share = self.share(cold, text, &parts)?;
                self.pass_on(gather, share)
            }
            m => Err(Error::Internal(format!("a worker was told {m:?}"))),
        }
    }

    fn outcomes(&mut self, cold: bool, queries: &[String]) -> Result<Vec<Ran>> {
        let opened = self.opened()?;
        let mut out = Vec::with_capacity(queries.len());
        for (i, text) in queries.iter().enumerate() {
            if cold {
                opened.cool()?;
            }
            let (start, cpu) = (Instant::now(), cpu_time());
            let (rows, bytes) = opened.run(text)?;
            out.push(Ran {
                query: i as u32,
                rows,
                bytes,
                wall: start.elapsed().as_nanos() as u64,
                cpu: cpu_time().saturating_sub(cpu).as_nanos() as u64,
            });
        }
        Ok(out)
    }

    fn share(&mut self, cold: bool, text: bool, parts: &[String]) -> Result<Share> {
        let worker = self.number;
        let opened = self.opened()?;
        if cold {
            opened.cool()?;
        }
        let (start, cpu) = (Instant::now(), cpu_time());
        let mut share = Share {
            worker,
            ..Share::default()
        };
        for part in parts {
            if text {
                (share.rows, share.text) = opened.write(part)?;
            } else {
                let table = opened.find(part)?;
                share.rows += table.rows as u64;
                share.tables.push(table);
            }
        }
        share.wall = start.elapsed().as_nanos() as u64;
        share.cpu = cpu_time().saturating_sub(cpu).as_nanos() as u64;
        Ok(share)
    }

    fn pass_on(&mut self, gather: bool, share: Share) -> Result<()> {
        let mut shares = vec![share];
        if !gather {
            return send(&mut self.master, &Message::Found(shares));
        }
        for child in &mut self.children {
            match receive(child)? {
                Message::Found(more) => shares.extend(more),
                m => return Err(Error::Internal(format!("a worker sent {m:?}"))),
            }
        }
        let up = self.parent.as_mut().unwrap_or(&mut self.master);
        send(up, &Message::Found(shares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_reaches_every_worker_once_and_is_flat() {
        for workers in 1..=64 {
            let mut seen = vec![0; workers as usize];
            for w in 0..workers {
                for c in children(w, workers) {
                    assert_eq!(parent(c), Some(w));
                    seen[c as usize] += 1;
                }
            }
            assert_eq!(seen[0], 0);
            assert!(seen[1..].iter().all(|&n| n == 1));
        }
        let depth = |mut w: u32| {
            let mut n = 0;
            while let Some(p) = parent(w) {
                (w, n) = (p, n + 1);
            }
            n
        };
        assert_eq!((0..64).map(depth).max(), Some(6));
    }
}
