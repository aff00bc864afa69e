//! From a frame to an admitted request: header, version, guard. Nothing is decoded here.

use bytes::Bytes;

use crate::protocol::guard;
use crate::protocol::header::RequestHeader;

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
    let header = RequestHeader::parse(&mut frame).map_err(|error| refuse(error.to_string()))?;
    let version_known = header.key.row().is_some_and(|row| row.serves(header.version));
    let decoded_bytes = if version_known {
        let charge_max = guard::charge_max(frame.len());
        guard::check(header.key, header.version, &frame, charge_max)
            .map_err(|error| refuse(error.to_string()))?
    } else {
        0
    };
    Ok(Admitted { header, body: frame, version_known, decoded_bytes })
}
