//! Messages between the master and its workers, over Unix-domain sockets: a length, then the fields, little-endian.

use jindou::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// Limit on the length of a message in bytes.
const MOST_BYTES: usize = 1 << 31;

/// Rows of ids, the result of one part of a query. Row after row with `width` ids each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Number of columns.
    pub width: usize,
    /// Number of rows, stored separately because of tables without columns.
    pub rows: usize,
    /// The ids. In messages they are ids of the whole store, not of the worker's store.
    pub ids: Vec<u32>,
}

impl Table {
    /// Row `r`; empty if there is no such row.
    pub fn row(&self, r: usize) -> &[u32] {
        self.ids
            .get(r * self.width..(r + 1) * self.width)
            .unwrap_or(&[])
    }

    /// Appends the rows of another table with the same columns.
    pub fn append(&mut self, other: &Self) {
        if self.rows == 0 {
            self.width = other.width;
        }
        self.rows += other.rows;
        self.ids.extend_from_slice(&other.ids);
    }
}

/// Measurements of one query that a worker ran on the whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Index of the query in the request.
    pub query: u32,
    pub rows: u64,
    /// Bytes of its answer.
    pub bytes: u64,
    /// Elapsed time at the worker in nanoseconds.
    pub wall: u64,
    /// Processor time in nanoseconds.
    pub cpu: u64,
}

/// One worker's results of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub worker: u32,
    /// Elapsed time at the worker in nanoseconds.
    pub wall: u64,
    /// Processor time in nanoseconds.
    pub cpu: u64,
    /// One table for each part.
    pub tables: Vec<Table>,
    /// The rows of a single part as text, instead of tables.
    pub text: Vec<u8>,
    /// Rows in `text`.
    pub rows: u64,
}

/// A message between the master and a worker, or between two workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From a worker: it has started and is connected.
    Hello { worker: u32, process: u32 },
    /// From the master: open this store. `ids` is the path of the file that maps its ids to those of the whole store;
    /// empty for the whole store.
    Open { store: String, ids: String },
    /// From a worker: the store is open.
    Opened,
    /// From the master: run these queries on the whole store, one after the other. With `cold`, drop its files from
    /// memory before.
    Run { cold: bool, queries: Vec<String> },
    /// From a worker: measurements of the queries.
    Outcomes(Vec<Ran>),
    /// From the master: run each query, and return how many bytes of the store's files it accesses.
    Touch { queries: Vec<String> },
    /// From a worker: bytes for each query.
    Touched(Vec<u64>),
    /// From the master: run these parts. With `gather`, send results along the tree; with `text`, return rows as text.
    Find {
        cold: bool,
        gather: bool,
        text: bool,
        parts: Vec<String>,
    },
    /// From a worker: its own results, or also those of all workers below it in the tree.
    Found(Vec<Share>),
    /// From a worker: an error message.
    Failed(String),
    /// From the master: exit.
    Quit,
}

struct Out(Vec<u8>);

impl Out {
    fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    fn u64(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    fn text(&mut self, t: &str) {
        self.u32(t.len() as u32);
        self.0.extend_from_slice(t.as_bytes());
    }

    fn texts(&mut self, list: &[String]) {
        self.u32(list.len() as u32);
        for t in list {
            self.text(t);
        }
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(short)?;
        self.0 = rest;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?.try_into().map_err(|_| short())?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| short())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<String> {
        let n = self.u32()? as usize;
        String::from_utf8(self.take(n)?.to_vec()).map_err(|_| short())
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let n = self.u32()?;
        (0..n).map(|_| item(self)).collect()
    }
}

fn short() -> Error {
    Error::Internal("a message between master and worker is not whole".into())
}

fn encode(message: &Message, out: &mut Out) {
    match message {
        Message::Hello { worker, process } => {
            out.0.push(0);
            out.u32(*worker);
            out.u32(*process);
        }
        Message::Open { store, ids } => {
            out.0.push(1);
            out.text(store);
            out.text(ids);
        }
        Message::Opened => out.0.push(2),
        Message::Run { cold, queries } => {
            out.0.extend([3, u8::from(*cold)]);
            out.texts(queries);
        }
        Message::Outcomes(list) => {
            out.0.push(4);
            out.u32(list.len() as u32);
            for r in list {
                out.u32(r.query);
                for v in [r.rows, r.bytes, r.wall, r.cpu] {
                    out.u64(v);
                }
            }
        }
        Message::Touch { queries } => {
            out.0.push(5);
            out.texts(queries);
        }
        Message::Touched(list) => {
            out.0.push(6);
            out.u32(list.len() as u32);
            for v in list {
                out.u64(*v);
            }
        }
        Message::Find {
            cold,
            gather,
            text,
            parts,
        } => {
            let flags = [*cold, *gather, *text].map(u8::from);
            out.0.push(7);
            out.0.extend(flags);
            out.texts(parts);
        }
        Message::Found(shares) => {
            out.0.push(8);
            out.u32(shares.len() as u32);
            for s in shares {
                out.u32(s.worker);
                out.u64(s.wall);
                out.u64(s.cpu);
                out.u64(s.rows);
                out.u32(s.text.len() as u32);
                out.0.extend_from_slice(&s.text);
                out.u32(s.tables.len() as u32);
                for t in &s.tables {
                    out.u32(t.width as u32);
                    out.u64(t.rows as u64);
                    out.u32(t.ids.len() as u32);
                    out.0.reserve(4 * t.ids.len());
                    for v in &t.ids {
                        out.0.extend_from_slice(&v.to_le_bytes());
                    }
                }
            }
        }
        Message::Failed(why) => {
            out.0.push(9);
            out.text(why);
        }
        Message::Quit => out.0.push(10),
    }
}

fn decode(bytes: &[u8]) -> Result<Message> {
    let mut i = In(bytes);
    let texts = |i: &mut In<'_>| i.list(In::text);
    Ok(match i.u8()? {
        0 => Message::Hello {
            worker: i.u32()?,
            process: i.u32()?,
        },
        1 => Message::Open {
            store: i.text()?,
            ids: i.text()?,
        },
        2 => Message::Opened,
        3 => Message::Run {
            cold: i.u8()? != 0,
            queries: texts(&mut i)?,
        },
        4 => Message::Outcomes(i.list(|i| {
            Ok(Ran {
                query: i.u32()?,
                rows: i.u64()?,
                bytes: i.u64()?,
                wall: i.u64()?,
                cpu: i.u64()?,
            })
        })?),
        5 => Message::Touch {
            queries: texts(&mut i)?,
        },
        6 => Message::Touched(i.list(In::u64)?),
        7 => Message::Find {
            cold: i.u8()? != 0,
            gather: i.u8()? != 0,
            text: i.u8()? != 0,
            parts: texts(&mut i)?,
        },
        8 => Message::Found(i.list(|i| {
            Ok(Share {
                worker: i.u32()?,
                wall: i.u64()?,
                cpu: i.u64()?,
                rows: i.u64()?,
                text: {
                    let n = i.u32()? as usize;
                    i.take(n)?.to_vec()
                },
                tables: i.list(table)?,
            })
        })?),
        9 => Message::Failed(i.text()?),
        10 => Message::Quit,
        _ => return Err(short()),
    })
}

fn table(i: &mut In<'_>) -> Result<Table> {
    let (width, rows, ids) = (i.u32()? as usize, i.u64()? as usize, i.u32()? as usize);
    let bytes = i.take(4 * ids)?;
    Ok(Table {
        width,
        rows,
        ids: bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|c| u32::from_le_bytes(*c))
            .collect(),
    })
}

/// Sends a message.
///
/// # Errors
/// [`Error::SinkClosed`] if the other side has closed the socket, [`Error::Limit`] if the message is too long.
pub fn send(stream: &mut UnixStream, message: &Message) -> Result<()> {
    let mut out = Out(vec![0; 4]);
    encode(message, &mut out);
    let length = out.0.len() - 4;
    if length > MOST_BYTES {
        return Err(Error::external(format!(
            "a partial result of {length} bytes is too long for one message"
        )));
    }
    out.0[..4].copy_from_slice(&(length as u32).to_le_bytes());
    stream.write_all(&out.0).map_err(gone)
}

/// Waits for a message.
///
/// # Errors
/// [`Error::SinkClosed`] if the other side has closed the socket.
pub fn receive(stream: &mut UnixStream) -> Result<Message> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(gone)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_BYTES {
        return Err(short());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).map_err(gone)?;
    decode(&bytes)
}

fn gone(e: std::io::Error) -> Error {
    match e.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            Error::SinkClosed
        }
        _ => Error::io("<socket between master and worker>", e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let share = Share {
            worker: 3,
            wall: 5,
            cpu: 4,
            rows: 2,
            text: b"a\n".to_vec(),
            tables: vec![
                Table {
                    width: 2,
                    rows: 2,
                    ids: vec![1, 2, 3, u32::MAX],
                },
                Table {
                    width: 0,
                    rows: 7,
                    ids: vec![],
                },
            ],
        };
        let ran = Ran {
            query: 1,
            rows: 2,
            bytes: u64::MAX,
            wall: 4,
            cpu: 5,
        };
        for m in [
            Message::Hello {
                worker: 1,
                process: 2,
            },
            Message::Open {
                store: "é".into(),
                ids: String::new(),
            },
            Message::Opened,
            Message::Run {
                cold: true,
                queries: vec!["a".into(), String::new()],
            },
            Message::Outcomes(vec![ran, Ran::default()]),
            Message::Touch { queries: vec![] },
            Message::Touched(vec![1, u64::MAX]),
            Message::Find {
                cold: false,
                gather: true,
                text: true,
                parts: vec!["p".into()],
            },
            Message::Found(vec![share]),
            Message::Failed("why".into()),
            Message::Quit,
        ] {
            send(&mut a, &m).unwrap();
            assert_eq!(receive(&mut b).unwrap(), m);
        }
        drop(a);
        assert!(matches!(receive(&mut b), Err(Error::SinkClosed)));
    }

    #[test]
    fn a_message_that_was_cut_is_an_error() {
        let mut out = Out(vec![]);
        encode(
            &Message::Open {
                store: "store".into(),
                ids: "ids".into(),
            },
            &mut out,
        );
        for n in 0..out.0.len() {
            assert!(decode(&out.0[..n]).is_err(), "{n} bytes");
        }
    }
}
