//! The page's tables: what its bars show, in figures.

use super::super::{Report, median, ms, ratio_text, size, thousands};
use super::{escape, own};
use std::fmt::Write;

/// All times, then [`resources`].
pub(super) fn numbers(r: &Report, out: &mut String) {
    out.push_str("<h2>All numbers</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Times\"><table>\n<caption>Milliseconds: median, and below it \
                  the least and the most of the timed runs</caption>\n<thead><tr><th scope=\"col\">question</th><th scope=\"col\">rows</th>");
    for e in &r.engines {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&e.about.name));
    }
    out.push_str("<th scope=\"col\">fastest other</th></tr></thead>\n<tbody>\n<tr><th scope=\"row\">ASK {} (asks nothing)</th><td></td>");
    for e in &r.engines {
        let mut times = e.floor_ms.clone();
        times.sort_by(f64::total_cmp);
        let _ = write!(out, "<td>{}</td>", median(&times).map_or("–".into(), ms));
    }
    out.push_str("<td></td></tr>\n");
    for q in &r.queries {
        let rows = q.answers.iter().find_map(|a| a.seen).map(|s| s.rows);
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td>",
            escape(&q.name),
            q.known_rows.or(rows).map_or("?".into(), thousands)
        );
        for a in &q.answers {
            let _ = match a.median_ms() {
                Some(m) => write!(
                    out,
                    "<td>{}<small>{}–{}</small></td>",
                    ms(m),
                    ms(a.times_ms[0]),
                    ms(a.times_ms[a.times_ms.len() - 1])
                ),
                None if a.over_limit => write!(out, "<td>&gt; {} s</td>", r.limit_seconds),
                None => write!(out, "<td>–</td>"),
            };
        }
        let fastest = q.fastest_peer(r.limit_ms());
        let _ = writeln!(
            out,
            "<td class=\"{}\">{}</td></tr>",
            if fastest.is_some_and(|(_, x)| x.times < 1.0) {
                "lose"
            } else {
                ""
            },
            fastest.map_or("–".into(), |(i, x)| format!(
                "{}<small>{}</small>",
                escape(&r.engines[i].about.name),
                ratio_text(x)
            ))
        );
    }
    let _ = write!(
        out,
        "<tr><th scope=\"row\">geometric mean, × {}</th><td></td>",
        escape(own(r))
    );
    for i in 0..r.engines.len() {
        let text = if i == 0 {
            String::new()
        } else {
            r.mean_ratio(i).map_or("–".into(), |(x, n)| {
                format!("{}<small>over {n}</small>", ratio_text(x))
            })
        };
        let _ = write!(out, "<td>{text}</td>");
    }
    let _ = write!(
        out,
        "<td>{}</td></tr>\n</tbody></table></div>\n",
        r.mean_of_fastest()
            .map_or("–".into(), |(x, _)| ratio_text(x))
    );
    resources(r, out);
}

/// Writes the table of loads and memory.
fn resources(r: &Report, out: &mut String) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Load, size and memory\"><table>\n<caption>Load, size and memory</caption>\n<thead><tr><th scope=\"col\">engine</th>\
                  <th scope=\"col\">load, s</th><th scope=\"col\">on disk</th><th scope=\"col\">memory, load</th><th scope=\"col\">of it own</th>\
                  <th scope=\"col\">memory, answering</th><th scope=\"col\">of it own</th></tr></thead>\n<tbody>\n");
    for e in &r.engines {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&e.about.name));
        let _ = match &e.loaded {
            Some(l) => write!(
                out,
                "<td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
                ms(l.seconds),
                size(l.disk),
                size(l.memory.resident),
                size(l.memory.own)
            ),
            None => write!(out, "<td>–</td><td>–</td><td>–</td><td>–</td>"),
        };
        let _ = writeln!(
            out,
            "<td>{}</td><td>{}</td></tr>",
            size(e.serving.resident),
            size(e.serving.own)
        );
    }
    out.push_str("</tbody></table></div>\n");
}
