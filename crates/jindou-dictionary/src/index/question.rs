//! The conditions that an index is asked about.

/// Parts of a call at most, in all levels together.
pub const MAX_PARTS: usize = 32;

/// A condition on one variable. An index answers those that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question<'a> {
    /// The variable against a literal of a datatype with an order, given by its canonical bytes.
    Compare(Relation, &'a [u8]),
    /// The call's effective boolean value is true.
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

/// A call of a function of which one variable, in one place or several, and constants are all arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// SPARQL's keyword in capitals (`CONTAINS`, `STR`), one of `=`, `<`, `<=`, `>` and `>=`, or a function's IRI.
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
    /// A term's canonical bytes.
    Constant(Vec<u8>),
    /// The value of a call.
    Call(Call),
}

impl Call {
    /// Bytes on the heap, about.
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
