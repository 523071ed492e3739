//! Texts become algebra within a budget: what parsing takes is charged before it is taken, algebra is charged as long as it lives,
//! and it is dropped without recursion, however deep a text makes it ([`jindou_syntax::algebra`]).

mod describe;
mod size;

use crate::parse::{Meter, SyntaxOptions, parse_with};
use crate::update::{Operation, Request, parse_update_with};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Resource, Result};
use jindou_syntax::algebra::Query;
use size::Size;
pub(crate) use size::expression_bytes;
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

/// A parsed query: its algebra, and what that is charged for.
#[derive(Debug)]
pub struct Parsed {
    query: Query,
    size: Size,
    charge: Charge,
}

impl Parsed {
    /// Takes a query that was made otherwise than by [`read`].
    ///
    /// # Errors
    /// [`Error::Limit`] when it is deeper than [`MAX_DEPTH`], or the budget has no room for it.
    pub fn of(query: Query, memory: &MemoryBudget) -> Result<Self> {
        Self::charged(query, Charge::new(Holder::Text, memory))
    }

    /// The query and its charge.
    #[must_use]
    pub fn into_parts(self) -> (Query, Charge) {
        (self.query, self.charge)
    }

    fn charged(query: Query, mut charge: Charge) -> Result<Self> {
        let query = describe::flat(query);
        let size = size::of_query(&query);
        shallow(&size)?;
        charge.set(size.bytes + stack(size.depth))?;
        Ok(Self {
            query,
            size,
            charge,
        })
    }

    /// Levels of the algebra.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.size.depth
    }

    /// Bytes of the algebra, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.size.bytes
    }

    /// Charges what planning takes beside the algebra, until this is dropped.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub fn charge_planning(&mut self) -> Result<()> {
        self.charge
            .set(self.size.bytes * 2 + stack(self.size.depth))
    }
}

/// Bytes of a query's algebra on the heap, about. O(query).
pub(crate) fn query_bytes(query: &Query) -> u64 {
    size::of_query(query).bytes
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

/// An update's request, and what its operations are charged for.
#[derive(Debug)]
pub struct ParsedUpdate {
    /// The request.
    pub request: Request,
    /// Levels of the deepest operation's algebra.
    pub depth: usize,
    charge: Charge,
}

impl ParsedUpdate {
    /// Bytes that the operations are charged for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }
}

fn stack(depth: usize) -> u64 {
    if depth <= PLAIN_DEPTH {
        0
    } else {
        depth as u64 * TOUCHED_A_LEVEL
    }
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

/// Parses a query within a budget and a time limit.
///
/// # Errors
/// Those of [`parse_with`]; [`Error::Limit`] also when the budget has no room for it or it is deeper than [`MAX_DEPTH`];
/// [`Error::Timeout`], [`Error::Cancelled`].
pub fn read(
    text: &str,
    options: &SyntaxOptions,
    memory: &MemoryBudget,
    cancel: &CancelToken,
) -> Result<Parsed> {
    let mut meter = Charging::begin(memory, cancel)?;
    let query = parse_with(text, options, &mut meter)?;
    let parsed = Parsed::charged(query, meter.charge)?;
    cancel.check()?;
    Ok(parsed)
}

/// Parses an update within a budget and a time limit.
///
/// # Errors
/// Those of [`parse_update_with`] and [`read`].
pub fn read_update(
    text: &str,
    options: &SyntaxOptions,
    memory: &MemoryBudget,
    cancel: &CancelToken,
) -> Result<ParsedUpdate> {
    let mut meter = Charging::begin(memory, cancel)?;
    let request = parse_update_with(text, options, &mut meter)?;
    let charge = meter.charge;
    let mut parsed = ParsedUpdate {
        request,
        depth: 0,
        charge,
    };
    let mut bytes = 0;
    for o in &parsed.request.operations {
        let size = size::of_operation(&o.operation);
        bytes += size.bytes + size_of::<Operation>() as u64;
        parsed.depth = parsed.depth.max(size.depth);
        if let Err(Error::Limit(why)) = shallow(&size) {
            let (line, column) = o.at;
            let at = |why: &str| format!("operation at line {line}, column {column}: {why}");
            return Err(Error::Limit(why.told(at)));
        }
    }
    parsed.charge.set(bytes + stack(parsed.depth))?;
    cancel.check()?;
    Ok(parsed)
}

/// Meter of a text under way: charges its bytes to a budget, and checks for cancellation.
struct Charging<'a> {
    charge: Charge,
    cancel: &'a CancelToken,
}

impl<'a> Charging<'a> {
    fn begin(memory: &MemoryBudget, cancel: &'a CancelToken) -> Result<Self> {
        cancel.check()?;
        let charge = Charge::new(Holder::Text, memory);
        Ok(Self { charge, cancel })
    }
}

impl Meter for Charging<'_> {
    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.charge.set(self.charge.bytes() + bytes)
    }

    fn check(&mut self) -> Result<()> {
        self.cancel.check()
    }
}

/// Runs something that recurses into so many levels of algebra or operators, on a stack that holds them.
///
/// # Errors
/// [`Error::Limit`] when the system gives no thread for it; [`Error::Internal`] when it panics.
pub fn with_stack<T: Send>(depth: usize, run: impl FnOnce() -> T + Send) -> Result<T> {
    if depth <= PLAIN_DEPTH {
        return Ok(run());
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("deep".into())
            .stack_size((8 << 20) + depth * STACK_A_LEVEL)
            .spawn_scoped(scope, run)
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("no thread for a deep query: {e}"),
                )
            })?
            .join()
            .map_err(|_| Error::Internal("a deep query panicked".into()))
    })
}

#[cfg(test)]
mod tests;
