//! A sink that fails if the data from which the answer is made turns out to be damaged.

use super::{AnswerSink, RowText, Rows};
use jindou_model::Result;
use oxrdf::Triple;

/// Checks the store's files before it passes on parts of an answer: quickly before each piece, completely before the
/// end.
pub(crate) struct CheckedSink<'a> {
    pub sink: &'a mut dyn AnswerSink,
    pub check: &'a (dyn Fn() -> Result<()> + Sync),
    pub check_for_faults: &'a (dyn Fn() -> Result<()> + Sync),
}

impl AnswerSink for CheckedSink<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.sink.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        (self.check_for_faults)()?;
        self.sink.rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        self.sink.row_text()
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        (self.check_for_faults)()?;
        self.sink.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        (self.check)()?;
        self.sink.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.sink.graph()
    }

    fn bytes_held(&self) -> u64 {
        self.sink.bytes_held()
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        self.sink.triple(triple)
    }

    fn finish(&mut self) -> Result<()> {
        (self.check)()?;
        self.sink.finish()
    }
}
