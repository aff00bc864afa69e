//! Read-only mapping of sealed indexes: the only `unsafe` of the project.

use std::io;
use std::ops::Deref;

use crate::env::File;

/// The bytes of a sealed index.
pub(super) enum Mapped {
    Map(memmap2::Mmap),
    /// Of a simulated file, or of an empty one, which cannot be mapped.
    Owned(Vec<u8>),
}

impl Mapped {
    /// Maps the whole of `file`.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        let size_bytes = file.size_bytes()? as usize;
        let (Some(fd), 1..) = (file.as_fd(), size_bytes) else {
            let mut bytes = Vec::new();
            file.read_append(&mut bytes, 0, size_bytes)?;
            return Ok(Self::Owned(bytes));
        };
        // SAFETY: a mapping is sound while nobody shortens or writes the file. The file is an
        // index of a sealed segment: this process, which holds the directory's lock, never writes
        // or truncates one in place; it replaces the file after all maps of it are dropped from
        // the cache, and deletes by unlink, which keeps the mapped pages. A bad sector could still
        // end in SIGBUS; so indexes alone, disposable and small, are mapped, never data.
        unsafe { memmap2::Mmap::map(&fd) }.map(Self::Map)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Map(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}
