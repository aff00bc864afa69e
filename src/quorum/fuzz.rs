//! Fuzz targets of the quorum's files.

use bytes::Bytes;

use super::frame::scan;
use super::{batches, checkpoint};

/// The bytes as they are; then cut into contents (a byte says how long each is), each in a frame
/// with the length and CRC that let it in.
pub fn log(data: &[u8]) {
    // Damage is told, not passed over; here only panics count.
    let _ = scan(&Bytes::copy_from_slice(data));
    let (mut file, mut rest) = (Vec::new(), data);
    while let [length, after @ ..] = rest {
        let (content, after) = after.split_at(usize::from(*length).min(after.len()));
        file.extend_from_slice(&(content.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32c::crc32c(content).to_le_bytes());
        file.extend_from_slice(content);
        rest = after;
    }
    let _ = scan(&Bytes::from(file));
}

pub fn checkpoint(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let _ = checkpoint::decode(&bytes);
    let mut entries = Vec::new();
    let _ = batches::decode(&bytes, &mut entries);
    let _ = batches::split(&bytes);
    let _ = checkpoint::CheckpointId::of_file(&String::from_utf8_lossy(data));
}
