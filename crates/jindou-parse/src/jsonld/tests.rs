use super::*;
use std::io::Cursor;

/// Returns one byte at a time, or as many as requested.
struct Slowly(Cursor<Vec<u8>>, usize);

impl Read for Slowly {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = buf.len().min(self.1);
        self.0.read(&mut buf[..n])
    }
}

fn made(text: &str, step: usize) -> (String, SharedStandIns) {
    let slowly = Slowly(Cursor::new(text.as_bytes().to_vec()), step);
    let mut reader = NumberReader::new(slowly, &Limits::default());
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap();
    (out, reader.stand_ins())
}

const TEXT: &str = r#"{"1e20":[1e20,"\"2e20", -1E+20 ,100000000000000000000.00 , 12, 0.5,-0.0]}"#;

#[test]
fn pieces_of_any_size_give_the_same() {
    for step in 1..TEXT.len() {
        let (text, numbers) = made(TEXT, step);
        let numbers = numbers.borrow();
        let meant = numbers.restored(text);
        let expected = r#"{"1e20":[100000000000000000000,"\"2e20", -100000000000000000000 ,100000000000000000000     , 12, 0.5,0]}"#;
        assert_eq!(meant, expected, "{step}");
    }
    assert_eq!(made("-1e20", 2).0.len(), 20);
    assert_eq!(made("[1e2", 2).0, "[1e2");
}

#[test]
fn places_are_those_of_the_document() {
    let (text, numbers) = made(TEXT, 7);
    for needle in [", 12", "\"\\\"2e20", "0.5"] {
        let there = text.find(needle).unwrap() as u64;
        let here = TEXT.find(needle).unwrap() as u64;
        assert_eq!(numbers.borrow().place(there), here, "{needle}");
    }
}

#[test]
fn numbers_that_look_like_stand_ins_stay_themselves() {
    let (text, numbers) = made("[1e20]", 100);
    let stand_in = text.trim_matches(['[', ']']).to_owned();
    let prefix = &stand_in[..6];
    // The same prefix is drawn again only by chance, so the second document is read by the same reader.
    let mut reader = NumberReader::new(
        Cursor::new(format!("[{prefix}00000000000000]")),
        &Limits::default(),
    );
    reader.shared = Rc::clone(&numbers);
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap();
    assert_ne!(out, text);
    let literal = oxrdf::Literal::new_typed_literal(&out[1..21], oxrdf::vocab::xsd::INTEGER);
    let meant = numbers.borrow().meant(&literal.into()).unwrap();
    assert_eq!(meant.value(), format!("{prefix}00000000000000"));
}

#[test]
fn values_are_charged() {
    let limits = Limits {
        memory: jindou_model::MemoryBudget::new(1 << 20),
        ..Limits::default()
    };
    let text: String = (0..20_000)
        .map(|n| format!("{}e15 ", 100_000 + n))
        .collect();
    let mut reader = NumberReader::new(Cursor::new(text), &limits);
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap_err();
    let failure = reader.stand_ins().borrow_mut().failure();
    assert!(
        matches!(failure, Some(jindou_model::Error::Limit(_))),
        "{failure:?}"
    );
}
