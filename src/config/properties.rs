//! Java's properties syntax: comments, separators, continued lines, escapes.
//! Source: `java.util.Properties.load`.

/// One setting: the number of its first line (from 1), key and value.
pub type Line = (usize, String, String);

/// Reads the text of a properties file. Nothing is refused, as in Java: a line without a separator
/// is a key with an empty value, an unfinished `\u` escape stands for itself.
pub fn parse(text: &str) -> Vec<Line> {
    let mut settings = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut logical = line.trim_start_matches(is_blank).to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while ends_in_continuation(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        let (key, value) = split(&logical);
        settings.push((at + 1, unescape(key), unescape(value)));
    }
    settings
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The key ends at the first `=`, `:` or blank without a backslash before it.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        if !escaped && (matches!(c, '=' | ':') || is_blank(c)) {
            end = at;
            break;
        }
        escaped = c == '\\' && !escaped;
    }
    let rest = line[end..].trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let code = rest.as_str().get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(c) => {
                        plain.push(c);
                        rest.nth(3);
                    }
                    None => plain.push('u'),
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[test]
    fn lines_are_read_as_java_reads_them() {
        type Settings = [(usize, &'static str, &'static str)];
        #[rustfmt::skip]
        let table: [(&str, &Settings); 12] = [
            ("a=b",                    &[(1, "a", "b")]),
            ("  a = b  ",              &[(1, "a", "b  ")]),
            ("a:b",                    &[(1, "a", "b")]),
            ("a b",                    &[(1, "a", "b")]),
            ("a = =b",                 &[(1, "a", "=b")]),
            ("a",                      &[(1, "a", "")]),
            ("# x=1\n! y=2\n\n z=3",   &[(4, "z", "3")]),
            ("a=1,\\\n   2\nb=3",      &[(1, "a", "1,2"), (3, "b", "3")]),
            ("a=1\\\\\nb=2",           &[(1, "a", "1\\"), (2, "b", "2")]),
            ("a\\=b=c\\td\\u0041",     &[(1, "a=b", "c\tdA")]),
            ("a=C:\\\\kafka\\q",       &[(1, "a", "C:\\kafkaq")]),
            ("a=1\r\nb=2\r\n",         &[(1, "a", "1"), (2, "b", "2")]),
        ];
        for (text, settings) in table {
            let got = parse(text);
            let got: Vec<_> = got.iter().map(|(at, k, v)| (*at, k.as_str(), v.as_str())).collect();
            assert_eq!(got, settings, "{text:?}");
        }
    }

    /// A backslash before each character, and the escapes that have a letter, as `store` writes.
    fn escaped(text: &str) -> String {
        text.chars()
            .map(|c| match c {
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                c => format!("\\{c}"),
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::with_cases(256)
        })]

        /// Whatever is escaped comes back, and nothing that is not stops the reader.
        #[test]
        fn what_is_escaped_is_read_back(
            key in "[a-e=: #!.\\\\]{1,9}",
            value in "[a-e=: #!\\\\\n\r]{0,9}",
            junk: String,
        ) {
            let text = format!("{}={}", escaped(&key), escaped(&value));
            prop_assert_eq!(parse(&text), [(1, key, value)]);
            parse(&junk);
        }
    }
}
