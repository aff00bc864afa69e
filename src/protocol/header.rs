//! Request and response headers. Own code: the crate's panics on frames below four bytes.
//! Source: protocol guide; KIP-482 (headers v2 and v1), KIP-511 (ApiVersions of any version).

use bytes::{BufMut, Bytes, BytesMut};

use super::StrBytes;
use super::api::{ApiKey, ApiRow, UnknownApiKey};
use super::codec::{self, At, Wire};
use super::wire::DecodeError;

/// What stands before the body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    pub key: ApiKey,
    /// Served by this key, but for ApiVersions, where it may be any.
    pub version: i16,
    /// Returned with the answer.
    pub correlation_id: i32,
    pub client_id: Option<StrBytes>,
}

/// Why a frame has no header that we can go on with; the connection is closed, as Kafka does.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HeaderError {
    #[error(transparent)]
    UnknownKey(#[from] UnknownApiKey),
    #[error("{0} is not served")]
    NotServed(ApiKey),
    #[error("{key} is served in versions {} to {}, not {version}", row.min, row.max)]
    Version { key: ApiKey, version: i16, row: &'static ApiRow },
    #[error("request header: {0}")]
    Malformed(#[from] DecodeError),
}

/// Headers are read at this place: lengths of two bytes, whatever the version (only the tagged
/// fields after them are new in version 2).
const AT: At = At { version: 0, flexible: false };

impl RequestHeader {
    /// Reads the header off the front of a frame and leaves the body.
    ///
    /// # Errors
    /// [`HeaderError`]: the connection is closed. An ApiVersions request of a version that is not
    /// served is no error: it gets an answer that says so.
    pub fn parse(frame: &mut Bytes) -> Result<Self, HeaderError> {
        let key = i16::read(frame, AT).map_err(|error| error.at("request_api_key"))?;
        let version = i16::read(frame, AT).map_err(|error| error.at("request_api_version"))?;
        let key = ApiKey::try_from(key)?;
        let row = key.row().ok_or(HeaderError::NotServed(key))?;
        if !row.serves(version) && key != ApiKey::ApiVersions {
            return Err(HeaderError::Version { key, version, row });
        }
        let correlation_id = i32::read(frame, AT).map_err(|error| error.at("correlation_id"))?;
        let client_id =
            StrBytes::read_nullable(frame, AT).map_err(|error| error.at("client_id"))?;
        if row.is_flexible(version) {
            codec::read_tagged(frame, |_, _| Ok(())).map_err(|error| error.at("header_tags"))?;
        }
        Ok(Self { key, version, correlation_id, client_id })
    }
}

/// Appends the header of an answer. ApiVersions answers without tagged fields in every version,
/// since its asker cannot know yet what we speak.
pub fn response_header(key: ApiKey, version: i16, correlation_id: i32, out: &mut BytesMut) {
    out.put_i32(correlation_id);
    let flexible = key.row().is_some_and(|row| row.is_flexible(version));
    if flexible && key != ApiKey::ApiVersions {
        out.put_u8(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_by_the_versions_of_their_key() {
        #[rustfmt::skip]
        let table: [(&[u8], _); 4] = [
            (b"\0\x03\0\x08\0\0\0\x07\0\x01cBODY",             (ApiKey::Metadata, 8, Some("c"))),
            (b"\0\x03\0\x09\0\0\0\x07\xff\xff\x01\x05\x01xBODY", (ApiKey::Metadata, 9, None)),
            (b"\0\x12\0\x7f\0\0\0\x07\0\x01c\0BODY",           (ApiKey::ApiVersions, 127, Some("c"))),
            (b"\0\x2f\0\0\0\0\0\x07\0\0BODY",                  (ApiKey::OffsetDelete, 0, Some(""))),
        ];
        for (frame, (key, version, client_id)) in table {
            let mut frame = Bytes::from_static(frame);
            let header = RequestHeader::parse(&mut frame).unwrap();
            let got = (header.key, header.version, header.client_id.as_deref());
            assert_eq!(got, (key, version, client_id));
            assert_eq!((header.correlation_id, &frame[..]), (7, &b"BODY"[..]));
        }
    }

    #[test]
    fn a_header_that_cannot_be_served_is_refused_by_name() {
        #[rustfmt::skip]
        let table: [(&[u8], &str); 7] = [
            (b"",                                  "request header: `request_api_key`: the bytes end inside it"),
            (b"\0\x03\0",                          "request header: `request_api_version`: the bytes end inside it"),
            (b"\0\x5f\0\0\0\0\0\x07\0\0",        "95 is not an API key of Kafka 4.4"),
            (b"\0\x1a\0\0\0\0\0\x07\0\0",        "EndTxn is not served"),
            (b"\0\0\0\x02\0\0\0\x07\0\0",        "Produce is served in versions 3 to 13, not 2"),
            (b"\0\x03\0\x08\0\0\0\x07\0\x05c",    "request header: `client_id`: its length is negative or longer than what follows"),
            (b"\0\x03\0\x09\0\0\0\x07\0\0\xff\xff\x7f", "request header: `header_tags`: it has more than 10000 tagged fields"),
        ];
        for (frame, message) in table {
            let error = RequestHeader::parse(&mut Bytes::from_static(frame)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn an_answer_has_tags_in_its_header_when_flexible_but_for_api_versions() {
        #[rustfmt::skip]
        let table: [(_, _, &[u8]); 3] = [
            (ApiKey::Metadata,    8, &[0, 0, 0, 7]),
            (ApiKey::Metadata,    9, &[0, 0, 0, 7, 0]),
            (ApiKey::ApiVersions, 4, &[0, 0, 0, 7]),
        ];
        for (key, version, expected) in table {
            let mut out = BytesMut::new();
            response_header(key, version, 7, &mut out);
            assert_eq!(out, expected);
        }
    }
}
