//! Kafka's variable-length integers: little-endian groups of seven bits, zig-zag where signed.
//! Source: protocol guide, "Protocol Primitive Types" (VARINT, VARLONG, UNSIGNED_VARINT).

use bytes::BufMut;

/// Why a variable-length integer could not be read.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum VarintError {
    #[error("the bytes end inside a varint")]
    Cut,
    #[error("a varint is longer than its type allows")]
    TooLong,
}

/// Reads an unsigned varint of at most 5 bytes from the front of `bytes` and moves past it.
///
/// # Errors
/// [`VarintError`]; `bytes` is left as it was.
pub fn read_u32(bytes: &mut &[u8]) -> Result<u32, VarintError> {
    let mut rest = *bytes;
    let value = read(&mut rest, 5)?;
    let value = u32::try_from(value).map_err(|_| VarintError::TooLong)?;
    *bytes = rest;
    Ok(value)
}

/// Reads an unsigned varint of at most 10 bytes.
///
/// # Errors
/// [`VarintError`]; `bytes` is left as it was.
pub fn read_u64(bytes: &mut &[u8]) -> Result<u64, VarintError> {
    read(bytes, 10)
}

/// Reads a zig-zag varint, as in record fields. Bits above the 32nd are dropped, as Kafka does.
///
/// # Errors
/// [`VarintError`]; `bytes` is left as it was.
pub fn read_i32(bytes: &mut &[u8]) -> Result<i32, VarintError> {
    let raw = read(bytes, 5)? as u32;
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Reads a zig-zag varlong, as in a record's timestamp delta. Bits above the 64th are dropped.
///
/// # Errors
/// [`VarintError`]; `bytes` is left as it was.
pub fn read_i64(bytes: &mut &[u8]) -> Result<i64, VarintError> {
    let raw = read_u64(bytes)?;
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

fn read(bytes: &mut &[u8], longest: usize) -> Result<u64, VarintError> {
    let mut value: u64 = 0;
    for at in 0..longest {
        let byte = *bytes.get(at).ok_or(VarintError::Cut)?;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Ok(value);
        }
    }
    Err(VarintError::TooLong)
}

/// Writes an unsigned varint.
pub fn write_u64(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Writes an unsigned varint.
pub fn write_u32(out: &mut impl BufMut, value: u32) {
    write_u64(out, u64::from(value));
}

/// Writes a zig-zag varint.
pub fn write_i32(out: &mut impl BufMut, value: i32) {
    write_u32(out, (value << 1 ^ value >> 31) as u32);
}

/// Writes a zig-zag varlong.
pub fn write_i64(out: &mut impl BufMut, value: i64) {
    write_u64(out, (value << 1 ^ value >> 63) as u64);
}

/// Bytes that [`write_u64`] takes for `value`.
pub fn size_u64(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Bytes that [`write_i32`] takes for `value`.
pub fn size_i32(value: i32) -> usize {
    size_u64(u64::from((value << 1 ^ value >> 31) as u32))
}

/// Bytes that [`write_i64`] takes for `value`.
pub fn size_i64(value: i64) -> usize {
    size_u64((value << 1 ^ value >> 63) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_long_or_cut_varints_are_refused_and_nothing_is_consumed() {
        #[rustfmt::skip]
        let table: [(&[u8], VarintError); 4] = [
            (&[],                               VarintError::Cut),
            (&[0x80, 0x80],                     VarintError::Cut),
            (&[0x80, 0x80, 0x80, 0x80, 0x80],   VarintError::TooLong),
            (&[0xff, 0xff, 0xff, 0xff, 0x1f],   VarintError::TooLong),
        ];
        for (input, error) in table {
            let mut bytes = input;
            assert_eq!(read_u32(&mut bytes), Err(error), "{input:x?}");
            assert_eq!(bytes, input);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_in_the_size_foretold(value: i64, small: i32) {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            prop_assert_eq!(out.len(), size_i64(value));
            write_i32(&mut out, small);
            prop_assert_eq!(out.len(), size_i64(value) + size_i32(small));
            let mut bytes = &out[..];
            prop_assert_eq!(read_i64(&mut bytes), Ok(value));
            prop_assert_eq!(read_i32(&mut bytes), Ok(small));
            prop_assert!(bytes.is_empty());
        }
    }
}
