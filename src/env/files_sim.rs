//! Simulated files: in memory, with what is durable kept apart from what only the page cache
//! has. A crash keeps the durable part and, by a seed, pieces of the rest: whole writes, torn
//! ones, none; of each directory a prefix of its unsynced changes. The power may go at any call
//! that changes something. Nothing here is told to the rooms above: to them it is a file system.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::files::{DirEntry, OpenMode};
use super::random::Random;
use super::trace::Trace;

/// A crash tears a write at these borders, as a disk does.
const SECTOR_BYTES: usize = 512;
const ROOT: usize = 0;
const ENOSPC: i32 = 28;

/// A file system in memory. Cloning shares it.
#[derive(Clone)]
pub struct SimFiles(Arc<Mutex<State>>);

/// What a fault meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOn {
    Write,
    /// fsync of a file or a directory.
    Sync,
    /// fsync of a file.
    Data,
    /// Making, renaming or removing a name.
    Name,
}

impl FaultOn {
    fn meets(self, call: Self) -> bool {
        self == call || (self == Self::Sync && call == Self::Data)
    }
}

/// How often the disk was asked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimCounts {
    pub writes: u64,
    pub syncs: u64,
    pub names: u64,
    pub opens: u64,
}

struct Fault {
    on: FaultOn,
    /// Calls that still succeed before this one fails, once.
    spare: u64,
    errno: i32,
}

struct State {
    /// Handles and locks of an earlier life are stale.
    life: u64,
    inodes: Vec<Inode>,
    locks: Vec<PathBuf>,
    faults: Vec<Fault>,
    counts: SimCounts,
    modified_ms: BTreeMap<usize, i64>,
    free_bytes: u64,
    /// Calls that change something until the power goes.
    power_for: Option<u64>,
    /// The power has gone: every call fails until [`SimFiles::crash`] or [`SimFiles::kill`].
    dead: watch::Sender<bool>,
    is_full: bool,
    /// Faults that have hit since the last crash or kill.
    faults_hit: u64,
    trace: Trace,
}

enum Inode {
    Dir { names: Names, durable: Names, pending: Vec<NameChange> },
    File { content: Vec<u8>, durable: Vec<u8>, pending: Vec<Change> },
}

type Names = BTreeMap<String, usize>;

/// One atomic change of a directory: names set or removed (a rename is both).
type NameChange = Vec<(String, Option<usize>)>;

#[derive(Clone)]
enum Change {
    Write { position: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { position, bytes } => {
                let end = position + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*position..end].copy_from_slice(bytes);
            }
            Self::SetLen(size) => content.resize(*size, 0),
        }
    }

    /// What of this change a crash leaves: all, nothing, a prefix, or some sectors. A sector that
    /// is lost keeps what the disk had there, zeros behind the end of the file.
    fn torn(self, random: &Random) -> Vec<Self> {
        let (position, bytes) = match self {
            Self::Write { position, bytes } => (position, bytes),
            Self::SetLen(_) => return Vec::from_iter((random.below(2) == 0).then_some(self)),
        };
        match random.below(4) {
            0 => vec![Self::Write { position, bytes }],
            1 => Vec::new(),
            2 => {
                let kept = random.below(bytes.len() as u64 + 1) as usize;
                vec![Self::Write { position, bytes: bytes[..kept].to_vec() }]
            }
            _ => {
                let grown = Self::Write { position: position + bytes.len(), bytes: Vec::new() };
                let sectors = (position..).step_by(SECTOR_BYTES).zip(bytes.chunks(SECTOR_BYTES));
                let kept = sectors.filter(|_| random.below(2) == 1);
                let kept = kept.map(|(position, sector)| {
                    let bytes = sector.to_vec();
                    Self::Write { position, bytes }
                });
                kept.chain([grown]).collect()
            }
        }
    }
}

fn apply_names(names: &mut Names, change: &NameChange) {
    for (name, target) in change {
        match target {
            Some(inode) => names.insert(name.clone(), *inode),
            None => names.remove(name),
        };
    }
}

impl Default for SimFiles {
    fn default() -> Self {
        let root = Inode::Dir { names: Names::new(), durable: Names::new(), pending: Vec::new() };
        Self(Arc::new(Mutex::new(State {
            life: 0,
            inodes: vec![root],
            locks: Vec::new(),
            faults: Vec::new(),
            counts: SimCounts::default(),
            modified_ms: BTreeMap::new(),
            free_bytes: u64::MAX,
            power_for: None,
            dead: watch::Sender::new(false),
            is_full: false,
            faults_hit: 0,
            trace: Trace::default(),
        })))
    }
}

/// The test's side.
impl SimFiles {
    /// Power loss: what was not synced is kept, torn or dropped as `seed` says. Open files and
    /// locks of before are stale.
    pub fn crash(&self, seed: u64) {
        let mut state = self.state();
        let random = Random::seeded(seed);
        state.begin_life();
        for inode in &mut state.inodes {
            match inode {
                Inode::Dir { names, durable, pending } => {
                    let kept = random.below(pending.len() as u64 + 1) as usize;
                    pending[..kept].iter().for_each(|change| apply_names(durable, change));
                    pending.clear();
                    names.clone_from(durable);
                }
                Inode::File { content, durable, pending } => {
                    let kept = pending.drain(..).flat_map(|change| change.torn(&random));
                    kept.for_each(|change| change.apply(durable));
                    content.clone_from(durable);
                }
            }
        }
    }

    /// `kill -9` of the process: the page cache stays, open files and locks are gone.
    pub fn kill(&self) {
        self.state().begin_life();
    }

    /// The power goes at the call after `spare` more that write, sync or change a name: that call
    /// fails with half of it done, and so does every one after it.
    pub fn lose_power(&self, spare: u64) {
        self.state().power_for = Some(spare);
    }

    pub fn has_power(&self) -> bool {
        !*self.state().dead.borrow()
    }

    /// Resolves when the power has gone.
    pub async fn power_lost(&self) {
        let mut dead = self.state().dead.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// While it is full nothing is written and no name is made (ENOSPC).
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Calls that failed by [`SimFiles::fail`] or for lack of space since the last crash or kill.
    pub fn faults_hit(&self) -> u64 {
        self.state().faults_hit
    }

    /// A hash of all that was written, synced and named so far, in order.
    pub fn trace(&self) -> u64 {
        self.state().trace.value()
    }

    /// The call of this kind after `spare` more fails once with `errno` (EIO 5, ENOSPC 28). A
    /// failed write leaves half its bytes; a failed fsync drops what it should have saved.
    pub fn fail(&self, on: FaultOn, spare: u64, errno: i32) {
        self.state().faults.push(Fault { on, spare, errno });
    }

    /// What the disk says is free; a write does not ask it.
    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.state().free_bytes = free_bytes;
    }

    pub fn counts(&self) -> SimCounts {
        self.state().counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

fn stale() -> io::Error {
    io::Error::other("the handle is of before the crash")
}

impl State {
    fn begin_life(&mut self) {
        self.life += 1;
        self.locks.clear();
        self.faults.clear();
        self.power_for = None;
        self.faults_hit = 0;
        self.dead.send_replace(false);
    }

    fn alive(&self) -> io::Result<()> {
        if *self.dead.borrow() { Err(stale()) } else { Ok(()) }
    }

    fn check(&mut self, on: FaultOn, needs_room: bool) -> io::Result<()> {
        self.alive()?;
        match self.power_for {
            None => {}
            Some(0) => {
                self.life += 1;
                self.dead.send_replace(true);
                return Err(stale());
            }
            Some(spare) => self.power_for = Some(spare - 1),
        }
        if self.is_full && needs_room {
            self.faults_hit += 1;
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        match on {
            FaultOn::Write => self.counts.writes += 1,
            FaultOn::Sync | FaultOn::Data => self.counts.syncs += 1,
            FaultOn::Name => self.counts.names += 1,
        }
        let mut hit = None;
        for (at, fault) in self.faults.iter_mut().enumerate().filter(|(_, f)| f.on.meets(on)) {
            match fault.spare.checked_sub(1) {
                Some(spare) => fault.spare = spare,
                None => hit = Some(at),
            }
        }
        match hit {
            Some(at) => {
                self.faults_hit += 1;
                Err(io::Error::from_raw_os_error(self.faults.remove(at).errno))
            }
            None => Ok(()),
        }
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.alive()?;
        let mut at = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let Inode::Dir { names, .. } = &self.inodes[at] else { return Err(not_found(path)) };
            at = *names.get(&*name.to_string_lossy()).ok_or_else(|| not_found(path))?;
        }
        Ok(at)
    }

    /// The directory that holds `path`, and the name in it.
    fn parent(&self, path: &Path) -> io::Result<(usize, String)> {
        let name = path.file_name().ok_or_else(|| not_found(path))?;
        let dir = self.find(path.parent().unwrap_or(Path::new("")))?;
        Ok((dir, name.to_string_lossy().into_owned()))
    }

    fn rename_in(&mut self, dir: usize, change: NameChange) -> io::Result<()> {
        for (name, target) in &change {
            self.trace.note(name.as_bytes());
            self.trace.note(&[u8::from(target.is_some())]);
        }
        // A rename needs none, and a removal gives some.
        let needs_room = matches!(change.as_slice(), [(_, Some(_))]);
        self.check(FaultOn::Name, needs_room)?;
        let Inode::Dir { names, pending, .. } = &mut self.inodes[dir] else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        apply_names(names, &change);
        pending.push(change);
        Ok(())
    }

    fn make(&mut self, path: &Path, inode: Inode) -> io::Result<usize> {
        let (dir, name) = self.parent(path)?;
        let made = self.inodes.len();
        self.rename_in(dir, vec![(name, Some(made))])?;
        self.inodes.push(inode);
        Ok(made)
    }

    fn sync(&mut self, inode: usize) -> io::Result<()> {
        self.trace.note(&inode.to_be_bytes());
        let on = match self.inodes[inode] {
            Inode::Dir { .. } => FaultOn::Sync,
            Inode::File { .. } => FaultOn::Data,
        };
        let failed = self.check(on, false);
        if self.alive().is_err() {
            return failed;
        }
        match &mut self.inodes[inode] {
            Inode::Dir { durable, pending, .. } => {
                let pending = std::mem::take(pending);
                if failed.is_ok() {
                    pending.iter().for_each(|change| apply_names(durable, change));
                }
            }
            Inode::File { durable, pending, .. } => {
                let pending = std::mem::take(pending);
                if failed.is_ok() {
                    pending.iter().for_each(|change| change.apply(durable));
                }
            }
        }
        failed
    }

    fn change(&mut self, inode: usize, mut change: Change) -> io::Result<()> {
        self.trace.note(&inode.to_be_bytes());
        match &change {
            Change::Write { position, bytes } => {
                self.trace.note(&position.to_be_bytes());
                self.trace.note(bytes);
            }
            Change::SetLen(size) => self.trace.note(&size.to_be_bytes()),
        }
        let needs_room = matches!(change, Change::Write { .. });
        let failed = self.check(FaultOn::Write, needs_room);
        if failed.is_err() {
            match &mut change {
                Change::Write { bytes, .. } => bytes.truncate(bytes.len() / 2),
                Change::SetLen(_) => return failed,
            }
        }
        let Inode::File { content, pending, .. } = &mut self.inodes[inode] else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        };
        change.apply(content);
        pending.push(change);
        failed
    }

    fn content(&self, inode: usize) -> io::Result<&Vec<u8>> {
        match &self.inodes[inode] {
            Inode::File { content, .. } => Ok(content),
            Inode::Dir { .. } => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        }
    }
}

/// The door's side; each does what the method of `Files` of the same name does.
impl SimFiles {
    pub(super) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SimFile> {
        let mut state = self.state();
        state.counts.opens += 1;
        let inode = match (state.find(path), mode) {
            (Ok(_), OpenMode::CreateNew) => {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            (Ok(inode), _) => inode,
            (Err(_), OpenMode::Create | OpenMode::CreateNew) => {
                let (content, durable) = (Vec::new(), Vec::new());
                state.make(path, Inode::File { content, durable, pending: Vec::new() })?
            }
            (Err(error), _) => return Err(error),
        };
        state.content(inode)?;
        Ok(SimFile { files: self.clone(), inode, life: state.life })
    }

    pub(super) fn size_of(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.content(state.find(path)?).map(|content| content.len() as u64)
    }

    /// Time does not pass here: what [`SimFiles::set_modified`] said.
    pub(super) fn modified_ms(&self, path: &Path) -> io::Result<Option<i64>> {
        let state = self.state();
        let inode = state.find(path)?;
        Ok(state.modified_ms.get(&inode).copied())
    }

    /// Says when a file was last changed.
    pub fn set_modified(&self, path: &Path, at_ms: i64) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(path)?;
        state.modified_ms.insert(inode, at_ms);
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.state();
        let Inode::Dir { names, .. } = &state.inodes[state.find(dir)?] else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        let is_dir = |inode: usize| matches!(state.inodes[inode], Inode::Dir { .. });
        let entry =
            |(name, at): (&String, &usize)| DirEntry { name: name.clone(), is_dir: is_dir(*at) };
        Ok(names.iter().map(entry).collect())
    }

    pub(super) fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let mut ancestors: Vec<&Path> = dir.ancestors().collect();
        ancestors.reverse();
        for path in ancestors.into_iter().filter(|path| path.file_name().is_some()) {
            if state.find(path).is_err() {
                let (names, durable) = (Names::new(), Names::new());
                state.make(path, Inode::Dir { names, durable, pending: Vec::new() })?;
            }
        }
        Ok(())
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let moved = state.find(from)?;
        let ((from_dir, from_name), (to_dir, to_name)) = (state.parent(from)?, state.parent(to)?);
        if from_dir == to_dir {
            return state.rename_in(to_dir, vec![(from_name, None), (to_name, Some(moved))]);
        }
        state.rename_in(to_dir, vec![(to_name, Some(moved))])?;
        state.rename_in(from_dir, vec![(from_name, None)])
    }

    /// A file, or a directory with all that is in it.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.find(path)?;
        let (dir, name) = state.parent(path)?;
        state.rename_in(dir, vec![(name, None)])
    }

    pub(super) fn free_bytes(&self) -> u64 {
        let mut state = self.state();
        if state.is_full {
            state.faults_hit += 1;
            return 0;
        }
        state.free_bytes
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.state().find(path).is_ok()
    }

    pub(super) fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(dir)?;
        state.sync(inode)
    }

    pub(super) fn lock(&self, path: &Path) -> io::Result<SimLock> {
        self.open(path, OpenMode::Create)?;
        let mut state = self.state();
        if state.locks.iter().any(|held| held == path) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        state.locks.push(path.to_owned());
        Ok(SimLock { files: self.clone(), path: path.to_owned(), life: state.life })
    }
}

/// A held lock; dropping gives it back, unless a crash already did.
pub struct SimLock {
    files: SimFiles,
    path: PathBuf,
    life: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.files.state();
        if state.life == self.life {
            state.locks.retain(|held| *held != self.path);
        }
    }
}

/// An open simulated file.
pub struct SimFile {
    files: SimFiles,
    inode: usize,
    life: u64,
}

impl std::fmt::Debug for SimFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimFile").field("inode", &self.inode).finish_non_exhaustive()
    }
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.files.state();
        if state.life == self.life { Ok(state) } else { Err(stale()) }
    }

    /// Bytes read; fewer than asked at the end of the file.
    pub(super) fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let state = self.state()?;
        let content = state.content(self.inode)?;
        let rest = content.get(position as usize..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    pub(super) fn write_all_at(&self, parts: &[&[u8]], position: u64) -> io::Result<()> {
        let change = Change::Write { position: position as usize, bytes: parts.concat() };
        self.state()?.change(self.inode, change)
    }

    pub(super) fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.state()?.change(self.inode, Change::SetLen(size_bytes as usize))
    }

    pub(super) fn size_bytes(&self) -> io::Result<u64> {
        self.state()?.content(self.inode).map(|content| content.len() as u64)
    }

    pub(super) fn sync_data(&self) -> io::Result<()> {
        self.state()?.sync(self.inode)
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
