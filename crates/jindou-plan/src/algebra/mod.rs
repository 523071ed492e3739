//! Parsing text into algebra. A tree is dropped without recursion, however deep the text nests
//! ([`jindou_syntax::algebra`]). Memory and time are limited by the [scope](jindou_model::scope) that the thread is
//! inside.

mod depth;
mod describe;

use crate::parse::{SyntaxOptions, parse_with};
use crate::update::{UpdateRequest, parse_update_with};
use depth::Depth;
pub(crate) use depth::is_within as depth_is_within;
use jindou_model::{Error, Resource, Result, scope};
use jindou_syntax::algebra::Query;
use std::ops::{Deref, DerefMut};

/// Maximum depth of the algebra: FILTERs, BINDs and OPTIONALs that follow each other, sub-queries, terms of a sum.
/// UNIONs, paths and chains of `||` and `&&` add only a few levels, whatever their length.
pub const MAX_DEPTH: usize = 5_000;

/// Maximum depth of one expression: nested function arguments, terms of a sum. The engine compiles nothing deeper.
pub const MAX_EXPRESSION_DEPTH: usize = 2_500;

/// Stack reserved for each level of recursion, on top of what every thread has.
const STACK_A_LEVEL: usize = 64 << 10;
/// Approximate part of [`STACK_A_LEVEL`] that is really written to; the system allocates no memory for the rest.
const TOUCHED_A_LEVEL: u64 = 4 << 10;
/// Levels that fit on an ordinary thread's stack.
pub(crate) const PLAIN_DEPTH: usize = 40;

/// A parsed query.
#[derive(Debug)]
pub struct Parsed {
    query: Query,
    depth: Depth,
}

impl Parsed {
    /// Wraps a query that did not come from [`read`].
    ///
    /// # Errors
    /// [`Error::Limit`] when it is deeper than [`MAX_DEPTH`].
    pub fn from_query(query: Query) -> Result<Self> {
        let query = describe::flat(query);
        let depth = depth::of_query(&query);
        shallow(depth)?;
        Ok(Self { query, depth })
    }

    /// The query.
    #[must_use]
    pub fn into_query(self) -> Query {
        self.query
    }

    /// Depth of the algebra.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth.all
    }
}

impl Deref for Parsed {
    type Target = Query;

    fn deref(&self) -> &Query {
        &self.query
    }
}

impl DerefMut for Parsed {
    fn deref_mut(&mut self) -> &mut Query {
        &mut self.query
    }
}

/// A parsed update.
#[derive(Debug)]
pub struct ParsedUpdate {
    /// The request.
    pub request: UpdateRequest,
    /// Depth of the deepest operation's algebra.
    pub depth: usize,
}

/// Approximate bytes of stack that this many levels write to.
fn stack(depth: usize) -> u64 {
    depth as u64 * TOUCHED_A_LEVEL
}

fn shallow(depth: Depth) -> Result<()> {
    let (depth, nested) = (depth.all, depth.expressions);
    if nested > MAX_EXPRESSION_DEPTH {
        return Err(Error::limit(
            Resource::Form,
            format!(
                "an expression is {nested} levels deep; at most {MAX_EXPRESSION_DEPTH} are supported: bind parts of it to variables"
            ),
        ));
    }
    if depth > MAX_DEPTH {
        return Err(Error::limit(
            Resource::Form,
            format!(
                "the query is {depth} levels deep (each FILTER, BIND and OPTIONAL of a group counts as one); at most {MAX_DEPTH} are supported: split the query"
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
    let query = parse_with(text, options)?;
    let parsed = Parsed::from_query(query)?;
    scope::look()?;
    Ok(parsed)
}

/// Parses an update within the limits of the [scope](jindou_model::scope) that the thread is inside.
///
/// # Errors
/// Those of [`parse_update_with`] and [`read`].
pub fn read_update(text: &str, options: &SyntaxOptions) -> Result<ParsedUpdate> {
    scope::look()?;
    let request = parse_update_with(text, options)?;
    let mut parsed = ParsedUpdate { request, depth: 0 };
    for o in &parsed.request.operations {
        let depth = depth::of_operation(&o.operation);
        parsed.depth = parsed.depth.max(depth.all);
        if let Err(Error::Limit(why)) = shallow(depth) {
            let (line, column) = o.at;
            let at = |why: &str| format!("operation at line {line}, column {column}: {why}");
            return Err(Error::Limit(why.told(at)));
        }
    }
    scope::look()?;
    Ok(parsed)
}

/// Runs a closure that recurses into this many levels of algebra or operators on a stack large enough for them. The
/// stack is charged to the [scope](jindou_model::scope).
///
/// # Errors
/// [`Error::Limit`] when the system cannot start a thread for it.
pub fn with_stack<T: Send>(depth: usize, run: impl FnOnce() -> T + Send) -> Result<T> {
    if depth <= PLAIN_DEPTH {
        return Ok(run());
    }
    let run = scope::carry(run);
    scope::beside(stack(depth), || {
        std::thread::scope(|threads| {
            let done = std::thread::Builder::new()
                .name("deep".into())
                .stack_size((8 << 20) + depth * STACK_A_LEVEL)
                .spawn_scoped(threads, run)
                .map_err(|e| {
                    Error::limit(
                        Resource::Threads,
                        format!("cannot start a thread for a deeply nested query: {e}"),
                    )
                })?
                .join();
            Ok(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

#[cfg(test)]
mod tests;
