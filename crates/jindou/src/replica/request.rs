//! Encoding of changes and their answers, with which any server can forward a change to the writer.
//!
//! ```text
//! request  length of the header, header (JSON), the update's text or the quads' changes
//! answer   JSON
//! ```

use crate::options::DatasetChoice;
use crate::update::{Change, Condition, GraphName, QuadChange, UpdateOptions, UpdateReport};
use jindou_model::prefixes::PrefixChange;
use jindou_model::{Error, Invariant, Limit, Location, Resource, Result};
use jindou_parse::{BadStatement, SkipReport};
use jindou_store::Changes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// Options that are sent along with a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SentOptions {
    pub timeout: Option<Duration>,
    pub union_default: Option<bool>,
    pub using: Option<[Vec<String>; 2]>,
    pub base: Option<String>,
    pub only: Option<GraphName>,
    pub service: bool,
    pub documents: bool,
    pub lenient: bool,
    pub common_prefixes: bool,
    pub store_prefixes: bool,
    pub prefixes: Vec<(String, String)>,
    /// Sent in [`Kind::If`] instead, so that a server that does not know conditions cannot ignore it.
    #[serde(skip)]
    pub condition: Option<Condition>,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    /// A change that is applied only if a condition holds. Servers with versions that do not know conditions reject it.
    If(Condition, Box<Self>),
    Update,
    Quads {
        replaced: Option<GraphName>,
        watched: Option<GraphName>,
        prefixes: Vec<PrefixChange>,
    },
    Clear(GraphName),
    SetPrefix(String, String),
    RemovePrefix(String),
    Record {
        after: u64,
        added: u64,
        removed: u64,
    },
    StartMerge(u64),
    CommitMerge(u64),
    FreeTerms(Vec<[u32; 2]>),
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: Kind,
    asked: SentOptions,
    /// Names the graph whose revision the answer must report. A condition that always holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watched: Option<Condition>,
}

impl SentOptions {
    /// # Errors
    /// [`Error::Unsupported`] for options that cannot be sent to another process.
    pub(crate) fn of(options: &UpdateOptions) -> Result<Self> {
        if !options.functions.is_empty() {
            return Err(Error::Unsupported(
                "updates of a replicated store cannot call functions of this program".into(),
            ));
        }
        Ok(Self {
            timeout: options.timeout,
            union_default: options.union_default,
            using: (options.using.as_ref()).map(|u| [u.default.clone(), u.named.clone()]),
            base: options.base.clone(),
            only: options.only.clone(),
            service: options.service.is_some(),
            documents: options.documents.is_some(),
            lenient: options.lenient,
            common_prefixes: options.common_prefixes,
            store_prefixes: options.store_prefixes,
            prefixes: options.prefixes.clone(),
            condition: options.condition.clone(),
        })
    }

    /// The options for evaluating the change, with the HTTP clients and at most the time limit of this server's `own`.
    pub(crate) fn options(self, own: &UpdateOptions) -> UpdateOptions {
        UpdateOptions {
            timeout: match (self.timeout, own.timeout) {
                (Some(asked), Some(own)) => Some(asked.min(own)),
                (asked, own) => asked.or(own),
            },
            union_default: self.union_default,
            using: self
                .using
                .map(|[default, named]| DatasetChoice { default, named }),
            base: self.base,
            only: self.only,
            service: own.service.clone().filter(|_| self.service),
            documents: own.documents.clone().filter(|_| self.documents),
            lenient: self.lenient,
            common_prefixes: self.common_prefixes,
            store_prefixes: self.store_prefixes,
            prefixes: self.prefixes,
            condition: self.condition,
            ..own.clone()
        }
    }
}

/// A change that is sent to the writer.
pub(crate) enum SentChange<'c> {
    Change(Change<'c>),
    /// The record of a transaction that was evaluated over the snapshot with the number `after`.
    Record {
        after: u64,
        record: &'c [u8],
        added: u64,
        removed: u64,
    },
    /// Starts a merge by all servers of a sharded store, over the base with this number.
    StartMerge(u64),
    /// Commits the base with this number, with the encoded results of its merge.
    CommitMerge(u64, &'c [u8]),
    /// Frees those of the terms in these runs of tail ids that no quad uses.
    FreeTerms(Vec<[u32; 2]>),
}

/// Encodes a change.
///
/// # Errors
/// [`Error::Limit`] for options that are too long.
pub(crate) fn write(change: &SentChange<'_>, asked: &SentOptions) -> Result<Vec<u8>> {
    let mut payload = Vec::new();
    let kind = match change {
        SentChange::Change(Change::Update(text)) => {
            payload.extend_from_slice(text.as_bytes());
            Kind::Update
        }
        SentChange::Change(Change::Quads(quads)) => {
            quads.changes.write(&mut payload);
            Kind::Quads {
                replaced: quads.replaced.clone(),
                watched: quads.reported_graph.clone(),
                prefixes: quads.prefixes.clone(),
            }
        }
        SentChange::Change(Change::Clear(graph)) => Kind::Clear(graph.clone()),
        SentChange::Change(Change::SetPrefix(name, iri)) => {
            Kind::SetPrefix(name.clone(), iri.clone())
        }
        SentChange::Change(Change::RemovePrefix(name)) => Kind::RemovePrefix(name.clone()),
        SentChange::Record {
            after,
            record,
            added,
            removed,
        } => {
            payload.extend_from_slice(record);
            Kind::Record {
                after: *after,
                added: *added,
                removed: *removed,
            }
        }
        SentChange::StartMerge(base) => Kind::StartMerge(*base),
        SentChange::CommitMerge(base, result) => {
            payload.extend_from_slice(result);
            Kind::CommitMerge(*base)
        }
        SentChange::FreeTerms(runs) => Kind::FreeTerms(runs.clone()),
    };
    let (kind, watched) = match &asked.condition {
        Some(condition) if !condition.is_always() => {
            (Kind::If(condition.clone(), Box::new(kind)), None)
        }
        condition => (kind, condition.clone()),
    };
    let header = Header {
        kind,
        asked: asked.clone(),
        watched,
    };
    let header = serde_json::to_vec(&header).ok();
    let header = header.invariant("a header has only what JSON can express");
    let mut out = Vec::with_capacity(4 + header.len() + payload.len());
    let length = u32::try_from(header.len());
    let length = length.map_err(|_| Error::limit(Resource::Form, "the options are too long"))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&header);
    out.append(&mut payload);
    Ok(out)
}

/// Decodes a change that this server or another one encoded.
///
/// # Errors
/// [`Error::Internal`] if the bytes cannot be decoded.
pub(crate) fn read(bytes: &[u8]) -> Result<(SentChange<'_>, SentOptions)> {
    let damaged = || Error::Internal("a change cannot be decoded".into());
    let (length, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (header, payload) = rest.split_at_checked(length).ok_or_else(damaged)?;
    let Header {
        mut kind,
        mut asked,
        watched,
    } = serde_json::from_slice(header).map_err(|_| damaged())?;
    asked.condition = watched;
    if let Kind::If(condition, of) = kind {
        asked.condition = Some(condition);
        kind = *of;
    }
    let change = match kind {
        Kind::If(..) => return Err(damaged()),
        Kind::StartMerge(base) => return Ok((SentChange::StartMerge(base), asked)),
        Kind::CommitMerge(base) => return Ok((SentChange::CommitMerge(base, payload), asked)),
        Kind::FreeTerms(runs) => return Ok((SentChange::FreeTerms(runs), asked)),
        Kind::Update => {
            let text = std::str::from_utf8(payload).map_err(|_| damaged())?;
            Change::Update(text.into())
        }
        Kind::Quads {
            replaced,
            watched,
            prefixes,
        } => Change::Quads(QuadChange {
            changes: Cow::Owned(Changes::read(payload).ok_or_else(damaged)?),
            replaced,
            reported_graph: watched,
            prefixes,
            charge: None,
        }),
        Kind::Clear(graph) => Change::Clear(graph),
        Kind::SetPrefix(name, iri) => Change::SetPrefix(name, iri),
        Kind::RemovePrefix(name) => Change::RemovePrefix(name),
        Kind::Record {
            after,
            added,
            removed,
        } => {
            let record = SentChange::Record {
                after,
                record: payload,
                added,
                removed,
            };
            return Ok((record, asked));
        }
    };
    Ok((SentChange::Change(change), asked))
}

/// The answer to a change.
#[derive(Serialize, Deserialize)]
enum Answer {
    Done(Done),
    Failed(Failed),
}

/// Remembered for minutes for each update, so without what most updates have not.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Done {
    operations: usize,
    added: u64,
    removed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph_was_there: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Skipped>,
    parse_micros: u64,
    run_micros: u64,
}

#[derive(Serialize, Deserialize)]
struct Skipped {
    statements: u64,
    first: Vec<(String, u64, u64, String, Option<String>)>,
    documents: u64,
    bytes: u64,
    elements: u64,
}

#[derive(Serialize, Deserialize)]
enum Failed {
    Syntax(String, u64, u64, String, Option<String>),
    Query(String),
    Unsupported(String),
    Limit(SentLimit),
    Busy(SentLimit),
    Timeout(Duration),
    Conflict(String),
    Precondition(String),
    Service(String, String, bool),
    Document(String, String, bool),
    Shard(u32, String),
    Cancelled,
    Internal(String),
    Other(String),
}

/// Resources by their codes, which are their positions.
const RESOURCES: [Resource; 8] = [
    Resource::Memory,
    Resource::Disk,
    Resource::Device,
    Resource::Numbers,
    Resource::Threads,
    Resource::Form,
    Resource::Answer,
    Resource::Changes,
];
/// Code for a resource that is not in [`RESOURCES`].
const UNLISTED: u8 = u8::MAX;

/// A limit: the code of its resource, its size if that is known, and its message.
type SentLimit = (u8, Option<u64>, String);

fn limit_of(limit: &Limit) -> SentLimit {
    let at = RESOURCES.iter().position(|r| *r == limit.resource);
    let code = at.map_or(UNLISTED, |at| at as u8);
    (code, limit.limit, limit.to_string())
}

/// The error for a limit that was reached; [`Error::Internal`] if this version does not know the code of its resource.
fn reached((resource, most, message): SentLimit, error: fn(Limit) -> Error) -> Error {
    let Some(resource) = RESOURCES.get(usize::from(resource)) else {
        return Error::Internal(message);
    };
    let limit = Limit::new(*resource, message);
    error(match most {
        Some(most) => limit.of(most),
        None => limit,
    })
}

/// Encodes the answer to an update that ended with an error.
pub(crate) fn write_failure(error: &Error) -> Vec<u8> {
    write_answer(&Err(error.duplicate()))
}

pub(crate) fn write_answer(answer: &Result<UpdateReport>) -> Vec<u8> {
    let answer = match answer {
        Ok(report) => Answer::Done(Done {
            operations: report.operations,
            added: report.added,
            removed: report.removed,
            graph_was_there: report.graph_was_there,
            revision: report.revision,
            skipped: report.skipped.as_ref().map(|skipped| {
                let first = skipped.first.iter();
                let first = first.map(|bad| {
                    let at = bad.at.clone();
                    (
                        at.file,
                        at.line,
                        at.column,
                        bad.message.clone(),
                        bad.text.clone(),
                    )
                });
                Skipped {
                    statements: skipped.statements,
                    first: first.collect(),
                    documents: skipped.rest.documents,
                    bytes: skipped.rest.bytes,
                    elements: skipped.rest.elements,
                }
            }),
            parse_micros: report.parse_time.as_micros() as u64,
            run_micros: report.run_time.as_micros() as u64,
        }),
        Err(error) => Answer::Failed(match error {
            Error::Syntax { at, message, text } => {
                let at = at.clone();
                Failed::Syntax(at.file, at.line, at.column, message.clone(), text.clone())
            }
            Error::Query(why) => Failed::Query(why.clone()),
            Error::Unsupported(why) => Failed::Unsupported(why.clone()),
            Error::Limit(limit) => Failed::Limit(limit_of(limit)),
            Error::Busy(limit) => Failed::Busy(limit_of(limit)),
            Error::Timeout(limit) => Failed::Timeout(*limit),
            Error::Conflict(why) => Failed::Conflict(why.clone()),
            Error::Precondition(why) => Failed::Precondition(why.clone()),
            Error::Service {
                endpoint,
                message,
                allowed,
            } => Failed::Service(endpoint.clone(), message.clone(), *allowed),
            Error::Document {
                iri,
                message,
                allowed,
            } => Failed::Document(iri.clone(), message.clone(), *allowed),
            Error::Shard { shard, message } => Failed::Shard(*shard, message.clone()),
            Error::Cancelled => Failed::Cancelled,
            Error::Internal(why) => Failed::Internal(why.clone()),
            other => Failed::Other(other.to_string()),
        }),
    };
    serde_json::to_vec(&answer).unwrap_or_default()
}

/// Decodes the error in the answer to a refused change.
pub(crate) fn read_refusal(bytes: &[u8]) -> Error {
    match serde_json::from_slice::<Answer>(bytes) {
        Ok(_) => (read_answer(bytes).err())
            .unwrap_or_else(|| Error::Internal("an update was refused without a reason".into())),
        // A plain-text reason of the driver, not of the application.
        Err(_) => Error::limit(Resource::Form, String::from_utf8_lossy(bytes)),
    }
}

/// Decodes an answer that another server sent.
///
/// # Errors
/// The error that the change ended with; [`Error::Internal`] if the bytes cannot be decoded, with the bytes as its
/// message.
pub(crate) fn read_answer(bytes: &[u8]) -> Result<UpdateReport> {
    let answer = match serde_json::from_slice(bytes) {
        Ok(answer) => answer,
        Err(_) => return Err(Error::Internal(String::from_utf8_lossy(bytes).into_owned())),
    };
    let failed = match answer {
        Answer::Done(done) => {
            return Ok(UpdateReport {
                operations: done.operations,
                added: done.added,
                removed: done.removed,
                graph_was_there: done.graph_was_there,
                revision: done.revision,
                skipped: done.skipped.map(|skipped| {
                    let mut report = SkipReport::default();
                    report.statements = skipped.statements;
                    let first = skipped.first.into_iter();
                    report.first = first
                        .map(|(file, line, column, message, text)| {
                            BadStatement::new(Location { file, line, column }, message, text)
                        })
                        .collect();
                    report.rest.documents = skipped.documents;
                    report.rest.bytes = skipped.bytes;
                    report.rest.elements = skipped.elements;
                    report
                }),
                parse_time: Duration::from_micros(done.parse_micros),
                run_time: Duration::from_micros(done.run_micros),
                ..UpdateReport::default()
            });
        }
        Answer::Failed(failed) => failed,
    };
    Err(match failed {
        Failed::Syntax(file, line, column, message, text) => Error::Syntax {
            at: Location { file, line, column },
            message,
            text,
        },
        Failed::Query(why) => Error::Query(why),
        Failed::Unsupported(why) => Error::Unsupported(why),
        Failed::Limit(limit) => reached(limit, Error::Limit),
        Failed::Busy(limit) => reached(limit, Error::Busy),
        Failed::Internal(why) => Error::Internal(why),
        Failed::Timeout(limit) => Error::Timeout(limit),
        Failed::Conflict(why) => Error::Conflict(why),
        Failed::Precondition(why) => Error::Precondition(why),
        Failed::Service(endpoint, message, allowed) => Error::Service {
            endpoint,
            message,
            allowed,
        },
        Failed::Document(iri, message, allowed) => Error::Document {
            iri,
            message,
            allowed,
        },
        Failed::Shard(shard, message) => Error::Shard { shard, message },
        Failed::Cancelled => Error::Cancelled,
        Failed::Other(why) => Error::external(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_their_kind() {
        for resource in RESOURCES {
            let error = Error::limit(resource, "too much");
            let Error::Limit(read) = read_refusal(&write_failure(&error)) else {
                panic!("{resource:?}");
            };
            assert_eq!(read.resource, resource);
        }
        let told = Failed::Limit((UNLISTED, None, "too much of it".to_owned()));
        let bytes = serde_json::to_vec(&Answer::Failed(told)).unwrap();
        let error = read_refusal(&bytes);
        assert!(
            matches!(&error, Error::Internal(why) if why == "too much of it"),
            "{error:?}"
        );
        let error = read_refusal(&write_failure(&Error::Internal("a bug at x.rs:1".into())));
        assert!(
            matches!(&error, Error::Internal(why) if why == "a bug at x.rs:1"),
            "{error:?}"
        );
    }
}
