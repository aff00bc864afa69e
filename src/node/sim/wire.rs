//! A client's connection: one request at a time, encoded and read by another codec than the
//! broker's own.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Lab;
use crate::env::Stream;

/// Every request has a shorter deadline of its own; what is silent for longer is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Wire {
    stream: Stream,
    lab: Lab,
    asked: i32,
    /// Something was sent that is answered by a close if it fails.
    unanswered: bool,
}

impl Wire {
    /// `None`: the node is not there any more.
    pub async fn open(lab: &Lab) -> Option<Self> {
        let stream = lab.env().net.connect(super::ADDRESS).await.ok()?;
        Some(Self { stream, lab: lab.clone(), asked: 0, unanswered: false })
    }

    /// Asks and waits for the answer. `None`: there is none, and nobody knows what became of the
    /// request.
    pub async fn ask<R: Request>(&mut self, request: &R, version: i16) -> Option<R::Response> {
        self.send(request, version).await?;
        let mut frame = self.answer(R::KEY).await?;
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(version));
        assert_eq!(header.expect("a header").correlation_id, self.asked);
        let response = R::Response::decode(&mut frame, version);
        assert!(frame.is_empty(), "key {}: bytes after the answer", R::KEY);
        Some(response.expect("an answer of that key and version"))
    }

    /// For a Produce that nobody answers; if it fails the connection is closed.
    pub async fn send_only<R: Request>(&mut self, request: &R, version: i16) -> Option<()> {
        self.unanswered = true;
        self.send(request, version).await
    }

    async fn send<R: Request>(&mut self, request: &R, version: i16) -> Option<()> {
        self.asked += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.asked)
            .with_client_id(Some(StrBytes::from_static_str("client")));
        let mut body = BytesMut::new();
        header.encode(&mut body, R::header_version(version)).expect("encoded");
        request.encode(&mut body, version).expect("encoded");
        self.stream.write_all(&(body.len() as u32).to_be_bytes()).await.ok()?;
        self.stream.write_all(&body).await.ok()
    }

    async fn answer(&mut self, key: i16) -> Option<Bytes> {
        let clock = self.lab.env().clock.clone();
        let stream = &mut self.stream;
        let read = async {
            let size = stream.read_u32().await.ok()?;
            let mut frame = vec![0; size as usize];
            stream.read_exact(&mut frame).await.ok()?;
            Some(Bytes::from(frame))
        };
        let read = clock.until(clock.deadline_in(PATIENCE), read).await;
        // What arrives after the crash never did.
        if self.lab.is_down() {
            return None;
        }
        let Some(frame) = read else { panic!("key {key}: no answer within {PATIENCE:?}") };
        assert!(frame.is_some() || self.unanswered, "key {key}: the broker closed the connection");
        let frame = frame?;
        self.lab.note(&frame);
        Some(frame)
    }
}
