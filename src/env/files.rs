//! The file door: positioned reads and writes, atomic replacement, directory fsync, locks.
//! The simulated side is in `files_sim.rs`.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use super::files_sim::{SimFile, SimFiles, SimLock};

/// Calls of fsync that run side by side in [`Files::sync_many`]: the file system then commits
/// them together.
const SYNC_THREADS: usize = 8;
/// Parts of one vectored write; a batch has two.
const PARTS_MAX: usize = 4;

/// Bytes between two looks of [`File::is_cached`].
const PROBE_BYTES: usize = 64 << 10;

/// Where files live.
#[derive(Clone, Default)]
pub enum Files {
    #[default]
    Real,
    Sim(SimFiles),
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

/// The size of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total_bytes: u64,
    pub usable_bytes: u64,
}

impl Files {
    /// # Errors
    /// What the system says.
    pub fn open(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
        if let Self::Sim(sim) = self {
            return sim.open(path, mode).map(File::Sim);
        }
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
        let Self::Sim(_) = self else { return fs::read(path) };
        let (file, mut content) = (self.open(path, OpenMode::Read)?, Vec::new());
        file.read_append(&mut content, 0, file.size_bytes()? as usize)?;
        Ok(content)
    }

    /// Replaces `path` so that a crash leaves the old or the new content: temporary file,
    /// fdatasync, rename, and fsync of the directory.
    ///
    /// # Errors
    /// What the system says; the old content then still stands.
    pub fn write_atomic(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let temporary = with_suffix(path, ".tmp");
        let file = self.open(&temporary, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_all_at(&[content], 0)?;
        file.sync_data()?;
        self.rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }

    /// Writes a file that may be lost by a crash, in one go.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let Self::Sim(_) = self else { return fs::write(path, content) };
        let file = self.open(path, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_all_at(&[content], 0)
    }

    /// Sorted by name.
    ///
    /// # Errors
    /// What the system says.
    pub fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        if let Self::Sim(sim) = self {
            return sim.list(dir);
        }
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
        match self {
            Self::Real => fs::create_dir_all(dir),
            Self::Sim(sim) => sim.create_dir_all(dir),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::Real => fs::rename(from, to),
            Self::Sim(sim) => sim.rename(from, to),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Real => fs::remove_file(path),
            Self::Sim(sim) => sim.remove(path),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        match self {
            Self::Real => fs::remove_dir_all(dir),
            Self::Sim(sim) => sim.remove(dir),
        }
    }

    /// The path from the root on; the file need not exist.
    ///
    /// # Errors
    /// The working directory is not known.
    pub fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        match self {
            Self::Real => std::path::absolute(path),
            Self::Sim(_) => Ok(Path::new("/").join(path)),
        }
    }

    /// How much the volume of `path` holds, and how much of it this process could still fill.
    ///
    /// # Errors
    /// What the system says.
    pub fn space(&self, path: &Path) -> io::Result<Space> {
        if let Self::Sim(sim) = self {
            return sim.list(path).map(|_| Space { total_bytes: 1 << 40, usable_bytes: 1 << 39 });
        }
        let found = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space { total_bytes: bytes(found.f_blocks), usable_bytes: bytes(found.f_bavail) })
    }

    pub fn exists(&self, path: &Path) -> bool {
        match self {
            Self::Real => path.exists(),
            Self::Sim(sim) => sim.exists(path),
        }
    }

    /// Makes creations, renames and removals in `dir` durable.
    ///
    /// # Errors
    /// What the system says; never to be retried, the kernel may have dropped the change.
    pub fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match self {
            Self::Real => fs::File::open(dir)?.sync_all(),
            Self::Sim(sim) => sim.sync_dir(dir),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn size_of(&self, path: &Path) -> io::Result<u64> {
        match self {
            Self::Real => fs::metadata(path).map(|metadata| metadata.len()),
            Self::Sim(sim) => sim.size_of(path),
        }
    }

    /// When the content was last changed, in milliseconds since the Unix epoch; `None` where that is
    /// not kept.
    ///
    /// # Errors
    /// What the system says.
    pub fn modified_ms(&self, path: &Path) -> io::Result<Option<i64>> {
        let modified = match self {
            Self::Real => fs::metadata(path)?.modified()?,
            Self::Sim(sim) => return sim.modified_ms(path),
        };
        let since = modified.duration_since(std::time::UNIX_EPOCH);
        Ok(since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()))
    }

    /// Bytes that a file below `dir` may still take.
    ///
    /// # Errors
    /// What the system says.
    pub fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        match self {
            Self::Real => {
                let found = rustix::fs::statvfs(dir)?;
                Ok(found.f_bavail.saturating_mul(found.f_frsize))
            }
            Self::Sim(sim) => Ok(sim.free_bytes()),
        }
    }

    /// fdatasync of each of `files`, side by side where it pays; all are tried.
    ///
    /// # Errors
    /// The first that failed, with its place in `files`; never to be retried.
    pub fn sync_many(&self, files: &[&File]) -> Result<(), (usize, io::Error)> {
        let in_turn = |from: usize, files: &[&File]| {
            let synced = files.iter().map(|file| file.sync_data()).enumerate();
            let mut failed = synced.filter_map(|(at, done)| Some((from + at, done.err()?)));
            let first = failed.next();
            failed.for_each(drop);
            first
        };
        if files.len() <= 2 || matches!(self, Self::Sim(_)) {
            return in_turn(0, files).map_or(Ok(()), Err);
        }
        let share = files.len().div_ceil(SYNC_THREADS);
        let first = std::thread::scope(|scope| {
            let run = |(at, part)| scope.spawn(move || in_turn(at * share, part));
            let running: Vec<_> = files.chunks(share).enumerate().map(run).collect();
            let failed = running.into_iter().map(|thread| thread.join());
            let panicked = |_| Some((0, io::Error::other("a syncing thread panicked")));
            failed.filter_map(|outcome| outcome.unwrap_or_else(panicked)).next()
        });
        first.map_or(Ok(()), Err)
    }

    /// Takes the exclusive lock of `path` (made if missing) until the result is dropped.
    ///
    /// # Errors
    /// `WouldBlock` when another process or another node in this one holds it.
    pub fn lock(&self, path: &Path) -> io::Result<FileLock> {
        if let Self::Sim(sim) = self {
            return sim.lock(path).map(FileLock::Sim);
        }
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(FileLock::Real(file))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Holds a lock file's lock; dropping gives it back.
pub enum FileLock {
    Real(fs::File),
    Sim(SimLock),
}

/// An open file.
#[derive(Debug)]
pub enum File {
    Real(fs::File),
    Sim(SimFile),
}

impl File {
    /// Fills `buffer` from `position`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before.
    pub fn read_exact_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.read_exact_at(buffer, position),
            Self::Sim(file) => match file.read_at(buffer, position)? {
                count if count == buffer.len() => Ok(()),
                _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            },
        }
    }

    /// Fills as much of `buffer` as the file has from `position`; returns how much.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let file = match self {
            Self::Real(file) => file,
            Self::Sim(file) => return file.read_at(buffer, position),
        };
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Appends `count` bytes from `position` to `out`, without clearing memory first.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before; `out` is then as it was.
    pub fn read_append(&self, out: &mut Vec<u8>, position: u64, count: usize) -> io::Result<()> {
        let (before, end) = (out.len(), out.len() + count);
        let Self::Real(file) = self else {
            out.resize(end, 0);
            let read = self.read_exact_at(&mut out[before..], position);
            return read.inspect_err(|_| out.truncate(before));
        };
        out.reserve_exact(count);
        while out.len() < end {
            let next = position + (out.len() - before) as u64;
            let spare = rustix::buffer::spare_capacity(out);
            let outcome = match rustix::io::pread(file, spare, next) {
                Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
                Err(error) => Err(error.into()),
            };
            outcome.inspect_err(|_| out.truncate(before))?;
        }
        out.truncate(end);
        Ok(())
    }

    /// Whether reading or sending these bytes will hardly wait for the disk: looked up by reading a
    /// byte of every 64 KiB, which is less than the kernel reads ahead.
    pub fn is_cached(&self, position: u64, count: usize) -> bool {
        let Self::Real(file) = self else { return true };
        let last = position + count.saturating_sub(1) as u64;
        let is_there = |at: u64| {
            let mut byte = [0];
            let buffers = &mut [IoSliceMut::new(&mut byte)];
            let read = rustix::io::preadv2(file, buffers, at, ReadWriteFlags::NOWAIT);
            read.is_ok_and(|count| count == 1)
        };
        count == 0 || (position..last).step_by(PROBE_BYTES).all(is_there) && is_there(last)
    }

    /// Writes all `parts` one after the other from `position`, with one call where possible.
    ///
    /// # Errors
    /// What the system says; bytes past `position` are then unknown.
    pub fn write_all_at(&self, parts: &[&[u8]], position: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => write_vectored(file, parts, position),
            Self::Sim(file) => file.write_all_at(parts, position),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(size_bytes),
            Self::Sim(file) => file.set_len(size_bytes),
        }
    }

    /// # Errors
    /// What the system says.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match self {
            Self::Real(file) => file.metadata().map(|m| m.len()),
            Self::Sim(file) => file.size_bytes(),
        }
    }

    /// fdatasync.
    ///
    /// # Errors
    /// What the system says; never to be retried, the kernel may have dropped the pages.
    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
            Self::Sim(file) => file.sync_data(),
        }
    }

    /// The descriptor, where there is one (for `mmap` and `sendfile`).
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Real(file) => Some(file.as_fd()),
            Self::Sim(_) => None,
        }
    }
}

/// Bytes of a file that are sent without being read.
#[derive(Clone)]
pub struct FileSlice {
    pub file: Arc<File>,
    pub position: u64,
    pub size_bytes: usize,
}

impl FileSlice {
    /// Drops `count` bytes at the front.
    pub fn advance(&mut self, count: usize) {
        let count = count.min(self.size_bytes);
        self.position += count as u64;
        self.size_bytes -= count;
    }
}

impl PartialEq for FileSlice {
    fn eq(&self, other: &Self) -> bool {
        let place = |slice: &Self| (slice.position, slice.size_bytes);
        Arc::ptr_eq(&self.file, &other.file) && place(self) == place(other)
    }
}

impl std::fmt::Debug for FileSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileSlice({} + {})", self.position, self.size_bytes)
    }
}

fn write_vectored(file: &fs::File, parts: &[&[u8]], mut position: u64) -> io::Result<()> {
    if let [only] = parts {
        return file.write_all_at(only, position);
    }
    let mut slices = [IoSlice::new(&[]); PARTS_MAX];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let written = rustix::io::retry_on_intr(|| {
        rustix::io::pwritev(file, &slices[..parts.len().min(PARTS_MAX)], position)
    })?;
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
