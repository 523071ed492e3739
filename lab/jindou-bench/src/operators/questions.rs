//! The questions: an operator over rows of known shape, what makes those rows alone, and how the answer is checked.

/// How an answer is known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Another formulation gives the same rows, in any order.
    Same(&'static str),
    /// Another query's one row and column is the number of rows.
    Count(&'static str),
    /// Another query gives the same rows in any order, and this one's first column ascends byte by byte.
    Ascending(&'static str),
    /// The first this many, byte by byte, of what another query gives.
    First(usize, &'static str),
}

/// One line of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub operator: &'static str,
    pub name: &'static str,
    /// Without prefixes, as all texts here.
    pub text: &'static str,
    /// Queries that give the rows that go into the operator, and do nothing else.
    pub inputs: &'static [&'static str],
    pub check: Check,
    /// The same for DuckDB: columns x and y, over tables `in0`, `in1` of what the inputs give, whose columns are `c0`, `c1`.
    pub sql: Option<&'static str>,
}

impl Question {
    /// The question with its SQL.
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
    /// True in a store that has the data.
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
