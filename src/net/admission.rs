//! From a frame to an admitted request: header, version, guard. Nothing is decoded here.

use bytes::Bytes;

use crate::protocol::api::ApiKey;
use crate::protocol::guard;
use crate::protocol::header::{self, RequestHeader};

/// A request whose every length and count was checked against its bytes.
pub struct Admitted {
    pub header: RequestHeader,
    pub body: Bytes,
    pub version_known: bool,
    /// What decoding it takes at most.
    pub decoded_bytes: usize,
}

/// Why the connection is closed.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub api_key: Option<i16>,
    pub version: Option<i16>,
    pub reason: String,
}

/// Checks one frame (without its size field).
///
/// # Errors
/// [`Refused`]: the bytes are no request, of no served key or version, or would not decode within
/// their budget. ApiVersions of any version passes (KIP-511).
pub fn admit(mut frame: Bytes) -> Result<Admitted, Refused> {
    let number = |at: usize| Some(i16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let (api_key, version) = (number(0), number(2));
    let refuse = |reason: String| Refused { api_key, version, reason };
    let header = header::parse(&mut frame).map_err(|error| refuse(error.to_string()))?;
    let row = header.key.row();
    let row = row.ok_or_else(|| refuse(format!("{} is not served", header.key.name())))?;
    let version_known = row.serves(header.version);
    if !version_known && header.key != ApiKey::ApiVersions {
        return Err(refuse(format!("version {} is not served", header.version)));
    }
    let decoded_bytes = if version_known {
        guard::check(header.key, header.version, &frame).map_err(|e| refuse(e.to_string()))?
    } else {
        0
    };
    Ok(Admitted { header, body: frame, version_known, decoded_bytes })
}
