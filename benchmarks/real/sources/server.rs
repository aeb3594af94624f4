//! A store of values behind a socket, a thread for each client; what is put is written to the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

struct Store {
    values: HashMap<String, String>,
    log: File,
}

impl Store {
    #[inline(never)]
    fn get(&self, key: &str) -> String {
        self.values.get(key).cloned().unwrap_or_default()
    }

    #[inline(never)]
    fn put(&mut self, key: &str, value: &str) -> std::io::Result<()> {
        writeln!(self.log, "{key} {value}")?;
        self.log.sync_data()?;
        self.values.insert(key.to_string(), value.to_string());
        Ok(())
    }
}

#[inline(never)]
fn answer(store: &Mutex<Store>, line: &str) -> std::io::Result<String> {
    let mut words = line.split_whitespace();
    let (key, value) = (words.next().unwrap_or_default(), words.next());
    let mut store = store.lock().unwrap();
    match value {
        Some(value) => store.put(key, value).map(|_| "stored".to_string()),
        None => Ok(store.get(key)),
    }
}

fn serve(stream: UnixStream, store: Arc<Mutex<Store>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let mut said = answer(&store, &line)?;
        said.push('\n');
        writer.write_all(said.as_bytes())?;
        line.clear();
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let store = Arc::new(Mutex::new(Store { values: HashMap::new(), log: File::create("log")? }));
    for stream in UnixListener::bind("socket")?.incoming() {
        let (stream, store) = (stream?, store.clone());
        thread::spawn(move || serve(stream, store));
    }
    Ok(())
}
