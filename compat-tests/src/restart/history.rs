//! Judges what an idempotent load left behind: everything acknowledged is there, once, in order.

use std::collections::BTreeMap;

/// Partition, offset, number (counted up by the producer per partition).
pub type Line = (i32, i64, u64);

pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut next = || words.next().ok_or_else(|| format!("`{line}` is cut"));
        let number = |word: &str| word.parse::<i64>().map_err(|e| format!("`{line}`: {e}"));
        Ok((number(next()?)? as i32, number(next()?)?, number(next()?)? as u64))
    };
    text.lines().map(line).collect()
}

/// # Errors
/// Names the first anomaly of each kind: lost, moved, twice, out of order.
pub fn check(acked: &[Line], found: &[Line]) -> Result<(), String> {
    let mut anomalies = Vec::new();
    let mut sorted: Vec<&Line> = found.iter().collect();
    sorted.sort_by_key(|(partition, offset, _)| (*partition, *offset));
    let number_at = |partition: &i32, offset: &i64| {
        let at = sorted.binary_search_by_key(&(*partition, *offset), |(p, o, _)| (*p, *o));
        at.ok().map(|at| sorted[at].2)
    };
    let lost = acked.iter().filter(|(p, o, _)| number_at(p, o).is_none());
    anomalies.extend(first("lost", lost));
    let moved = acked.iter().filter(|(p, o, n)| number_at(p, o).is_some_and(|m| m != *n));
    anomalies.extend(first("another record stands there", moved));
    let mut last: BTreeMap<i32, (i64, u64)> = BTreeMap::new();
    let (mut twice, mut disordered, mut holes) = (Vec::new(), Vec::new(), Vec::new());
    for line @ (partition, offset, number) in found {
        if let Some((before_offset, before)) = last.insert(*partition, (*offset, *number)) {
            match number {
                n if *n == before => twice.push(line),
                n if *n < before => disordered.push(line),
                _ => {}
            }
            if *offset != before_offset + 1 {
                holes.push(line);
            }
        }
    }
    anomalies.extend(first("twice", twice.into_iter()));
    anomalies.extend(first("out of order", disordered.into_iter()));
    anomalies.extend(first("after a hole", holes.into_iter()));
    if acked.is_empty() || found.is_empty() {
        anomalies.push("nothing to check".into());
    }
    if anomalies.is_empty() { Ok(()) } else { Err(anomalies.join("; ")) }
}

fn first<'a>(what: &str, mut lines: impl Iterator<Item = &'a Line>) -> Option<String> {
    let (partition, offset, number) = lines.next()?;
    Some(format!("{what}: record {number} at {partition}/{offset} and {} more", lines.count()))
}

/// Shows the checker a history with each anomaly planted: it must name every one.
pub fn check_the_checker() -> Result<(), String> {
    let good: Vec<Line> = (0..20).map(|n| (0, n, n as u64)).collect();
    check(&good, &good).map_err(|e| format!("a good history is refused: {e}"))?;
    let without =
        |at: usize| good.iter().enumerate().filter(move |(i, _)| *i != at).map(|(_, l)| *l);
    let renumbered = |change: fn(&mut Vec<u64>)| -> Vec<Line> {
        let mut numbers: Vec<u64> = (0..20).collect();
        change(&mut numbers);
        numbers.iter().enumerate().map(|(offset, number)| (0, offset as i64, *number)).collect()
    };
    let planted: [(&str, Vec<Line>); 5] = [
        ("lost", without(7).collect()),
        ("after a hole", without(7).collect()),
        ("another record stands there", renumbered(|numbers| numbers[7] = 99)),
        ("twice", renumbered(|numbers| numbers[8] = 7)),
        ("out of order", renumbered(|numbers| numbers.swap(7, 8))),
    ];
    for (name, history) in planted {
        match check(&good, &history) {
            Err(said) if said.contains(name) => {}
            said => return Err(format!("a history with `{name}` planted: {said:?}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_planted_anomaly_is_named() {
        super::check_the_checker().unwrap();
    }
}
