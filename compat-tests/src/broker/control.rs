//! Lets a client's script rule its broker: `$BROKER_CTL term|kill` restarts it, `stop`, `crash` and `start`
//! do half of that, `spawn FILE` starts another with more settings and prints its address, `end ADDRESS`
//! ends such a one. The command is this program itself, over a socket in the broker's room.

use super::settings::Settings;
use super::{Broker, Kind, Stop};
use crate::places::Places;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Control {
    socket: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Control {
    /// Serves until dropped; the broker lives as long.
    pub fn serve(places: &Places, broker: Broker, settings: Settings) -> Result<Control, String> {
        let socket = broker.room.join("control");
        let listener = UnixListener::bind(&socket).map_err(|e| format!("{socket:?}: {e}"))?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let (kind, places) = (broker.kind, places.clone());
        let mut keeper = Keeper { places, kind, settings, broker, spawned: Vec::new(), count: 0 };
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let mut line = String::new();
                let _ = BufReader::new(&stream).read_line(&mut line);
                let (word, text) = match keeper.carry_out(line.trim()) {
                    Ok(text) => ("ok", text),
                    Err(why) => ("no", why),
                };
                let _ = write!(&stream, "{word} {text}");
            }
        });
        Ok(Control { socket, over, thread: Some(thread) })
    }

    /// The command line that a script puts an order after.
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

struct Keeper {
    places: Places,
    kind: Kind,
    settings: Settings,
    broker: Broker,
    spawned: Vec<Broker>,
    count: usize,
}

impl Keeper {
    fn carry_out(&mut self, order: &str) -> Result<String, String> {
        let (word, argument) = order.split_once(' ').unwrap_or((order, ""));
        match word {
            "term" => self.broker.restart(Stop::Term)?,
            "kill" => self.broker.restart(Stop::Kill)?,
            "stop" => self.broker.stop(Stop::Term).map(|_| ())?,
            "crash" => self.broker.stop(Stop::Kill).map(|_| ())?,
            "start" => self.broker.start_again()?,
            "spawn" => return self.spawn(argument),
            "end" => self.spawned.retain(|broker| broker.bootstrap() != argument),
            other => return Err(format!("no order is called `{other}`")),
        }
        Ok(String::new())
    }

    fn spawn(&mut self, file: &str) -> Result<String, String> {
        let mut settings = self.settings.clone();
        settings.add_file(Path::new(file))?;
        self.count += 1;
        let name = format!("spawned-{}-{}", self.broker.port, self.count);
        let broker = Broker::start(self.kind, &self.places, &name, &settings)?;
        let address = broker.bootstrap();
        self.spawned.push(broker);
        Ok(address)
    }
}

/// The script's side: sends one order and prints the answer.
///
/// # Errors
/// What the keeper said instead of carrying it out.
pub fn order(socket: &Path, words: &[String]) -> Result<(), String> {
    let mut stream = UnixStream::connect(socket).map_err(|e| format!("{socket:?}: {e}"))?;
    writeln!(stream, "{}", words.join(" ")).map_err(|e| e.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|e| e.to_string())?;
    match answer.split_once(' ') {
        Some(("ok", text)) => {
            println!("{text}");
            Ok(())
        }
        _ => Err(answer),
    }
}
