//! The file door: positioned reads and writes, atomic replacement, directory fsync, locks.

use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where files live.
#[derive(Clone, Default)]
pub enum Files {
    #[default]
    Real,
}

/// What [`Files::open`] does when the file is there, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; reading only.
    Read,
    /// Must exist; reading and writing.
    ReadWrite,
    /// Made if missing, kept if there.
    Create,
    /// Must not exist.
    CreateNew,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
}

impl Files {
    /// # Errors
    /// What the system says.
    pub fn open(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::Create => options.write(true).create(true).truncate(false),
            OpenMode::CreateNew => options.write(true).create_new(true),
        };
        options.open(path).map(File::Real)
    }

    /// The whole content of a small file.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    /// Replaces `path` so that a crash leaves the old or the new content: temporary file,
    /// fdatasync, rename, and fsync of the directory.
    ///
    /// # Errors
    /// What the system says; the old content then still stands.
    pub fn write_atomic(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let temporary = with_suffix(path, ".tmp");
        let file = fs::File::create(&temporary)?;
        file.write_all_at(content, 0)?;
        file.sync_data()?;
        fs::rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }

    /// Writes a file that may be lost by a crash, in one go.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        fs::write(path, content)
    }

    /// Sorted by name.
    ///
    /// # Errors
    /// What the system says.
    pub fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, is_dir: entry.file_type()?.is_dir() });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// # Errors
    /// What the system says.
    pub fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// # Errors
    /// What the system says.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// # Errors
    /// What the system says.
    pub fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    pub fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    /// Makes creations, renames and removals in `dir` durable.
    ///
    /// # Errors
    /// What the system says; never to be retried, the kernel may have dropped the change.
    pub fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    /// Takes the exclusive lock of `path` (made if missing) until the result is dropped.
    ///
    /// # Errors
    /// `WouldBlock` when another process or another node in this one holds it.
    pub fn lock(&self, path: &Path) -> io::Result<FileLock> {
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(FileLock(file))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Holds a lock file's lock; dropping gives it back.
pub struct FileLock(#[expect(dead_code, reason = "held for its lock")] fs::File);

/// An open file.
#[derive(Debug)]
pub enum File {
    Real(fs::File),
}

impl File {
    /// Fills `buffer` from `position`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before.
    pub fn read_exact_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.read_exact_at(buffer, position),
        }
    }

    /// Writes all `parts` one after the other from `position`, with one call where possible.
    ///
    /// # Errors
    /// What the system says; bytes past `position` are then unknown.
    pub fn write_all_at(&self, parts: &[&[u8]], position: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => write_vectored(file, parts, position),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(size_bytes),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match self {
            Self::Real(file) => file.metadata().map(|m| m.len()),
        }
    }

    /// fdatasync.
    ///
    /// # Errors
    /// What the system says; never to be retried, the kernel may have dropped the pages.
    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
        }
    }

    /// The descriptor, where there is one (for `mmap` and `sendfile`).
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Real(file) => Some(file.as_fd()),
        }
    }
}

fn write_vectored(file: &fs::File, parts: &[&[u8]], mut position: u64) -> io::Result<()> {
    if let [only] = parts {
        return file.write_all_at(only, position);
    }
    let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let written = rustix::io::retry_on_intr(|| rustix::io::pwritev(file, &slices, position))?;
    if written == total {
        return Ok(());
    }
    // A short write (a signal, a nearly full disk): the rest goes part by part.
    let mut skip = written;
    position += written as u64;
    for part in parts {
        let rest = part.get(skip..).unwrap_or(&[]);
        skip = skip.saturating_sub(part.len());
        file.write_all_at(rest, position)?;
        position += rest.len() as u64;
    }
    Ok(())
}
