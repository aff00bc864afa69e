//! A disk of its own for a broker: an ext4 image, loop-mounted where the broker keeps its data. It can lose
//! power and can be full. Needs root.

use crate::restart::output;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Disk {
    image: PathBuf,
    /// Where it is mounted.
    pub at: PathBuf,
    mounted: bool,
}

impl Disk {
    /// Makes an image of `mib` MiB and mounts it at `at`.
    ///
    /// # Errors
    /// Without root, or without loop devices.
    pub fn make(at: PathBuf, mib: u64, options: &str) -> Result<Disk, String> {
        let who = output(command("id", &["-u"]))?;
        if who.trim() != "0" {
            return Err("loop-mounted disks need root".into());
        }
        std::fs::create_dir_all(&at).map_err(|e| format!("{at:?}: {e}"))?;
        let image = at.with_extension("img");
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(mib << 20));
        made.map_err(|e| format!("{image:?}: {e}"))?;
        output(command("mkfs.ext4", &["-q", "-F", "-m", "0", &text(&image)]))?;
        let mut disk = Disk { image, at, mounted: false };
        disk.mount(options)?;
        Ok(disk)
    }

    pub fn mount(&mut self, options: &str) -> Result<(), String> {
        let options = format!("loop,{options}");
        output(command("mount", &["-o", &options, &text(&self.image), &text(&self.at)]))?;
        self.mounted = true;
        Ok(())
    }

    /// From now on nothing reaches the disk.
    pub fn lose_power(&self, script: &Path) -> Result<(), String> {
        output(command("python3", &[&text(script), &text(&self.at)])).map(|_| ())
    }

    /// Nobody may use it any more.
    pub fn unmount(&mut self) -> Result<(), String> {
        output(command("umount", &[&text(&self.at)]))?;
        self.mounted = false;
        Ok(())
    }

    /// Writes files until `left` bytes are free, or fewer where `left` is 0; returns their path.
    pub fn fill(&self, left: u64) -> Result<PathBuf, String> {
        let ballast = self.at.join("lost+found/ballast");
        let free = self.free()?;
        if free > left {
            let bytes = (free - left).to_string();
            // It says so when the last blocks were taken by others.
            let _ = output(command("fallocate", &["-l", &bytes, &text(&ballast)]));
        }
        if left == 0 {
            // What fallocate refused as a whole, to the last block.
            let of = format!("of={}", text(&self.at.join("lost+found/ballast-2")));
            let _ = output(command("dd", &["if=/dev/zero", &of, "bs=4096", "oflag=direct"]));
        }
        Ok(ballast)
    }

    /// Takes away what `fill` wrote.
    pub fn empty(&self) -> Result<(), String> {
        for name in ["ballast", "ballast-2"] {
            let path = self.at.join("lost+found").join(name);
            if path.exists() {
                std::fs::remove_file(&path).map_err(|e| format!("{path:?}: {e}"))?;
            }
        }
        Ok(())
    }

    fn free(&self) -> Result<u64, String> {
        let said = output(command("df", &["--output=avail", "-B1", &text(&self.at)]))?;
        let free = said.lines().nth(1).and_then(|line| line.trim().parse().ok());
        free.ok_or_else(|| format!("df says {said}"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            let _ = output(command("umount", &["-l", &text(&self.at)]));
        }
        let _ = std::fs::remove_file(&self.image);
    }
}

pub fn command(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(words);
    command
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
