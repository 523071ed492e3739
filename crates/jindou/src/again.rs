//! Repeats a query over shards if a server fails during it, since other servers may have the same shards.

use crate::results::{AnswerSink, RowText, Rows};
use jindou_engine::{Execution, ExecutorChoice};
use jindou_model::{Error, Result};
use oxrdf::Triple;

/// Runs a query by fork-join. If a shard fails before any row was passed to the sink, runs the query a second time in
/// place, so that its requests go to another server that has the shard.
pub(crate) fn again_in_place<'a, T>(
    execution: Execution<'a>,
    sink: &mut dyn AnswerSink,
    mut run: impl FnMut(Execution<'a>, &mut dyn AnswerSink) -> Result<T>,
) -> Result<T> {
    let mut noted = NotedSink {
        sink,
        has_header: false,
        has_rows: false,
    };
    let in_place = Execution {
        executor: &ExecutorChoice::Here,
        ..execution
    };
    match run(execution, &mut noted) {
        Err(Error::Shard { .. }) if !noted.has_rows => run(in_place, &mut noted),
        done => done,
    }
}

/// Passes an answer on, and records whether its header and any of its rows were passed on. The header of the second run
/// is dropped if the first run has passed one on.
struct NotedSink<'s> {
    sink: &'s mut dyn AnswerSink,
    has_header: bool,
    has_rows: bool,
}

impl NotedSink<'_> {
    fn rows_follow(&mut self) -> &mut dyn AnswerSink {
        self.has_rows = true;
        self.sink
    }
}

impl AnswerSink for NotedSink<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        match std::mem::replace(&mut self.has_header, true) {
            true => Ok(()),
            false => self.sink.solutions(variables),
        }
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.rows_follow().rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        self.sink.row_text()
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        self.rows_follow().raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.rows_follow().boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.has_header, true) {
            true => Ok(()),
            false => self.sink.graph(),
        }
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        self.rows_follow().triple(triple)
    }

    fn bytes_held(&self) -> u64 {
        self.sink.bytes_held()
    }

    fn finish(&mut self) -> Result<()> {
        self.rows_follow().finish()
    }
}
