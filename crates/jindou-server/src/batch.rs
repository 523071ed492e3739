//! Many queries in one request: the request is a JSON array or lines of JSON; the answer has one line of SPARQL Results
//! JSON for each query, in the same order.
//!
//! For admission, a batch counts as one query, with one time limit and one memory budget. Its queries run one after the
//! other on one thread, in a slot for light queries. A query that takes too long for that releases the slot, and starts
//! again in a slot for heavy queries.

use crate::admission::limits::WorkClass;
use crate::admission::{AdmissionRequest, Admitted};
use crate::live::{LiveQuery, QueryState};
use crate::piece;
use crate::problem::Problem;
use crate::registry::RegisteredQuery;
use crate::run::{AnswerFailure, Connection};
use crate::shared::AppState;
use crate::slots::QuerySlot;
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use jindou::{
    Error, MemoryBudget, QueryOptions, Resource, ResultFormat, ResultWriter, Session, Value,
};
use oxrdf::Term;
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Largest number of queries in a batch.
const MOST: usize = 100_000;
/// Longest time for which one query of a batch may run in a light slot.
const LIGHT_TIME: Duration = Duration::from_millis(2);

/// The error for an id of a prepared query that does not exist.
pub(crate) fn unknown(id: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "prepared",
        format!(
            "no prepared query {id} (any more); POST its text and parameters to /prepared again"
        ),
    )
}

/// Answers a request with a batch.
pub(crate) async fn answer(
    shared: &Arc<AppState>,
    text: Vec<u8>,
    timeout: Option<Duration>,
    tag: Option<String>,
    connection: &Connection,
) -> Result<Response<Body>, Problem> {
    let asked = AdmissionRequest::new("(a batch of prepared queries)", timeout);
    let lines = piece::run(shared, connection, &asked, tag, move |shared, admitted| {
        run_all(shared, admitted, &text)
    });
    let mut response = Response::new(Body::from(lines.await?));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    Ok(response)
}

struct Runner<'a> {
    shared: &'a AppState,
    admitted: &'a Admitted,
    query: &'a LiveQuery,
    options: QueryOptions,
    sessions: FxHashMap<u64, Session>,
    slot: QuerySlot,
    heavy: bool,
    /// True once a query of the batch was moved to a heavy slot.
    moved: bool,
    /// Bytes of the answer that are charged to the query's memory.
    charged: u64,
}

/// Runs all queries of a batch, and returns their lines.
fn run_all(shared: &AppState, admitted: &Admitted, text: &[u8]) -> Result<Vec<u8>, AnswerFailure> {
    let query = &*admitted.query;
    let slot = piece::light_slot(shared, query)?;
    query.set_state(QueryState::Running);
    let computing = Instant::now();
    let mut options = QueryOptions::default()
        .with_threads(1)
        .with_memory(query.memory.clone())
        .with_cancel(query.token())
        .with_union_default(shared.options.union_default)
        .with_common_prefixes(shared.options.common_prefixes)
        .with_store_prefixes(shared.options.store_prefixes);
    options.service.clone_from(&shared.options.service);
    let mut runner = Runner {
        shared,
        admitted,
        query,
        options,
        sessions: FxHashMap::default(),
        slot,
        heavy: false,
        moved: false,
        charged: 0,
    };
    let mut out = Vec::new();
    let done = runner.all(text, &mut out);
    if !runner.moved {
        // The time is recorded only if the batch did not wait for a heavy slot, since waiting is not computing.
        shared
            .admission
            .served(WorkClass::Light, computing.elapsed());
    }
    query.memory.release(runner.charged);
    query.bytes.store(out.len() as u64, Ordering::Relaxed);
    done.map(|()| out).map_err(AnswerFailure::running)
}

impl Runner<'_> {
    fn all(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let is_array = text.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
        if is_array {
            // A parsed JSON array takes several times the memory of its text.
            let bytes = text.len() as u64 * 8;
            self.query.memory.charge(bytes)?;
            let all: Result<Vec<Json>, _> = serde_json::from_slice(text);
            let done = match all {
                Ok(list) => list
                    .iter()
                    .enumerate()
                    .try_for_each(|(n, item)| self.item(n, Ok(item), out)),
                Err(e) => Err(Error::Query(format!("the batch is not JSON: {e}"))),
            };
            self.query.memory.release(bytes);
            return done;
        }
        let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
        for (n, line) in lines.filter(|l| !l.is_empty()).enumerate() {
            match serde_json::from_slice::<Json>(line) {
                Ok(item) => self.item(n, Ok(&item), out)?,
                Err(e) => self.item(n, Err(e.to_string()), out)?,
            }
        }
        Ok(())
    }

    /// Appends the line of one query. An error of the query becomes its line; an error that ends the batch is returned.
    fn item(
        &mut self,
        n: usize,
        item: Result<&Json, String>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if n >= MOST {
            return Err(Error::limit(
                Resource::Form,
                format!("a batch has at most {MOST} queries"),
            ));
        }
        self.query.check()?;
        let from = out.len();
        let answered = item
            .map_err(|e| Problem::bad_request(format!("the line is not JSON: {e}")))
            .and_then(|item| self.answer(item, out));
        if let Err(problem) = answered {
            self.query.check()?;
            out.truncate(from);
            let line = serde_json::json!({ "error": problem.document() }).to_string();
            self.room(out).write_all(line.as_bytes()).map_err(|_| {
                Error::limit(
                    Resource::Answer,
                    "the batch's answers are too long; ask in smaller batches",
                )
            })?;
        }
        out.push(b'\n');
        Ok(())
    }

    fn answer(&mut self, item: &Json, out: &mut Vec<u8>) -> Result<(), Problem> {
        let id = item["id"].as_str().ok_or_else(|| {
            Problem::bad_request(
                "each query of a batch must have the form {\"id\": …, \"values\": {…}}",
            )
        })?;
        let number = u64::from_str_radix(id, 16).map_err(|_| unknown(id))?;
        if !self.sessions.contains_key(&number) {
            let found: RegisteredQuery = self
                .shared
                .prepared
                .get(number)
                .ok_or_else(|| unknown(id))?;
            self.sessions.insert(number, found.session(self.admitted));
        }
        let Some(session) = self.sessions.get_mut(&number) else {
            return Err(unknown(id));
        };
        let prepared = session.prepared();
        let names = prepared.parameters();
        let given = item["values"].as_object();
        let mut terms = Vec::with_capacity(names.len());
        for name in names {
            let text = given
                .and_then(|v| v.get(name))
                .and_then(Json::as_str)
                .ok_or_else(|| {
                    Problem::bad_request(format!("no value for the parameter ${name}"))
                })?;
            terms.push(GivenTerm::parse(text).map_err(|e| {
                Problem::bad_request(format!(
                    "${name}: '{text}' is not a term as in N-Triples: {e}"
                ))
            })?);
        }
        let values: Vec<Value<'_>> = terms.iter().map(GivenTerm::value).collect();
        let from = out.len();
        let left = self.query.left();
        self.options.timeout = Some(if self.heavy {
            left
        } else {
            LIGHT_TIME.min(left)
        });
        let room = Room::for_row(self.shared, self.query, &mut self.charged, out);
        let ran = run(session, &values, &self.options, room);
        let ran = match ran {
            Err(Error::Timeout(_)) if !self.heavy => {
                // The query took too long for a light one: it starts again in a heavy slot.
                out.truncate(from);
                self.swap(true).map_err(|e| Problem::from_error(&e))?;
                self.options.timeout = Some(self.query.left());
                self.options.threads = Some(self.shared.options.threads);
                let Some(session) = self.sessions.get_mut(&number) else {
                    return Err(unknown(id));
                };
                let room = Room::for_row(self.shared, self.query, &mut self.charged, out);
                let again = run(session, &values, &self.options, room);
                self.options.threads = Some(1);
                self.swap(false).map_err(|e| Problem::from_error(&e))?;
                again
            }
            other => other,
        };
        let rows = ran.map_err(|e| Problem::from_error(&e))?;
        let before = self.query.rows.fetch_add(rows, Ordering::Relaxed);
        let most = self.shared.options.max_result_rows.unwrap_or(u64::MAX);
        if before.saturating_add(rows) > most {
            return Err(Problem::from_error(&Error::limit(
                Resource::Answer,
                format!("the batch's answers have more rows than the server's limit of {most}"),
            )));
        }
        Ok(())
    }

    fn room<'o>(&'o mut self, out: &'o mut Vec<u8>) -> Room<'o> {
        Room::for_row(self.shared, self.query, &mut self.charged, out)
    }

    /// Releases the slot, and waits for one of the other class.
    fn swap(&mut self, heavy: bool) -> Result<(), Error> {
        self.slot.give_back();
        self.query.set_state(QueryState::Queued);
        self.slot = self.shared.slots.slot(!heavy);
        self.heavy = heavy;
        self.moved = true;
        self.slot.take(self.query)?;
        self.query.set_state(QueryState::Running);
        Ok(())
    }
}

/// A parameter's value. An IRI is passed on without parsing it as a term.
enum GivenTerm<'t> {
    Iri(&'t str),
    Term(Term),
}

impl<'t> GivenTerm<'t> {
    fn parse(text: &'t str) -> Result<Self, String> {
        if let Some(iri) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>'))
            && !iri.contains(['\\', '<', '>'])
        {
            return Ok(Self::Iri(iri));
        }
        Term::from_str(text)
            .map(Self::Term)
            .map_err(|e| e.to_string())
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Iri(iri) => Value::Iri(iri),
            Self::Term(t) => Value::Term(t),
        }
    }
}

/// The lines so far, whose memory is charged to the batch's budget as they grow.
struct Room<'o> {
    out: &'o mut Vec<u8>,
    charged: &'o mut u64,
    memory: MemoryBudget,
    most: u64,
    refused: Option<Error>,
}

impl<'o> Room<'o> {
    fn for_row(
        shared: &AppState,
        query: &LiveQuery,
        charged: &'o mut u64,
        out: &'o mut Vec<u8>,
    ) -> Self {
        Self {
            out,
            charged,
            memory: query.memory.clone(),
            most: shared.options.max_result_bytes.unwrap_or(u64::MAX),
            refused: None,
        }
    }

    fn make(&mut self, more: usize) -> Result<(), Error> {
        let want = (self.out.len() + more) as u64;
        if want > self.most {
            return Err(Error::limit(
                Resource::Answer,
                format!(
                    "the batch's answers are longer than the server's limit of {} bytes; ask in smaller batches",
                    self.most
                ),
            ));
        }
        if want > *self.charged {
            // The vector's capacity doubles, and the old and the new buffer exist together while it is copied.
            let step = want.next_power_of_two().max(1 << 16) * 2 - *self.charged;
            self.memory.charge(step)?;
            *self.charged += step;
        }
        Ok(())
    }
}

impl Write for Room<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if let Err(e) = self.make(text.len()) {
            self.refused = Some(e);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.out.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs one query, and appends its answer as one line.
fn run(
    session: &mut Session,
    values: &[Value<'_>],
    options: &QueryOptions,
    mut room: Room<'_>,
) -> Result<u64, Error> {
    let from = room.out.len();
    let mut writer = ResultWriter::new(&mut room, ResultFormat::Json);
    let ran = session.run(values, options, &mut writer);
    drop(writer);
    if let Some(refused) = room.refused {
        return Err(refused);
    }
    // A line end in JSON is white space, since line ends in strings are escaped; so it can become a space.
    for b in &mut room.out[from..] {
        if *b == b'\n' {
            *b = b' ';
        }
    }
    Ok(ran?.rows)
}
