//! `--peers`: runs a workload on Jindou and on other engines.

use super::measure::{Folder, serialise};
use crate::args::peers::{PeersArgs, Reach};
use jindou::{Database, Error, MemoryBudget, QueryOptions, Result, ResultFormat, ResultWriter};
use jindou_peers::engines::{Jindou, Setup, open};
use jindou_peers::install::default_folder;
use jindou_peers::report::table;
use jindou_peers::{
    About, Engine, Failure, Loaded, Memory, Named, Options, Outcome, Seen, Timed, compare,
    gives_graph, own_memory, read_graph, read_json,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Converts an error of `jindou-peers`; its text is already a sentence.
pub fn wrong(e: jindou_peers::Error) -> Error {
    Error::external(e.to_string())
}

/// Folder for data and stores. A temporary one is removed when this value is dropped.
pub struct PeerWork {
    pub dir: PathBuf,
    _folder: Folder,
}

impl PeerWork {
    pub fn new(a: &PeersArgs) -> Result<Self> {
        let folder = Folder::new(a.work.as_deref())?;
        let dir = &folder.dir;
        std::fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
        // An absolute path, since the engines' servers run in other working directories.
        let dir = std::path::absolute(dir).map_err(|e| Error::io(dir, e))?;
        Ok(Self {
            dir,
            _folder: folder,
        })
    }

    /// Path of the file `name` in the folder. If it does not exist, `write` fills a file of another name, which is then
    /// renamed, so that an existing file is always complete.
    pub fn file(&self, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let file = self.dir.join(name);
        if !file.exists() {
            let part = self.dir.join(format!("{name}.part"));
            write(&part)?;
            std::fs::rename(&part, &file).map_err(|e| Error::io(&file, e))?;
        }
        Ok(file)
    }
}

/// Data and queries on which engines are compared.
pub struct Workload<'a> {
    pub title: String,
    /// File of N-Triples in the canonical layout.
    pub data: &'a Path,
    pub statements: Option<u64>,
    pub queries: Vec<Named>,
    pub threads: usize,
}

/// Runs the comparison, prints the table, and writes the outputs asked for. The exit status is 3 if Jindou's own answer
/// is wrong.
pub fn run(
    w: &Workload<'_>,
    a: &PeersArgs,
    work: &PeerWork,
    json: Option<&Path>,
) -> Result<ExitCode> {
    let engines = engines(a, &work.dir, w.threads)?;
    let options = Options {
        rounds: a.rounds,
        limit: a.limit,
        work: work.dir.clone(),
        title: w.title.clone(),
        command: command_line(),
    };
    let report = compare(
        engines,
        w.data,
        w.statements,
        &w.queries,
        &options,
        &mut |s| eprintln!("{s}"),
    )
    .map_err(wrong)?;
    match json {
        Some(f) if f.as_os_str() == "-" => {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|e| Error::Internal(e.to_string()))?;
            println!("{text}");
        }
        Some(f) => {
            report.write_json(f).map_err(wrong)?;
            print!("{}", table(&report));
        }
        None => print!("{}", table(&report)),
    }
    let right = report.queries.iter().all(|q| q.right(0));
    Ok(if right {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}

fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program)
        .file_name()
        .map_or("jindou".into(), |n| n.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn engines(a: &PeersArgs, work: &Path, threads: usize) -> Result<Vec<Box<dyn Engine>>> {
    let setup = |name: &str| Setup {
        engines: a.engines.clone().unwrap_or_else(default_folder),
        // Of `qlever=DIR`, the name.
        work: work.join(name.split('=').next().unwrap_or(name)),
        memory: a.peer_memory,
        threads,
    };
    let program = crate::jindou_program()?;
    let own = setup("jindou");
    std::fs::create_dir_all(&own.work).map_err(|e| Error::io(&own.work, e))?;
    let http = match a.jindou {
        Reach::Http => true,
        Reach::Inproc => false,
        Reach::Auto => Jindou::can_serve(&program),
    };
    let jindou = Jindou::new(program, own);
    let mut all: Vec<Box<dyn Engine>> = vec![if http {
        Box::new(jindou)
    } else {
        Box::new(InProcess {
            command: jindou,
            options: QueryOptions::default()
                .with_threads(threads)
                .with_memory(MemoryBudget::new(a.peer_memory)),
            db: None,
        })
    }];
    for name in &a.peers {
        all.push(open(name, &setup(name)).map_err(wrong)?);
    }
    Ok(all)
}

/// Jindou as a library in this process. Data is loaded by the command, as for the other engines.
struct InProcess {
    command: Jindou,
    options: QueryOptions,
    db: Option<Database>,
}

impl InProcess {
    fn open(&self, limit: Duration) -> Outcome<(&Database, QueryOptions)> {
        let db = self
            .db
            .as_ref()
            .ok_or_else(|| Failure::Broken("it is not open".into()))?;
        let options = self.options.clone().with_timeout(limit);
        Ok((db, options))
    }
}

fn failure(e: Error) -> Failure {
    match e {
        Error::Timeout(_) => Failure::Timeout,
        e => Failure::Refused(e.to_string()),
    }
}

impl Engine for InProcess {
    fn about(&self) -> About {
        let mut about = self.command.about();
        about.over_http = false;
        about.how = "`jindou load`; asked INSIDE this process, without the HTTP round trip that the servers' times hold; its memory while \
                     answering is this whole process's."
            .into();
        about
    }

    fn load(&mut self, data: &Path) -> jindou_peers::Result<Loaded> {
        self.command.load(data)
    }

    fn start(&mut self) -> jindou_peers::Result<()> {
        let db = Database::open(self.command.store())
            .map_err(|e| jindou_peers::Error::Engine(e.to_string()))?;
        self.db = Some(db);
        Ok(())
    }

    fn time(&mut self, query: &str, limit: Duration) -> Outcome<Timed> {
        let start = Instant::now();
        let (db, options) = self.open(limit)?;
        let bytes = serialise(db, query, &options).map_err(failure)?;
        Ok(Timed {
            seconds: start.elapsed().as_secs_f64(),
            bytes,
        })
    }

    fn check(&mut self, query: &str, limit: Duration) -> Outcome<Seen> {
        let (db, options) = self.open(limit)?;
        let mut text = Vec::new();
        // For CONSTRUCT and DESCRIBE, the writer's TSV is N-Triples.
        let graph = gives_graph(query);
        let format = if graph {
            ResultFormat::Tsv
        } else {
            ResultFormat::Json
        };
        let mut writer = ResultWriter::new(&mut text, format);
        db.run(query, &options, &mut writer).map_err(failure)?;
        drop(writer);
        if graph {
            read_graph(text.as_slice())
        } else {
            read_json(text.as_slice())
        }
    }

    fn memory(&mut self) -> Memory {
        match self.db {
            Some(_) => own_memory(),
            None => Memory::default(),
        }
    }

    fn stop(&mut self) {
        self.db = None;
    }
}
