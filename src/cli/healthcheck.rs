//! `ottla healthcheck`: speaks two requests with a broker, by hand, as a stranger would.

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::failure::Failure;
use crate::env::{Env, Stream};

/// Longest wait for connection and both answers together.
const PATIENCE: Duration = Duration::from_secs(5);
/// No answer to these two requests of a sane broker is larger.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;

/// Whether the broker at `bootstrap` (`host:port`) serves: a line for people.
///
/// # Errors
/// [`Failure`] with exit code 1.
pub async fn healthcheck(env: &Env, bootstrap: &str) -> Result<String, Failure> {
    let deadline = env.clock.deadline_in(PATIENCE);
    let asked = async {
        let mut stream = env.net.connect(bootstrap).await?;
        ask(&mut stream).await
    };
    match env.clock.until(deadline, asked).await {
        Some(Ok(line)) => Ok(line),
        Some(Err(error)) => Err(Failure::failed(format!("the broker does not serve: {error}"))
            .at(bootstrap)
            .hint("`--bootstrap` gives another address")),
        None => Err(Failure::failed("the broker does not answer within 5 seconds").at(bootstrap)),
    }
}

async fn ask(stream: &mut Stream) -> io::Result<String> {
    let versions = call(stream, API_VERSIONS, 0, &[]).await?;
    match (&versions[..]).try_get_i16() {
        Ok(0) => {}
        Ok(code) => return Err(wrong(&format!("ApiVersions answered error {code}"))),
        Err(_) => return Err(wrong("the answer to ApiVersions is cut")),
    }
    // No topics, and none to be created.
    let metadata = call(stream, METADATA, 4, &[0, 0, 0, 0, 0]).await?;
    read_metadata(&metadata).ok_or_else(|| wrong("the answer to Metadata makes no sense"))
}

/// Sends one request with header version 1 and an empty client id; returns the answer's body.
async fn call(stream: &mut Stream, key: i16, version: i16, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    frame.put_i32(10 + body.len() as i32);
    frame.put_i16(key);
    frame.put_i16(version);
    frame.put_i32(i32::from(key));
    frame.put_i16(0);
    frame.put_slice(body);
    stream.write_all(&frame).await?;
    let size = usize::try_from(stream.read_i32().await?).unwrap_or(usize::MAX);
    if !(4..=ANSWER_BYTES_MAX).contains(&size) {
        return Err(wrong("what answers there is no Kafka broker"));
    }
    let mut answer = vec![0; size];
    stream.read_exact(&mut answer).await?;
    if (&answer[..]).get_i32() != i32::from(key) {
        return Err(wrong("the answer belongs to another request"));
    }
    answer.drain(..4);
    Ok(answer)
}

/// Metadata v4: throttle time, brokers (id, host, port, rack), cluster id, controller, topics.
fn read_metadata(mut answer: &[u8]) -> Option<String> {
    answer.try_get_i32().ok()?;
    let brokers = answer.try_get_i32().ok().filter(|brokers| *brokers > 0)?;
    for _ in 0..brokers {
        answer.try_get_i32().ok()?;
        text(&mut answer)??;
        answer.try_get_i32().ok()?;
        text(&mut answer)?;
    }
    let cluster = text(&mut answer)?.unwrap_or_default();
    Some(format!("healthy: cluster {cluster}, brokers {brokers}"))
}

/// A nullable string: `None` when it is cut, `Some(None)` for null.
fn text(bytes: &mut &[u8]) -> Option<Option<String>> {
    let Ok(size) = usize::try_from(bytes.try_get_i16().ok()?) else { return Some(None) };
    let text = bytes.get(..size)?;
    *bytes = &bytes[size..];
    Some(Some(String::from_utf8_lossy(text).into_owned()))
}

fn wrong(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers two requests with these bodies, in a frame with the request's correlation id.
    async fn answers(mut stream: Stream, bodies: [Vec<u8>; 2]) {
        for body in bodies {
            let Ok(size) = stream.read_i32().await else { return };
            let mut request = vec![0; size as usize];
            stream.read_exact(&mut request).await.unwrap();
            let mut frame = Vec::new();
            frame.put_i32(4 + body.len() as i32);
            frame.put_slice(&request[4..8]);
            frame.put_slice(&body);
            stream.write_all(&frame).await.unwrap();
        }
    }

    fn metadata(brokers: i32) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_i32(0);
        body.put_i32(brokers);
        for id in 0..brokers {
            body.put_i32(id);
            body.put_i16(1);
            body.put_slice(b"h");
            body.put_i32(9092);
            body.put_i16(-1);
        }
        body.put_i16(2);
        body.put_slice(b"Xy");
        body
    }

    #[tokio::test]
    async fn a_broker_is_healthy_when_both_answers_say_so() {
        #[rustfmt::skip]
        let table = [
            (vec![0, 0],  metadata(1), "healthy: cluster Xy, brokers 1"),
            (vec![0, 0],  metadata(3), "healthy: cluster Xy, brokers 3"),
            (vec![0, 0],  metadata(0), "the answer to Metadata makes no sense"),
            (vec![0, 0],  vec![0; 5],  "the answer to Metadata makes no sense"),
            (vec![0, 35], metadata(1), "ApiVersions answered error 35"),
            (vec![0],     metadata(1), "the answer to ApiVersions is cut"),
        ];
        for (versions, metadata, line) in table {
            let (mut near, far) = Stream::pair(4096);
            let (got, ()) = tokio::join!(
                async {
                    let got = ask(&mut near).await.unwrap_or_else(|error| error.to_string());
                    drop(near);
                    got
                },
                answers(far, [versions.clone(), metadata])
            );
            assert_eq!(got, line, "{versions:?}");
        }
    }
}
