//! One connection to the broker: frames of kafka-protocol, one question at a time or pipelined.

use std::fmt::Display;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{FindCoordinatorRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use ottla::env::{Clock, Net, Stream};
use ottla::protocol::error::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};

pub type Outcome<T> = Result<T, String>;

pub fn said(error: impl Display) -> String {
    error.to_string()
}

pub struct Client {
    stream: BufReader<Stream>,
}

impl Client {
    pub async fn connect(port: u16) -> Outcome<Self> {
        let stream = Net::default().connect(&format!("127.0.0.1:{port}")).await.map_err(said)?;
        Ok(Self { stream: BufReader::with_capacity(1024, stream) })
    }

    pub async fn ask<R: Request>(&mut self, version: i16, request: &R) -> Outcome<R::Response> {
        self.send(&frame(version, request)?).await?;
        let mut answer = self.receive().await?;
        let header_version = R::Response::header_version(version);
        ResponseHeader::decode(&mut answer, header_version).map_err(said)?;
        R::Response::decode(&mut answer, version).map_err(said)
    }

    pub async fn send(&mut self, frame: &[u8]) -> Outcome<()> {
        self.stream.get_mut().write_all(frame).await.map_err(said)
    }

    /// The next answer, without its size.
    pub async fn receive(&mut self) -> Outcome<Bytes> {
        let size = self.stream.read_i32().await.map_err(said)?;
        let mut answer = vec![0; usize::try_from(size).map_err(said)?];
        self.stream.read_exact(&mut answer).await.map_err(said)?;
        Ok(answer.into())
    }
}

/// With its size in front.
pub fn frame<R: Request>(version: i16, request: &R) -> Outcome<Bytes> {
    let mut out = BytesMut::new();
    out.put_i32(0);
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_client_id(Some(StrBytes::from_static_str("members")));
    header.encode(&mut out, R::header_version(version)).map_err(said)?;
    request.encode(&mut out, version).map_err(said)?;
    let size = (out.len() - 4) as i32;
    out[..4].copy_from_slice(&size.to_be_bytes());
    Ok(out.freeze())
}

/// Whether the request is to be sent again: the coordinator is not there yet.
pub fn comes_later(code: i16) -> bool {
    use ErrorCode::{CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator};
    [CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator]
        .iter()
        .any(|later| *later as i16 == code)
}

/// Between two questions that are asked again and again.
pub async fn pause() {
    Clock::real().sleep(Duration::from_millis(20)).await;
}

/// The first question for a coordinator makes the topic of the groups.
pub async fn coordinator_is_there(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port).await?;
    let request =
        FindCoordinatorRequest::default().with_coordinator_keys(vec!["any".to_owned().into()]);
    loop {
        let answer = client.ask(4, &request).await?;
        match answer.coordinators.first().map(|found| found.error_code) {
            Some(0) => return Ok(()),
            Some(code) if comes_later(code) => pause().await,
            code => return Err(format!("FindCoordinator: error {code:?}")),
        }
    }
}
