//! Options of a query, and the graphs that it reads.

use crate::device::GpuChoice;
use crate::values;
use crate::watch::QueryWatch;
use jindou_engine::{ServiceCaller, ShardMode, WorkerPool};
use jindou_model::{CancelToken, Error, MemoryBudget, Result, options_struct};
use jindou_plan::sparql::{NamedNode, Query, QueryDataset};
use jindou_plan::{Functions, SyntaxOptions};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

options_struct! {
    /// Options of a query. By default it uses the threads and memory of the database's [`Runtime`](crate::Runtime) and
    /// has no time limit.
    ///
    /// The options can include a program's own functions:
    ///
    /// ```
    /// use jindou::{Database, Functions, LoadOptions, Progress, QueryOptions, parse::Sources};
    /// use oxrdf::Literal;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (file, store) = (dir.path().join("data.nt"), dir.path().join("store"));
    /// # std::fs::write(&file, "<http://e/ada> <http://e/name> \"Ada\" .").unwrap();
    /// # let sources = Sources::builder().path(&file).build()?;
    /// # Database::load(&store, &sources, &LoadOptions::default(), &Progress::default())?;
    /// let db = Database::open(&store)?;
    /// let functions = Functions::new().with("http://e/fn#initial", 1..=1, |arguments| {
    ///     let [Some(name)] = arguments else { return None };
    ///     let initial = name.text()?.chars().next()?;
    ///     Some(Literal::from(initial.to_string()).into())
    /// })?;
    /// let options = QueryOptions::default().with_functions(functions);
    /// let answer = db.query_with(
    ///     "SELECT (<http://e/fn#initial>(?name) AS ?i) { ?person <http://e/name> ?name }",
    ///     &options,
    /// )?;
    /// assert_eq!(answer.solutions()[0][0], Some(Literal::from("A").into()));
    /// # Ok::<(), jindou::Error>(())
    /// ```
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct QueryOptions {
        /// Largest number of threads that a heavy query uses, limited by the runtime's number, which is also the
        /// default.
        pub threads: Option<usize> = None, with_threads(impl Into<Option<usize>>);
        /// Time limit, measured from the call and including planning; `None` for no limit.
        pub timeout: Option<Duration> = None, with_timeout(impl Into<Option<Duration>>);
        /// Budget for the memory of the query's text, algebra, plan and operators; `None` for the remaining budget of
        /// the runtime.
        pub memory: Option<MemoryBudget> = None, with_memory(impl Into<Option<MemoryBudget>>);
        /// Largest number of bytes of temporary files, which the query writes if it needs more memory than it may use;
        /// `None` for the limit of the runtime, 0 to end such a query instead.
        pub temp: Option<u64> = None, with_temp(impl Into<Option<u64>>);
        /// Cancels the query from another thread.
        pub cancel: CancelToken = CancelToken::default(), with_cancel(CancelToken);
        /// True if the default graph is the union of all graphs; `None` for the choice that was made when the store was
        /// loaded.
        pub union_default: Option<bool> = None, with_union_default(impl Into<Option<bool>>);
        /// True to count the rows, time and bytes of each step.
        pub profile: bool = false, with_profile(bool);
        /// If set, every clone of this [`QueryWatch`] can read the query's progress. Rows and times of its steps are
        /// then counted, as with `profile`.
        pub watch: Option<QueryWatch> = None, with_watch(impl Into<Option<QueryWatch>>);
        /// Permission to use a GPU.
        pub gpu: GpuChoice = GpuChoice::default(), with_gpu(GpuChoice);
        /// For a sharded store: whether queries send rows to the shards that hold the data, or fetch the data.
        pub shard_mode: ShardMode = ShardMode::default(), with_shard_mode(ShardMode);
        /// The graphs to read instead of those that the query names.
        pub dataset: Option<DatasetChoice> = None, with_dataset(impl Into<Option<DatasetChoice>>);
        /// The client that sends `SERVICE` patterns to other endpoints. Without it, queries with SERVICE are refused.
        pub service: Option<Arc<dyn ServiceCaller>> = None, with_service(Arc<dyn ServiceCaller>);
        /// Functions that the query may call by IRI, in addition to the casts. Plans are cached separately for each
        /// [`Functions`] value.
        pub functions: Functions = Functions::default(), with_functions(Functions);
        /// Pool of the threads that a heavy query uses in addition to the caller's; `None` for the runtime's pool.
        pub pool: Option<Arc<dyn WorkerPool>> = None, with_pool(Arc<dyn WorkerPool>);
        /// True (the default) if the common prefixes ([`COMMON_PREFIXES`](crate::COMMON_PREFIXES)) apply to queries
        /// that do not declare them.
        pub common_prefixes: bool = true, with_common_prefixes(bool);
        /// True (the default) if the store's prefixes ([`Database::prefixes`](crate::Database::prefixes)) apply to
        /// queries that do not declare them. They take precedence over the common ones.
        pub store_prefixes: bool = true, with_store_prefixes(bool);
        /// Further prefixes with their IRIs that apply to queries that do not declare them; they take precedence over
        /// the store's.
        pub prefixes: Vec<(String, String)> = Vec::new(), with_prefixes(Vec<(String, String)>);
        /// Base for the query's relative IRIs, including arguments of `IRI()`, if the query has no BASE of its own.
        pub base: Option<String> = None, with_base(impl Into<Option<String>>);
        /// Variables of the query, each with the terms that it may take; has the effect of a VALUES for each variable
        /// at the start of the WHERE clause. It is an error if the query assigns a value to such a variable (BIND,
        /// `AS`), or if a term is a blank node.
        ///
        /// ```
        /// # let db = jindou::Database::in_memory();
        /// # let data = "INSERT DATA { <http://e/a> <http://e/p> 1 . <http://e/b> <http://e/p> 2 }";
        /// # db.update(data, &Default::default())?;
        /// let list = vec![oxrdf::NamedNode::new_unchecked("http://e/a").into()];
        /// let options = jindou::QueryOptions::default().with_values(vec![("s".into(), list)]);
        /// let answer = db.query_with("SELECT ?s { ?s <http://e/p> ?o }", &options)?;
        /// assert_eq!(answer.solutions().len(), 1);
        /// # Ok::<(), jindou::Error>(())
        /// ```
        pub values: Vec<(String, Vec<Term>)> = Vec::new(), with_values(Vec<(String, Vec<Term>)>);
    }
}

/// A dataset given alongside the query (SPARQL 1.1 Protocol, section 2.1.4), which replaces the query's own `FROM` and
/// `FROM NAMED`. Graphs that the store does not contain are empty. An empty IRI stands for the default graph that a
/// query without any dataset reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetChoice {
    /// IRIs of the graphs whose union is the default graph.
    pub default: Vec<String>,
    /// IRIs of the named graphs.
    pub named: Vec<String>,
}

impl DatasetChoice {
    pub(crate) fn dataset(&self) -> Result<QueryDataset> {
        let nodes = |list: &[String]| -> Result<Vec<NamedNode>> {
            list.iter()
                .map(|iri| {
                    oxrdf::NamedNode::new(iri)
                        .map(NamedNode::from)
                        .map_err(|e| Error::Query(format!("the graph <{iri}> is not an IRI: {e}")))
                })
                .collect()
        };
        let own = self.default.iter().filter(|iri| iri.is_empty()).count();
        let default = match own {
            0 => nodes(&self.default)?,
            // The empty IRI stands for the store's default graph; a query's text cannot contain it.
            n if n == self.default.len() => vec![NamedNode::new_unchecked("")],
            _ => {
                return Err(Error::Query(
                    "the dataset merges the store's default graph (an empty name) with named graphs, which is not possible; choose only one of the two".into(),
                ));
            }
        };
        Ok(QueryDataset {
            default,
            named: Some(nodes(&self.named)?),
        })
    }

    pub(crate) fn apply(&self, query: &mut Query) -> Result<()> {
        let chosen = self.dataset()?;
        *query.dataset_mut() = Some(chosen);
        Ok(())
    }

    /// The plan cache's key for a text over this dataset. A valid query never begins with a zero byte, so keys are
    /// distinct.
    pub(crate) fn key(&self, text: &str) -> String {
        let mut out = String::new();
        for (tag, list) in [('d', &self.default), ('n', &self.named)] {
            for iri in list {
                out.extend(['\0', tag]);
                out.push_str(iri);
            }
        }
        out + "\0\0" + text
    }
}

impl QueryOptions {
    /// The plan cache's key for a text with these options. A valid query never begins with a zero byte, so keys are
    /// distinct.
    pub(crate) fn keyed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut keyed = match &self.dataset {
            Some(d) => Cow::Owned(d.key(text)),
            None => Cow::Borrowed(text),
        };
        if !self.common_prefixes {
            keyed = format!("\0c{keyed}").into();
        }
        // The parts are separated by zero bytes, which do not occur in IRIs, names or the key of the dataset.
        if !self.prefixes.is_empty() {
            let all = self.prefixes.iter();
            let all: String = all.map(|(n, i)| format!("\0p{n}\0{i}")).collect();
            keyed = format!("{all}\0\0{keyed}").into();
        }
        if let Some(base) = &self.base {
            keyed = format!("\0b{base}\0{keyed}").into();
        }
        if !self.values.is_empty() {
            keyed = values::key(&self.values, &keyed).into();
        }
        keyed
    }

    /// The version of the store's prefixes for a query over this snapshot; 0 if the options exclude the store's
    /// prefixes.
    pub(crate) fn prefixes_of(&self, snapshot: &Snapshot) -> u64 {
        match self.store_prefixes {
            true => snapshot.prefixes().version(),
            false => 0,
        }
    }

    /// Options of the parser for a query over this snapshot.
    pub(crate) fn syntax(&self, snapshot: &Snapshot) -> SyntaxOptions {
        SyntaxOptions {
            common_prefixes: self.common_prefixes,
            calls: Some(Arc::new(self.functions.clone())),
            prefixes: self.prefixes.clone(),
            table: self.store_prefixes.then(|| Arc::clone(snapshot.prefixes())),
            ..SyntaxOptions::under(self.base.as_deref())
        }
    }

    /// The query's cancel token, whose time limit starts now.
    pub(crate) fn token(&self) -> CancelToken {
        match self.timeout {
            Some(limit) => self.cancel.limited(limit),
            None => self.cancel.clone(),
        }
    }
}
