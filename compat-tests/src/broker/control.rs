//! Lets a client's script restart its broker: `$BROKER_CTL term` or `kill`, answered once it serves
//! again on the same port. The script's command is this program itself, over a socket in the room.

use super::{Broker, Stop};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub struct Control {
    socket: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Control {
    /// Serves until dropped.
    pub fn serve(broker: Arc<Mutex<Broker>>, socket: PathBuf) -> Result<Control, String> {
        let listener = UnixListener::bind(&socket).map_err(|e| format!("{socket:?}: {e}"))?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let mut line = String::new();
                let _ = BufReader::new(&stream).read_line(&mut line);
                let answer = carry_out(line.trim(), &broker).map_or_else(|e| e, |()| "ok".into());
                let _ = writeln!(&stream, "{answer}");
            }
        });
        Ok(Control { socket, over, thread: Some(thread) })
    }

    /// The command line that a script puts `term` or `kill` after.
    pub fn command(&self) -> Result<String, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        Ok(format!("{} ctl {}", own.display(), self.socket.display()))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(&self.socket);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out(word: &str, broker: &Mutex<Broker>) -> Result<(), String> {
    let mut broker = broker.lock().map_err(|_| "the broker's keeper is gone".to_string())?;
    match word {
        "term" => broker.restart(Stop::Term),
        "kill" => broker.restart(Stop::Kill),
        "stop" => broker.stop(Stop::Term).map(|_| ()),
        "crash" => broker.stop(Stop::Kill).map(|_| ()),
        "start" => broker.start_again(),
        other => Err(format!("no order is called `{other}`")),
    }
}

/// The script's side: sends one order, prints what went wrong, returns the exit code.
pub fn order(socket: &Path, word: &str) -> Result<(), String> {
    let mut stream = UnixStream::connect(socket).map_err(|e| format!("{socket:?}: {e}"))?;
    writeln!(stream, "{word}").map_err(|e| e.to_string())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(|e| e.to_string())?;
    if answer.trim() == "ok" { Ok(()) } else { Err(answer.trim().to_string()) }
}
