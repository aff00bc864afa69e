//! The four codecs of a batch: gzip, snappy (raw or in xerial's framing), lz4 frames, zstd.
//! Reading is a stream into the caller's buffer and stops at [`OUTPUT_BYTES_MAX`].

use std::io::{self, BufReader, Read, Write};

use bytes::{Buf, Bytes};
use flate2::bufread::MultiGzDecoder;

use super::BatchError;

/// No batch has more bytes of records than a Java client can hold.
const OUTPUT_BYTES_MAX: u64 = i32::MAX as u64;
/// `compression.lz4.level`, if nobody sets it.
const LZ4_DEFAULT_LEVEL: i32 = 9;
/// Xerial's stream magic, followed by two version words.
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_BYTES: usize = 16;
/// Kafka's block size for snappy.
const XERIAL_BLOCK_BYTES: usize = 32 << 10;
/// Snappy's densest element makes 64 bytes of 3.
const SNAPPY_RATIO_MAX: usize = 22;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    /// By number.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// # Errors
    /// [`BatchError::UnknownCodec`] above 4.
    pub fn from_id(id: u8) -> Result<Self, BatchError> {
        let unknown = || BatchError::UnknownCodec(i16::from(id));
        Self::ALL.get(usize::from(id)).copied().ok_or_else(unknown)
    }

    /// As in the low three bits of the attributes.
    pub fn id(self) -> u8 {
        self as u8
    }
}

/// A codec with its level (`compression.<codec>.level`); codecs without levels ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codec {
    pub compression: Compression,
    pub level: i32,
}

impl Codec {
    pub const NONE: Self = Self { compression: Compression::None, level: 0 };

    /// With Kafka's default level.
    pub fn of(compression: Compression) -> Self {
        let level = match compression {
            Compression::None | Compression::Snappy => 0,
            Compression::Gzip => -1,
            Compression::Lz4 => LZ4_DEFAULT_LEVEL,
            Compression::Zstd => 3,
        };
        Self { compression, level }
    }

    /// # Errors
    /// What the codec says; for bytes in memory it has no reason to.
    pub(super) fn compress(self, records: &[u8]) -> io::Result<Vec<u8>> {
        match self.compression {
            Compression::None => Ok(records.to_vec()),
            Compression::Gzip => {
                let level = u32::try_from(self.level)
                    .map_or(flate2::Compression::default(), |l| flate2::Compression::new(l.min(9)));
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(records)?;
                encoder.finish()
            }
            Compression::Snappy => xerial(records),
            Compression::Lz4 if self.level != LZ4_DEFAULT_LEVEL => lz4_high(records, self.level),
            Compression::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new()
                    .block_size(lz4_flex::frame::BlockSize::Max64KB)
                    .block_mode(lz4_flex::frame::BlockMode::Independent);
                let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(records)?;
                encoder.finish().map_err(io::Error::other)
            }
            Compression::Zstd => zstd::stream::encode_all(records, self.level),
        }
    }
}

/// As Kafka: the default level is the fast compressor, every other one the thorough one.
fn lz4_high(records: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let mut encoder = lz4::EncoderBuilder::new()
        .block_size(lz4::BlockSize::Max64KB)
        .block_mode(lz4::BlockMode::Independent)
        .checksum(lz4::ContentChecksum::NoChecksum)
        .level(level.clamp(3, 12) as u32)
        .build(Vec::new())?;
    encoder.write_all(records)?;
    let (packed, done) = encoder.finish();
    done.map(|()| packed)
}

fn xerial(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(XERIAL_HEADER_BYTES + records.len() / 2);
    out.extend_from_slice(XERIAL_MAGIC);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in records.chunks(XERIAL_BLOCK_BYTES) {
        let packed = encoder.compress_vec(block).map_err(io::Error::other)?;
        out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
        out.extend_from_slice(&packed);
    }
    Ok(out)
}

/// The decompressed bytes of a batch's payload.
pub(super) struct Decompressed {
    decoder: Decoder,
    left: u64,
}

enum Decoder {
    Plain(bytes::buf::Reader<Bytes>),
    Gzip(Box<MultiGzDecoder<bytes::buf::Reader<Bytes>>>),
    Snappy(SnappyReader),
    Lz4(Box<lz4_flex::frame::FrameDecoder<bytes::buf::Reader<Bytes>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<bytes::buf::Reader<Bytes>>>>),
}

impl Decompressed {
    /// # Errors
    /// [`BatchError::Undecodable`]: the payload cannot be of this codec.
    pub fn new(compression: Compression, payload: Bytes) -> Result<Self, BatchError> {
        let decoder = match compression {
            Compression::None => Decoder::Plain(payload.reader()),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(payload.reader()))),
            Compression::Snappy => Decoder::Snappy(SnappyReader::new(payload)),
            Compression::Lz4 => {
                refuse_linked_blocks(&payload)?;
                Decoder::Lz4(Box::new(lz4_flex::frame::FrameDecoder::new(payload.reader())))
            }
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(payload.reader());
                Decoder::Zstd(Box::new(decoder.map_err(undecodable)?))
            }
        };
        Ok(Self { decoder, left: OUTPUT_BYTES_MAX })
    }

    /// Fills the front of `buffer`; 0 at the end of the records.
    ///
    /// # Errors
    /// [`BatchError::Undecodable`]: broken payload, or more output than a batch may have.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, BatchError> {
        let read = match &mut self.decoder {
            Decoder::Plain(reader) => reader.read(buffer),
            Decoder::Gzip(reader) => reader.read(buffer),
            Decoder::Snappy(reader) => reader.read(buffer),
            Decoder::Lz4(reader) => reader.read(buffer),
            Decoder::Zstd(reader) => reader.read(buffer),
        };
        let read = read.map_err(undecodable)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            BatchError::Undecodable(format!("more than {OUTPUT_BYTES_MAX} bytes of records"))
        })?;
        Ok(read)
    }
}

fn undecodable(error: io::Error) -> BatchError {
    BatchError::Undecodable(error.to_string())
}

/// Java's client reads frames of independent blocks only, so nothing else may be stored.
fn refuse_linked_blocks(frame: &[u8]) -> Result<(), BatchError> {
    const BLOCK_INDEPENDENCE: u8 = 1 << 5;
    match frame.get(4) {
        Some(flags) if flags & BLOCK_INDEPENDENCE == 0 => {
            Err(BatchError::Undecodable("lz4 frame with dependent blocks".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Xerial's blocks one by one, or one raw snappy block.
struct SnappyReader {
    payload: Bytes,
    framed: bool,
    decoder: snap::raw::Decoder,
    block: Vec<u8>,
    taken: usize,
}

impl SnappyReader {
    fn new(payload: Bytes) -> Self {
        let framed = payload.len() >= XERIAL_HEADER_BYTES && payload.starts_with(XERIAL_MAGIC);
        let payload = if framed { payload.slice(XERIAL_HEADER_BYTES..) } else { payload };
        let decoder = snap::raw::Decoder::new();
        Self { payload, framed, decoder, block: Vec::new(), taken: 0 }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.block.len() {
            if self.payload.is_empty() {
                return Ok(0);
            }
            let packed = self.next_block()?;
            let size = snap::raw::decompress_len(&packed).map_err(io::Error::other)?;
            if size > packed.len() * SNAPPY_RATIO_MAX {
                return Err(io::Error::other("snappy block claims an impossible size"));
            }
            self.block.resize(size, 0);
            self.decoder.decompress(&packed, &mut self.block).map_err(io::Error::other)?;
            self.taken = 0;
        }
        let count = buffer.len().min(self.block.len() - self.taken);
        buffer[..count].copy_from_slice(&self.block[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }

    fn next_block(&mut self) -> io::Result<Bytes> {
        if !self.framed {
            return Ok(std::mem::take(&mut self.payload));
        }
        // Streams may be joined: another header stands where a length would.
        while self.payload.len() >= XERIAL_HEADER_BYTES && self.payload.starts_with(XERIAL_MAGIC) {
            self.payload.advance(XERIAL_HEADER_BYTES);
        }
        let cut = || io::Error::other("snappy block is cut short");
        let size = self.payload.try_get_u32().map_err(|_| cut())? as usize;
        if size > self.payload.len() {
            return Err(cut());
        }
        Ok(self.payload.split_to(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decompress(compression: Compression, payload: Vec<u8>) -> Result<Vec<u8>, BatchError> {
        let mut stream = Decompressed::new(compression, payload.into())?;
        let (mut out, mut buffer) = (Vec::new(), [0; 1000]);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(out),
                read => out.extend_from_slice(&buffer[..read]),
            }
        }
    }

    #[test]
    fn raw_snappy_and_joined_xerial_streams_are_read() {
        let raw = snap::raw::Encoder::new().compress_vec(b"hello hello").expect("snappy");
        assert_eq!(decompress(Compression::Snappy, raw).expect("raw"), b"hello hello");
        let mut joined = xerial(b"one ").expect("xerial");
        joined.extend(xerial(b"two").expect("xerial"));
        assert_eq!(decompress(Compression::Snappy, joined).expect("joined"), b"one two");
    }

    #[test]
    fn a_higher_level_packs_more_and_every_level_is_read_back() {
        let text: String = (0_u64..9000)
            .map(|at| format!("word-{} ", at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55))
            .collect();
        #[rustfmt::skip]
        let table = [
            // codec             levels, each packs more than the one before
            (Compression::Gzip,  &[1, -1, 9][..]),
            (Compression::Lz4,   &[9, 3, 17][..]),
            (Compression::Zstd,  &[-131_072, 1, 19][..]),
        ];
        for (compression, levels) in table {
            let packed = |level: &i32| {
                let packed = Codec { compression, level: *level }.compress(text.as_bytes());
                let packed = packed.expect("compress");
                assert_eq!(decompress(compression, packed.clone()), Ok(text.clone().into_bytes()));
                packed.len()
            };
            let sizes: Vec<usize> = levels.iter().map(packed).collect();
            assert!(sizes.is_sorted_by(|a, b| a > b), "{compression:?} {levels:?}: {sizes:?}");
        }
    }

    #[test]
    fn a_snappy_block_cannot_claim_memory_it_does_not_fill() {
        let mut claim = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
        claim.extend_from_slice(&[0; 8]);
        assert!(matches!(
            decompress(Compression::Snappy, claim),
            Err(BatchError::Undecodable(text)) if text.contains("impossible size")
        ));
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_read_back(data in proptest::collection::vec(0_u8..4, 0..100_000)) {
            for compression in Compression::ALL {
                let packed = Codec::of(compression).compress(&data).expect("compress");
                prop_assert_eq!(decompress(compression, packed), Ok(data.clone()));
            }
        }

        #[test]
        fn noise_never_panics(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            for compression in Compression::ALL {
                let _ = decompress(compression, data.clone());
            }
        }
    }
}
