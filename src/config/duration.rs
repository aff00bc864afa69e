//! ISO 8601 durations as Java's `Duration.parse` reads them: `PnDTnHnMn.nS`.

const NANOS: i128 = 1_000_000_000;

/// The length in nanoseconds; `None`: not a duration, or one whose seconds are no `i64`.
pub(super) fn parse(text: &str) -> Option<i128> {
    let text = text.to_ascii_uppercase();
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (date, time) = match rest.strip_prefix('P')?.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest.strip_prefix('P')?, ""),
    };
    let (mut date, mut time) = (date, time);
    let parts = [
        take(&mut date, 'D', 86_400)?,
        take(&mut time, 'H', 3600)?,
        take(&mut time, 'M', 60)?,
        take(&mut time, 'S', 1)?,
    ];
    if !date.is_empty() || !time.is_empty() || parts.iter().all(Option::is_none) {
        return None;
    }
    let nanos: i128 = parts.into_iter().flatten().sum();
    i64::try_from(nanos / NANOS).ok()?;
    Some(if is_negative { -nanos } else { nanos })
}

/// Takes `number unit` off the front of `rest`, in nanoseconds. The outer `None`: what stands
/// before the unit is no number; the inner one: the unit is not there.
fn take(rest: &mut &str, unit: char, seconds: i128) -> Option<Option<i128>> {
    let Some((number, after)) = rest.split_once(unit) else { return Some(None) };
    let (whole, fraction) = match number.split_once(['.', ',']) {
        Some(parts) if unit == 'S' => parts,
        Some(_) => return None,
        None => (number, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 9 || !digits(fraction) {
        return None;
    }
    let whole_nanos = i128::from(whole.parse::<i64>().ok()?) * seconds * NANOS;
    let fraction_nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    *rest = after;
    let is_negative = whole.starts_with('-');
    Some(Some(whole_nanos + if is_negative { -fraction_nanos } else { fraction_nanos }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_by_java() {
        #[rustfmt::skip]
        let table = [
            ("PT1S",      Some(NANOS)),
            ("p1dt1h",    Some(90_000 * NANOS)),
            ("PT1M0.5S",  Some(60 * NANOS + NANOS / 2)),
            ("PT0,000000001S", Some(1)),
            ("PT1.S",     Some(NANOS)),
            ("-PT1S",     Some(-NANOS)),
            ("PT-1.5S",   Some(-NANOS - NANOS / 2)),
            ("-PT-1S",    Some(NANOS)),
            ("P0D",       Some(0)),
            ("P+1D",      Some(86_400 * NANOS)),
            ("P",         None),
            ("PT",        None),
            ("P1DT",      None),
            ("1S",        None),
            ("PT1",       None),
            ("PT1S1M",    None),
            ("PT1.5M",    None),
            ("PT.5S",     None),
            ("PT1.0000000001S", None),
            ("P1Y",       None),
            ("P106751991167301D", None),
            ("",          None),
        ];
        for (text, nanos) in table {
            assert_eq!(parse(text), nanos, "{text:?}");
        }
    }
}
