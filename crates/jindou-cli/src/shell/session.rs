//! A shell's session: the store or endpoint, the settings, and running of statements.

use super::{Interrupt, dot, statement};
use crate::args::Shell;
use crate::commands::{
    counted, documents, no_graphs, no_store, runtime_with_gpu, service, show_recovery, update,
};
use crate::empty;
use crate::overlooked;
use crate::pages::{FirstRows, Pages, TableHead};
use crate::remote::SparqlEndpoint;
use crate::say::say;
use jindou::results::{AnswerSink, Prefixes};
use jindou::{
    Access, CancelToken, Database, DiagnosticKind, DocumentSource, Error, Following, GpuChoice,
    OpenOptions, QueryOptions, Result, ResultFormat, ResultWriter, ServiceCaller, UpdateOptions,
};
use jindou_model::units::grouped;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store, or a remote endpoint.
pub enum ShellTarget {
    Store(Database),
    Endpoint(Box<SparqlEndpoint>, String),
}

/// The error if neither a store nor an endpoint was named.
fn nothing_named() -> Error {
    let text = "nothing to open: name a store, as in jindou shell my.store (or --store DIR, or JINDOU_STORE), or an endpoint with --endpoint URL";
    Error::Usage(text.into())
}

/// Tells whether the shell continues after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    GoOn,
    Quit,
}

/// The way to run a query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    Answer,
    Explain,
    Profile,
}

/// Counts of an answer, and the hint to print below it.
struct Answered {
    rows: u64,
    profile: Option<String>,
    /// The hint that the answer is empty because the data is in named graphs.
    overlooked: Option<String>,
}

/// A shell's target and its settings.
pub struct ShellSession {
    pub target: ShellTarget,
    /// The store's name as given by the user.
    name: String,
    /// As long as it exists, changes that other processes make to the store are applied.
    _following: Option<Following>,
    pub format: Option<ResultFormat>,
    pub timing: bool,
    /// Maximum number of rows to show.
    pub limit: Option<u64>,
    /// The pager's command; `None` if answers are not paged.
    pub pager: Option<String>,
    pub timeout: Option<Duration>,
    /// Prefixes declared by `.prefix`.
    own_prefixes: Vec<(String, String)>,
    /// True if the common prefixes and those of the store may be used without declaring them.
    common_prefixes: bool,
    write: bool,
    /// The endpoint's token, which is needed again when the time limit changes.
    token: Option<String>,
    /// True if the default graph is the union of all graphs; `None` uses the choice made when the store was loaded.
    union_default: Option<bool>,
    gpu: GpuChoice,
    service: Option<Arc<dyn ServiceCaller>>,
    documents: Option<Arc<dyn DocumentSource>>,
    interrupt: Interrupt,
    typed: bool,
    lines: usize,
    columns: Option<usize>,
    /// True to show all rows of long answers, and whole cells.
    pub all: bool,
    /// Nesting depth of the files that are being read with `.read`.
    pub depth: usize,
}

impl ShellSession {
    pub fn open(a: &Shell, interrupt: Interrupt, typed: bool) -> Result<Self> {
        let token = a.remote.token.clone();
        let mut following = None;
        let name = a.place.path().map(|p| p.display().to_string());
        let name = name.unwrap_or_default();
        let target = match (&a.remote.endpoint, a.place.path()) {
            (Some(url), _) => {
                no_graphs(a.graphs)?;
                let endpoint =
                    SparqlEndpoint::new(url, token.as_deref(), a.timeout, !a.no_prefixes)?;
                ShellTarget::Endpoint(Box::new(endpoint), url.clone())
            }
            (None, Some(store)) => {
                let access = if a.write { Access::Write } else { Access::Read };
                let db = Database::open_with(
                    store,
                    &OpenOptions::default()
                        .with_access(access)
                        .with_verify(a.verify.verify)
                        .with_runtime(runtime_with_gpu(a.threads, a.memory, a.gpu_memory)),
                )?;
                show_recovery(&db);
                if !a.write {
                    following = Some(db.follow_in_background(|_| {})?);
                }
                ShellTarget::Store(db)
            }
            (None, None) => return Err(nothing_named()),
        };
        // A user who names a pager wants to see whole answers in it.
        let all = a.all || a.pager.as_ref().is_some_and(|p| !p.trim().is_empty());
        let pager = match a.no_pager {
            true => Some(String::new()),
            false => a.pager.clone(),
        };
        let pager = pager.or_else(|| std::env::var("PAGER").ok());
        let pager = pager.unwrap_or_else(|| "less".into());
        Ok(Self {
            target,
            _following: following,
            format: a.format,
            timing: typed,
            limit: a.limit,
            pager: (typed && !pager.trim().is_empty()).then_some(pager),
            timeout: a.timeout,
            own_prefixes: vec![],
            common_prefixes: !a.no_prefixes,
            write: a.write,
            token,
            union_default: a.graphs.union_default(),
            gpu: a.gpu,
            service: service(&a.service_allow),
            documents: documents(&a.documents)?,
            interrupt,
            typed,
            lines: usize::MAX,
            columns: None,
            all,
            name,
            depth: 0,
        })
    }

    /// The text that the shell prints first.
    pub fn greeting(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match &self.target {
            ShellTarget::Store(db) => {
                let quads = match db.quads() {
                    1 => "1 quad".to_owned(),
                    n => format!("{} quads", grouped(n)),
                };
                let may = if self.write { "" } else { ", read-only" };
                format!("Jindou {version}, {}: {quads}{may}", self.name)
            }
            ShellTarget::Endpoint(_, url) => format!("Jindou {version}, endpoint {url}"),
        }
    }

    /// The warning that queries without GRAPH find nothing, if all data is in named graphs.
    pub fn warning(&self) -> Option<String> {
        let ShellTarget::Store(db) = &self.target else {
            return None;
        };
        let counts = db.graph_counts();
        let overlooks = counts.only_named() && !db.is_union_default(&self.completion_options());
        overlooks.then(|| overlooked::capitalised(&counts, ".graphs all"))
    }

    pub fn set_screen(&mut self, size: Option<(u16, u16)>) {
        self.lines = size.map_or(usize::MAX, |s| usize::from(s.1).max(2) - 1);
        self.columns = size.map(|s| usize::from(s.0));
    }

    /// Prefixes, besides the common ones, that statements may use without declaring them: the store's, by name, then
    /// the session's.
    pub fn prefixes(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        if let ShellTarget::Store(db) = &self.target
            && self.common_prefixes
        {
            let is_own = |name: &str| self.own_prefixes.iter().any(|p| p.0 == name);
            let store = db.prefixes();
            let store = store.iter().filter(|p| !is_own(p.0));
            all.extend(store.map(|(name, iri, _)| (name.to_owned(), iri.to_owned())));
        }
        all.extend_from_slice(&self.own_prefixes);
        all
    }

    /// Declares a prefix for the statements that follow.
    pub fn declare(&mut self, name: String, iri: String) {
        self.own_prefixes.retain(|p| p.0 != name);
        self.own_prefixes.push((name, iri));
    }

    /// All prefixes with which IRIs are abbreviated in tables.
    pub fn names(&self) -> Prefixes {
        let mut all = match self.common_prefixes {
            true => Prefixes::common(),
            false => Prefixes::new(),
        };
        if let ShellTarget::Store(db) = &self.target
            && self.common_prefixes
        {
            all.declare_all(&db.prefixes());
        }
        for (name, iri) in &self.own_prefixes {
            all.declare(name, iri);
        }
        all
    }

    /// Sets the time limit.
    pub fn set_timeout(&mut self, limit: Option<Duration>) -> Result<()> {
        self.timeout = limit;
        if let ShellTarget::Endpoint(endpoint, url) = &mut self.target {
            **endpoint =
                SparqlEndpoint::new(url, self.token.as_deref(), limit, self.common_prefixes)?;
        }
        Ok(())
    }

    /// Sets the default graph, or without a value prints it.
    pub fn set_graphs(&mut self, which: Option<&str>) -> Result<()> {
        let db = self.store()?;
        match which {
            None => {
                let options = self.completion_options();
                let which = if db.is_union_default(&options) {
                    "all"
                } else {
                    "default"
                };
                say!("{which}: {}", db.graph_counts());
                return Ok(());
            }
            Some("all") => self.union_default = Some(true),
            Some("default") => self.union_default = Some(false),
            Some(other) => {
                return Err(Error::Usage(format!(
                    ".graphs takes default or all, not {other}"
                )));
            }
        }
        Ok(())
    }

    /// Runs a statement.
    pub fn run(&mut self, text: &str) -> Result<Next> {
        if text.trim().is_empty() {
            return Ok(Next::GoOn);
        }
        if statement::is_dot(text) {
            return dot::run(self, text.trim());
        }
        let text = text.trim_end();
        if statement::is_update(text) {
            self.update(text)?;
        } else {
            self.query(text.strip_suffix(';').unwrap_or(text), RunMode::Answer)?;
        }
        Ok(Next::GoOn)
    }

    /// Answers a query, or shows its plan.
    pub fn query(&mut self, text: &str, how: RunMode) -> Result<()> {
        let mut names = self.names();
        names.declare_of(text);
        let format = self.format.unwrap_or(ResultFormat::Table);
        let is_short = self.typed && self.format.is_none() && self.limit.is_none() && !self.all;
        let pager = self.pager.clone().filter(|_| !is_short);
        let mut pages = Pages::new(pager, self.lines);
        let mut footer = None;
        let begun = Instant::now();
        let interrupt = self.interrupt.clone();
        let done = interrupt.during(|cancel| {
            if how == RunMode::Explain {
                use std::io::Write;
                let plan = self
                    .store()?
                    .explain(text, &self.query_options(cancel, false))?;
                return match pages.write_all(plan.as_bytes()) {
                    Ok(()) => Ok(None),
                    Err(_) => Err(Error::SinkClosed),
                };
            }
            let mut writer = ResultWriter::new(&mut pages, format).with_prefixes(names);
            if is_short {
                if let Some(columns) = self.columns {
                    writer = writer.with_width(columns);
                }
                let mut head = TableHead::new(&mut writer);
                let answer = self.answer(text, cancel, how, &mut head);
                let answer = head.settle(answer)?;
                footer = head.footer(".all");
                return Ok(answer);
            }
            let mut first = self.limit.map(|n| FirstRows::new(&mut writer, n));
            match &mut first {
                Some(first) => {
                    let answer = self.answer(text, cancel, how, first);
                    first.settle(answer)
                }
                None => self.answer(text, cancel, how, &mut writer).map(Some),
            }
        });
        // The summary must be printed after the pager has ended.
        let time = begun.elapsed();
        let finished = pages.finish();
        let answered: Option<Answered> = match done {
            // At a terminal, SinkClosed means that the user quit the pager. In a script it means that standard output
            // was closed, which ends the script.
            Err(Error::SinkClosed) if self.typed => return Ok(()),
            done => done?,
        };
        if let Err(e) = finished {
            match e.kind() {
                std::io::ErrorKind::BrokenPipe if self.typed => {}
                std::io::ErrorKind::BrokenPipe => return Err(Error::SinkClosed),
                _ => return Err(Error::io("<stdout>", e)),
            }
        }
        let rows = answered.as_ref().map(|a| a.rows);
        let mut unexplained = rows;
        if let Some(answered) = answered {
            if let Some(profile) = answered.profile {
                eprint!("{profile}");
            }
            if let Some(overlooked) = answered.overlooked {
                eprintln!("{overlooked}");
                unexplained = None;
            }
        }
        if how == RunMode::Explain {
            return Ok(());
        }
        if rows.is_none()
            && let Some(n) = self.limit
        {
            eprintln!(
                "only the first {} (.limit off shows all)",
                counted(n, "row")
            );
        }
        let rows = footer.or_else(|| rows.map(|n| counted(n, "row")));
        if self.timing {
            let rows = rows.map(|rows| rows + " in ").unwrap_or_default();
            eprintln!("{rows}{:.3} ms", time.as_secs_f64() * 1e3);
        } else if let Some(rows) = rows.filter(|_| is_short) {
            eprintln!("{rows}");
        }
        if self.typed
            && let (ShellTarget::Store(db), RunMode::Answer, Some(rows)) =
                (&self.target, how, unexplained)
        {
            interrupt.during(|cancel| {
                empty::say_why(db, text, &self.query_options(cancel, false), rows);
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    fn answer(
        &self,
        text: &str,
        cancel: &CancelToken,
        how: RunMode,
        sink: &mut dyn AnswerSink,
    ) -> Result<Answered> {
        match &self.target {
            ShellTarget::Store(db) => {
                let options = self.query_options(cancel, how == RunMode::Profile);
                let (report, said) = overlooked::run(db, text, &options, sink, ".graphs all")?;
                Ok(Answered {
                    rows: report.rows,
                    profile: (how == RunMode::Profile).then_some(report.profile),
                    overlooked: said,
                })
            }
            ShellTarget::Endpoint(..) if how == RunMode::Profile => {
                Err(self.store().err().unwrap_or_else(no_store))
            }
            ShellTarget::Endpoint(endpoint, _) => {
                let rows = endpoint.query(text, &self.own_prefixes, cancel, sink)?;
                Ok(Answered {
                    rows,
                    profile: None,
                    overlooked: None,
                })
            }
        }
    }

    /// The options that matter for completion: the default graph and the known prefixes.
    pub fn completion_options(&self) -> QueryOptions {
        QueryOptions::default()
            .with_union_default(self.union_default)
            .with_prefixes(self.own_prefixes.clone())
            .with_common_prefixes(self.common_prefixes)
            .with_store_prefixes(self.common_prefixes)
    }

    fn query_options(&self, cancel: &CancelToken, profile: bool) -> QueryOptions {
        let mut options = QueryOptions::default()
            .with_cancel(cancel.clone())
            .with_timeout(self.timeout)
            .with_profile(profile)
            .with_gpu(self.gpu)
            .with_union_default(self.union_default)
            .with_prefixes(self.own_prefixes.clone())
            .with_common_prefixes(self.common_prefixes)
            .with_store_prefixes(self.common_prefixes);
        options.service.clone_from(&self.service);
        options
    }

    /// The store; an error if the target is an endpoint.
    fn store(&self) -> Result<&Database> {
        match &self.target {
            ShellTarget::Store(db) => Ok(db),
            ShellTarget::Endpoint(..) => Err(Error::Usage(
                "endpoints have no plans or profiles; open a store".into(),
            )),
        }
    }

    fn update(&mut self, text: &str) -> Result<()> {
        if !self.write {
            return Err(Error::Usage("this is an update, but the shell is read-only; start it with `jindou shell --write`".into()));
        }
        let interrupt = self.interrupt.clone();
        let begun = Instant::now();
        interrupt.during(|cancel| match &self.target {
            ShellTarget::Store(db) => {
                let mut options = UpdateOptions::default()
                    .with_cancel(cancel.clone())
                    .with_timeout(self.timeout)
                    .with_union_default(self.union_default)
                    .with_prefixes(self.own_prefixes.clone())
                    .with_common_prefixes(self.common_prefixes)
                    .with_store_prefixes(self.common_prefixes);
                options.service.clone_from(&self.service);
                options.documents.clone_from(&self.documents);
                update::print(&db.update(text, &options)?);
                Ok(())
            }
            ShellTarget::Endpoint(endpoint, _) => {
                let said = endpoint.update(text, &self.own_prefixes, None, cancel)?;
                if !said.is_empty() {
                    say!("{said}");
                }
                if self.timing {
                    eprintln!("{:.3} ms", begun.elapsed().as_secs_f64() * 1e3);
                }
                Ok(())
            }
        })
    }

    /// Prints an error.
    pub fn tell(&self, e: &Error) {
        match e {
            Error::Cancelled => eprintln!("cancelled"),
            Error::Sparql(faults) if faults.first().kind == DiagnosticKind::Empty && self.typed => {
            }
            e => match crate::advice::advice_for(e) {
                Some(advice) => eprintln!("{e}; {advice}"),
                None => eprintln!("{e}"),
            },
        }
    }
}
