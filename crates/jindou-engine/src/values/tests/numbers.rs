//! Compares arithmetic on columns of numbers with `spareval`.

use super::*;

/// Random arithmetic over `?x0`, `?x1`, `?x2`, as SPARQL text.
fn random_arithmetic(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.below(5) == 0 {
        let number = r.pick(&[
            "1",
            "-3",
            "0",
            "2.5",
            "\"3\"^^<http://www.w3.org/2001/XMLSchema#double>",
            "9223372036854775807",
        ]);
        let variable = format!("?x{}", r.below(3));
        return if r.below(3) == 0 {
            number.to_owned()
        } else {
            variable
        };
    }
    let mut part = || random_arithmetic(r, depth - 1);
    let (a, b) = (part(), part());
    match r.below(10) {
        0 => format!(
            "{}({a})",
            r.pick(&["ABS", "CEIL", "FLOOR", "ROUND", "-", "+"])
        ),
        _ => format!("({a} {} {b})", r.pick(&["+", "-", "*", "/"])),
    }
}

/// Compares random arithmetic in batches of any length, whose columns have one or several numeric types, unbound
/// values, and terms that are not numbers.
pub fn columns_of_numbers(cases: usize, seed: u64) {
    let all = terms();
    with_terms(&all, |run, ids| {
        let mut r = Random(seed);
        let of = |d: Option<oxrdf::NamedNodeRef<'_>>| -> Vec<u32> {
            let wanted = |t: &Term| match (t, d) {
                (Term::Literal(l), Some(d)) => l.datatype() == d,
                _ => d.is_none(),
            };
            let both = all.iter().zip(ids);
            both.filter(|(t, _)| wanted(t)).map(|(_, &id)| id).collect()
        };
        let pools = [
            of(Some(xsd::INTEGER)),
            of(Some(xsd::DOUBLE)),
            of(Some(xsd::DECIMAL)),
            of(Some(xsd::FLOAT)),
            [of(Some(xsd::INTEGER)), of(Some(xsd::DECIMAL))].concat(),
            of(None),
        ];
        let mut values = [0; 2];
        for case in 0..cases {
            let text = random_arithmetic(&mut r, 3);
            let other = random_arithmetic(&mut r, 1);
            let text = match r.below(4) {
                0 => text,
                1 => format!("(!({text} {} {other}))", r.pick(&["=", "!=", "<", ">="])),
                _ => format!(
                    "({text} {} {other})",
                    r.pick(&["=", "!=", "<", "<=", ">", ">="])
                ),
            };
            let Some(e) = parse(&text) else { continue };
            let rows = 1 + r.below(if case % 10 == 0 { 1500 } else { 70 });
            let columns: Vec<Vec<u32>> = (0..3)
                .map(|_| {
                    let pool = &pools[r.below(pools.len())];
                    let gaps = [0, 0, 1, 3][r.below(4)];
                    let one = |r: &mut Random| match r.below(10) < gaps {
                        true => 0,
                        false => pool[r.below(pool.len())],
                    };
                    let always = one(&mut r);
                    let constant = r.below(5) == 0;
                    let next = |_| if constant { always } else { one(&mut r) };
                    (0..rows).map(next).collect()
                })
                .collect();
            values[0] += agree_with_spareval(run, &text, &e, &columns);
            values[1] += rows;
        }
        assert!(values[0] > values[1] / 4, "mostly errors: {values:?}");
    });
}

#[test]
fn columns_of_numbers_agree_with_spareval() {
    columns_of_numbers(150, 7);
}
