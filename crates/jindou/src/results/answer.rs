//! A query's whole answer in memory.

use super::{AnswerSink, Rows};
use jindou_dictionary::STRINGS_FILE;
use jindou_model::{Error, MemoryBudget, Result, term};
use oxrdf::{Term, Triple};

/// Answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// SELECT: the variables' names, and rows with a cell per variable, `None` where it is unbound.
    Solutions {
        /// Names without `?`.
        variables: Vec<String>,
        /// Rows, in the query's order.
        rows: Vec<Vec<Option<Term>>>,
    },
    /// The result of ASK.
    Boolean(bool),
    /// The triples of CONSTRUCT or DESCRIBE.
    Graph(Vec<Triple>),
}

impl Answer {
    /// The rows of a SELECT; empty for the other forms.
    #[must_use]
    pub fn solutions(&self) -> &[Vec<Option<Term>>] {
        match self {
            Self::Solutions { rows, .. } => rows,
            Self::Boolean(_) | Self::Graph(_) => &[],
        }
    }

    /// The variables of a SELECT; empty for the other forms.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        match self {
            Self::Solutions { variables, .. } => variables,
            Self::Boolean(_) | Self::Graph(_) => &[],
        }
    }
}

/// A sink that collects an [`Answer`] and charges its memory to a budget until the collector is dropped.
#[derive(Debug)]
pub struct Collector {
    answer: Answer,
    budget: MemoryBudget,
    charged: u64,
}

impl Collector {
    /// An empty collector.
    #[must_use]
    pub fn new(budget: MemoryBudget) -> Self {
        Self {
            answer: Answer::Boolean(false),
            budget,
            charged: 0,
        }
    }

    /// The collected answer.
    #[must_use]
    pub fn into_answer(mut self) -> Answer {
        std::mem::replace(&mut self.answer, Answer::Boolean(false))
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.budget.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.budget.release(self.charged);
    }
}

/// Approximate bytes of a decoded term in addition to its text: the enum, and the header of the allocation.
const TERM_BYTES: u64 = 96;

impl AnswerSink for Collector {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.answer = Answer::Solutions {
            variables: variables.to_vec(),
            rows: Vec::new(),
        };
        Ok(())
    }

    fn rows(&mut self, batch: &Rows) -> Result<()> {
        self.charge(
            batch.bytes.len() as u64
                + TERM_BYTES * batch.ends.len() as u64
                + 24 * batch.rows as u64,
        )?;
        let Answer::Solutions { rows, .. } = &mut self.answer else {
            unreachable!("columns come before rows");
        };
        for r in 0..batch.rows {
            let row = batch
                .row(r)
                .map(|cell| {
                    cell.map(|c| {
                        term::decode(c).ok_or_else(|| {
                            Error::damaged(
                                STRINGS_FILE,
                                "a term cannot be read; `jindou check` shows where",
                            )
                        })
                    })
                    .transpose()
                })
                .collect::<Result<Vec<_>>>()?;
            rows.push(row);
        }
        Ok(())
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        unreachable!("a collector takes rows as terms");
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.answer = Answer::Boolean(value);
        Ok(())
    }

    fn graph(&mut self) -> Result<()> {
        self.answer = Answer::Graph(Vec::new());
        Ok(())
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        self.charge(4 * TERM_BYTES)?;
        match &mut self.answer {
            Answer::Graph(g) => g.push(triple.clone()),
            _ => unreachable!("a graph begins before its triples"),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
