//! The questions: an operator over rows of known shape, queries that produce those rows alone, and a check of the
//! answer.

/// Check of an answer, by the text of another query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The other query gives the same rows, in any order.
    Same(&'static str),
    /// The other query's only value is the number of rows.
    Count(&'static str),
    /// The other query gives the same rows in any order, and the answer's first column ascends byte by byte.
    Ascending(&'static str),
    /// The answer has this many of the other query's rows, the first in the order of bytes.
    First(usize, &'static str),
}

/// One line of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub operator: &'static str,
    pub name: &'static str,
    /// Query text without prefixes, like all texts in this file.
    pub text: &'static str,
    /// Queries that produce the operator's input rows and do nothing else.
    pub inputs: &'static [&'static str],
    pub check: Check,
    /// The same question for DuckDB, with columns x and y. Tables `in0`, `in1` have the rows of the inputs, in columns
    /// `c0`, `c1`.
    pub sql: Option<&'static str>,
}

impl Question {
    /// Sets the question's SQL.
    pub const fn in_sql(mut self, sql: &'static str) -> Self {
        self.sql = Some(sql);
        self
    }
}

/// The questions to one data set.
pub struct Questions {
    /// The data set's name.
    pub data: &'static str,
    pub prefixes: &'static str,
    /// Query that is true in a store that has the data.
    pub is_there: &'static str,
    pub list: &'static [Question],
}

pub const fn question(
    operator: &'static str,
    name: &'static str,
    text: &'static str,
    inputs: &'static [&'static str],
    check: Check,
) -> Question {
    Question {
        operator,
        name,
        text,
        inputs,
        check,
        sql: None,
    }
}
