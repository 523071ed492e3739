//! Conditions that an index can be asked about.

/// Largest number of parts of a call, including those of nested calls.
pub const MAX_PARTS: usize = 32;

/// A condition on one variable, which an index may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question<'a> {
    /// A comparison of the variable with a literal of an ordered datatype, given by its canonical bytes.
    Compare(Relation, &'a [u8]),
    /// A call that must have the effective boolean value true.
    Holds(&'a Call),
}

/// Relations between a value and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A function call whose arguments are all constants or one and the same variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// A SPARQL keyword in capitals (`CONTAINS`, `STR`), one of `=`, `<`, `<=`, `>` and `>=`, or a function's IRI.
    pub name: String,
    /// The arguments in order.
    pub arguments: Vec<QuestionPart>,
}

/// An argument of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionPart {
    /// The variable.
    Variable,
    /// A constant term's canonical bytes.
    Constant(Vec<u8>),
    /// The value of another call.
    Call(Call),
}

impl Call {
    /// Approximate number of bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let (mut bytes, mut open) = (0, vec![self]);
        while let Some(call) = open.pop() {
            bytes +=
                call.name.capacity() + call.arguments.capacity() * size_of::<QuestionPart>() + 32;
            for part in &call.arguments {
                match part {
                    QuestionPart::Variable => {}
                    QuestionPart::Constant(c) => bytes += c.capacity() + 16,
                    QuestionPart::Call(c) => open.push(c),
                }
            }
        }
        bytes as u64
    }
}
