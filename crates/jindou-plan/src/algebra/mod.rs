//! Texts become algebra, which is dropped without recursion, however deep a text makes it. Memory and time are those of the
//! [scope](jindou_model::scope) that the thread is inside.

mod describe;
mod dismantle;
mod size;

use crate::parse::{Meter, SyntaxOptions, parse_with};
use crate::update::{Operation, Request, parse_update_with};
use jindou_model::{Error, Resource, Result, scope};
use size::Size;
pub(crate) use size::expression_bytes;
use spargebra::{GraphUpdateOperation, Query};
use std::ops::{Deref, DerefMut};

/// Most levels of algebra: FILTERs, BINDs and OPTIONALs that follow each other, sub-queries, terms of a sum. UNIONs, paths and
/// chains of `||` and `&&` of any length are some levels only.
pub const MAX_DEPTH: usize = 5_000;

/// Most levels of one expression: arguments of functions inside each other, terms of a sum. The engine compiles no deeper ones.
pub const MAX_EXPRESSION_DEPTH: usize = 2_500;

/// Stack for each level that something recurses into, above what every thread has.
const STACK_A_LEVEL: usize = 64 << 10;
/// Of that, what is ever written to, about: the system gives the rest no memory.
const TOUCHED_A_LEVEL: u64 = 4 << 10;
/// Levels that an ordinary thread's stack surely holds.
pub(crate) const PLAIN_DEPTH: usize = 40;

/// A parsed query.
#[derive(Debug)]
pub struct Parsed {
    query: Option<Query>,
    size: Size,
}

impl Parsed {
    /// Takes a query that was made otherwise than by [`read`].
    ///
    /// # Errors
    /// [`Error::Limit`] when it is deeper than [`MAX_DEPTH`].
    pub fn of(query: Query) -> Result<Self> {
        let query = describe::flat(query);
        let size = size::of_query(&query);
        // From here on it is dropped without recursion.
        let parsed = Self {
            query: Some(query),
            size,
        };
        shallow(&size)?;
        Ok(parsed)
    }

    /// The query, to be dropped by who takes it ([`drop_query`] does without recursion).
    #[must_use]
    pub fn into_query(mut self) -> Query {
        self.query.take().unwrap_or_else(empty)
    }

    /// Levels of the algebra.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.size.depth
    }
}

fn empty() -> Query {
    Query::Ask {
        dataset: None,
        pattern: spargebra::algebra::GraphPattern::Bgp { patterns: vec![] },
        base_iri: None,
    }
}

/// Drops a query without recursion. O(query).
pub fn drop_query(query: &mut Query) {
    dismantle::query(std::mem::replace(query, empty()));
}

impl Deref for Parsed {
    type Target = Query;

    fn deref(&self) -> &Query {
        match &self.query {
            Some(query) => query,
            // Only dropping takes it.
            None => unreachable!("a parsed query has its algebra until it is dropped"),
        }
    }
}

impl DerefMut for Parsed {
    fn deref_mut(&mut self) -> &mut Query {
        match &mut self.query {
            Some(query) => query,
            None => unreachable!("a parsed query has its algebra until it is dropped"),
        }
    }
}

impl Drop for Parsed {
    fn drop(&mut self) {
        if let Some(query) = self.query.take() {
            dismantle::query(query);
        }
    }
}

/// A parsed update.
#[derive(Debug)]
pub struct ParsedUpdate {
    /// The request.
    pub request: Request,
    /// Levels of the deepest operation's algebra.
    pub depth: usize,
}

impl Drop for Operation {
    fn drop(&mut self) {
        let nothing = GraphUpdateOperation::InsertData { data: vec![] };
        dismantle::operation(std::mem::replace(&mut self.operation, nothing));
    }
}

/// What a thread's stack for so many levels takes, about.
fn stack(depth: usize) -> u64 {
    depth as u64 * TOUCHED_A_LEVEL
}

fn shallow(size: &Size) -> Result<()> {
    let (depth, nested) = (size.depth, size.nested);
    if nested > MAX_EXPRESSION_DEPTH {
        return Err(Error::limit(
            Resource::Form,
            format!(
                "an expression is {nested} levels deep; at most {MAX_EXPRESSION_DEPTH} are evaluated: bind parts of it to variables"
            ),
        ));
    }
    if depth > MAX_DEPTH {
        return Err(Error::limit(
            Resource::Form,
            format!(
                "the query is {depth} levels deep (FILTERs, BINDs and OPTIONALs of one group count one each); at most {MAX_DEPTH} are planned: ask in parts"
            ),
        ));
    }
    Ok(())
}

/// Parses a query within the limits of the [scope](jindou_model::scope) that the thread is inside.
///
/// # Errors
/// Those of [`parse_with`]; [`Error::Limit`] also when it is deeper than [`MAX_DEPTH`]; those of [`scope::look`].
pub fn read(text: &str, options: &SyntaxOptions) -> Result<Parsed> {
    scope::look()?;
    let query = parse_with(text, options, &mut Scoped)?;
    let parsed = Parsed::of(query)?;
    scope::look()?;
    Ok(parsed)
}

/// Parses an update within the limits of the [scope](jindou_model::scope) that the thread is inside.
///
/// # Errors
/// Those of [`parse_update_with`] and [`read`].
pub fn read_update(text: &str, options: &SyntaxOptions) -> Result<ParsedUpdate> {
    scope::look()?;
    let request = parse_update_with(text, options, &mut Scoped)?;
    let mut parsed = ParsedUpdate { request, depth: 0 };
    for o in &parsed.request.operations {
        let size = size::of_operation(&o.operation);
        parsed.depth = parsed.depth.max(size.depth);
        if let Err(Error::Limit(why)) = shallow(&size) {
            let (line, column) = o.at;
            let at = |why: &str| format!("operation at line {line}, column {column}: {why}");
            return Err(Error::Limit(why.told(at)));
        }
    }
    scope::look()?;
    Ok(parsed)
}

/// The scope's limits.
struct Scoped;

impl Meter for Scoped {
    fn charge(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        scope::look()
    }
}

/// Runs something that recurses into so many levels of algebra or operators, on a stack that holds them and is charged to the
/// [scope](jindou_model::scope).
///
/// # Errors
/// [`Error::Limit`] when the system gives no thread for it; [`Error::Internal`] when it panics.
pub fn with_stack<T: Send>(depth: usize, run: impl FnOnce() -> T + Send) -> Result<T> {
    if depth <= PLAIN_DEPTH {
        return Ok(run());
    }
    let run = scope::carry(run);
    scope::beside(stack(depth), || {
        std::thread::scope(|threads| {
            std::thread::Builder::new()
                .name("deep".into())
                .stack_size((8 << 20) + depth * STACK_A_LEVEL)
                .spawn_scoped(threads, run)
                .map_err(|e| {
                    Error::limit(
                        Resource::Threads,
                        format!("no thread for a deep query: {e}"),
                    )
                })?
                .join()
                .map_err(|_| Error::Internal("a deep query panicked".into()))
        })
    })
}

#[cfg(test)]
mod tests;
