//! The loads and what both brokers must come to.

use super::look::{Looker, State};
use super::until;

/// One value of a batch; a batch of it takes a bit more.
const VALUE_BYTES: usize = 500;
/// Nothing goes.
pub const NEVER: &[(&str, &str)] = &[("retention.ms", "-1"), ("retention.bytes", "-1")];
const HOUR_MS: i64 = 3_600_000;

/// What is done to a topic, one thing after the other.
enum Do {
    /// So many batches of one record, stamped so many milliseconds from now.
    Batches(usize, i64),
    /// One, stamped so many milliseconds after a time that is the same in all runs.
    At(i64),
    /// One whose record has no timestamp.
    Unstamped,
    /// Sets a config of the topic.
    Set(&'static str, &'static str),
    /// Sets a default of the broker, `-` to take it back.
    Default(&'static str, &'static str),
    DeleteRecords(i64),
    /// Files of deleted segments are there under their new name, and go.
    DeletedFiles,
    /// Earliest and latest offset, base offsets of the segments, of the first batch that can be
    /// read, and what the log-start checkpoint has.
    See(i64, i64, &'static [i64], Option<i64>, Option<i64>),
    /// The state stays so for a while.
    Still(i64, i64, &'static [i64]),
}

pub struct Scene {
    pub name: &'static str,
    topic: &'static str,
    configs: &'static [(&'static str, &'static str)],
    steps: Vec<Do>,
}

/// All of them; topics keep everything but for what a scene says.
pub fn all() -> Vec<Scene> {
    use Do::*;
    let scene = |name, topic, configs, steps| Scene { name, topic, configs, steps };
    const TWO: (&str, &str) = ("internal.segment.bytes", "1200");
    vec![
        scene(
            "segments over retention.bytes go, whole ones only",
            "by-size",
            &[TWO],
            vec![
                Batches(10, 0),
                See(0, 10, &[0, 2, 4, 6, 8], Some(0), None),
                Set("retention.bytes", "3000"),
                See(4, 10, &[4, 6, 8], Some(4), None),
                DeletedFiles,
                Still(4, 10, &[4, 6, 8]),
            ],
        ),
        scene(
            "retention.bytes=0 empties the log",
            "to-nothing",
            &[TWO],
            vec![
                Batches(3, 0),
                Set("retention.bytes", "0"),
                See(3, 3, &[3], None, None),
                Batches(1, 0),
                See(4, 4, &[4], None, None),
            ],
        ),
        scene(
            "segments whose newest record is too old go",
            "by-time",
            &[TWO],
            vec![
                Batches(5, -3 * HOUR_MS),
                Batches(3, 0),
                Set("retention.ms", "3600000"),
                See(4, 8, &[4, 6], Some(4), None),
            ],
        ),
        scene(
            "a record of the future keeps its segment",
            "by-future",
            &[TWO],
            vec![
                Batches(2, -3 * HOUR_MS),
                Batches(1, HOUR_MS / 2),
                Batches(3, -3 * HOUR_MS),
                Set("retention.ms", "3600000"),
                See(2, 6, &[2, 4], Some(2), None),
            ],
        ),
        scene(
            "a log that is all too old is empty, its active segment too",
            "all-old",
            &[TWO],
            vec![
                Batches(3, -3 * HOUR_MS),
                Set("retention.ms", "3600000"),
                See(3, 3, &[3], None, None),
                DeletedFiles,
                Batches(1, 0),
                See(3, 4, &[3], Some(3), None),
            ],
        ),
        scene(
            "without timestamps the time of the file counts",
            "unstamped",
            &[TWO],
            vec![
                Unstamped,
                Unstamped,
                Unstamped,
                Set("retention.ms", "3600000"),
                Still(0, 3, &[0, 2]),
                Set("retention.ms", "1000"),
                See(3, 3, &[3], None, None),
            ],
        ),
        scene(
            "segments below the log start go",
            "by-start",
            &[TWO],
            vec![
                Batches(8, 0),
                DeleteRecords(5),
                See(5, 8, &[4, 6], Some(5), Some(5)),
                DeleteRecords(-1),
                See(8, 8, &[6], None, Some(8)),
            ],
        ),
        scene(
            "an empty cleanup.policy keeps everything above the log start",
            "no-policy",
            &[TWO, ("cleanup.policy", ""), ("retention.ms", "1"), ("retention.bytes", "1")],
            vec![
                Batches(6, -3 * HOUR_MS),
                Still(0, 6, &[0, 2, 4]),
                DeleteRecords(3),
                See(3, 6, &[2, 4], Some(3), Some(3)),
                Set("cleanup.policy", "delete"),
                See(6, 6, &[6], None, None),
            ],
        ),
        scene(
            "a default of the broker reaches running logs",
            "by-default",
            &[TWO],
            vec![
                Batches(8, -3 * HOUR_MS),
                Set("retention.ms", "-"),
                Set("retention.bytes", "-"),
                Default("log.retention.bytes", "3000"),
                See(2, 8, &[2, 4, 6], Some(2), None),
                Default("log.retention.bytes", "-"),
                Default("log.retention.ms", "3600000"),
                See(8, 8, &[8], None, None),
                Default("log.retention.ms", "-"),
            ],
        ),
        scene(
            "a segment rolls when its first record is segment.ms old",
            "roll-time",
            &[("segment.ms", "1000")],
            vec![
                At(0),
                At(1000),
                At(1001),
                At(500),
                At(2002),
                See(0, 5, &[0, 2, 4], Some(0), None),
            ],
        ),
        scene(
            "a changed segment.ms reaches a running log",
            "roll-changed",
            &[],
            vec![
                At(0),
                At(5000),
                Set("segment.ms", "1000"),
                At(5001),
                See(0, 3, &[0, 2], Some(0), None),
            ],
        ),
        scene(
            "a segment rolls when its indexes are full",
            "roll-index",
            &[("segment.index.bytes", "48"), ("index.interval.bytes", "1")],
            vec![
                At(0),
                At(1),
                At(2),
                At(3),
                At(4),
                At(5),
                At(6),
                At(7),
                At(8),
                At(9),
                See(0, 10, &[0, 4, 8], Some(0), None),
            ],
        ),
        scene(
            "a changed segment size reaches a running log",
            "roll-size",
            &[],
            vec![
                Batches(5, 0),
                See(0, 5, &[0], Some(0), None),
                Set("internal.segment.bytes", "1200"),
                Batches(3, 0),
                See(0, 8, &[0, 5, 7], Some(0), None),
            ],
        ),
    ]
}

impl Scene {
    /// # Errors
    /// What the broker did not come to.
    pub fn play(&self, looker: &mut Looker) -> Result<(), String> {
        let mut configs = NEVER.to_vec();
        configs.retain(|(key, _)| self.configs.iter().all(|(own, _)| own != key));
        configs.extend(self.configs);
        looker.create(self.topic, &configs)?;
        let value = "v".repeat(VALUE_BYTES);
        for (at, step) in self.steps.iter().enumerate() {
            self.step(looker, step, &value).map_err(|why| format!("step {at}: {why}"))?;
        }
        Ok(())
    }

    fn step(&self, looker: &mut Looker, step: &Do, value: &str) -> Result<(), String> {
        let topic = self.topic;
        match step {
            Do::Batches(count, from_now) => {
                let at = now_ms() + from_now;
                (0..*count).try_for_each(|_| looker.produce(topic, &[value], Some(at)).map(|_| ()))
            }
            Do::At(after) => {
                looker.produce(topic, &[value], Some(1_700_000_000_000 + after)).map(|_| ())
            }
            Do::Unstamped => looker.produce(topic, &[value], Some(-1)).map(|_| ()),
            Do::Set(key, to) => looker.alter(2, topic, key, to),
            Do::Default(key, to) => looker.alter(4, "", key, to),
            Do::DeleteRecords(offset) => looker.delete_records(topic, *offset),
            Do::DeletedFiles => {
                let gone = |looker: &mut Looker| looker.files(topic, ".log.deleted").is_empty();
                let when = |is_so: bool, why: &str| if is_so { Ok(()) } else { Err(why.into()) };
                until(|| Ok(when(!gone(looker), "no file is called .deleted")))?;
                until(|| Ok(when(gone(looker), "deleted files stay")))
            }
            Do::See(earliest, latest, segments, first, checkpoint) => {
                let wanted = State {
                    earliest: *earliest,
                    latest: *latest,
                    below: i64::from(*earliest > 0),
                    first: *first,
                    segments: segments.to_vec(),
                    checkpoint: *checkpoint,
                };
                until(|| {
                    let state = looker.state(topic)?;
                    let differs = || format!("{state:?}, wanted {wanted:?}");
                    Ok(if state == wanted { Ok(()) } else { Err(differs()) })
                })
            }
            Do::Still(earliest, latest, segments) => {
                std::thread::sleep(std::time::Duration::from_millis(1500));
                let state = looker.state(topic)?;
                let is = (state.earliest, state.latest, &*state.segments);
                if is == (*earliest, *latest, *segments) {
                    return Ok(());
                }
                Err(format!("{is:?}, wanted {:?}", (earliest, latest, segments)))
            }
        }
    }
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
