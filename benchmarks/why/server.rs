//! A store of counters: INC, GET and a few commands in lines, a thread for each client, and a log.
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Log {
    file: File,
    at: u64,
    lines: u64,
}

impl Log {
    #[inline(never)]
    fn append(&mut self, line: &str) {
        while let Err(error) = self.file.write_all_at(line.as_bytes(), self.at) {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            self.back_off();
        }
        self.at = (self.at + line.len() as u64) % (32 << 20);
        self.lines += 1;
        if self.lines % 8 == 0 {
            self.file.sync_data().unwrap();
        }
    }

    /// Until somebody has made room.
    #[inline(never)]
    fn back_off(&mut self) {
        std::thread::sleep(Duration::from_millis(15));
        self.file.set_len(0).unwrap();
        self.at = 0;
    }
}

struct Store {
    counters: Mutex<HashMap<String, u64>>,
    log: Mutex<Log>,
}

impl Store {
    #[inline(never)]
    fn increment(&self, key: &str) -> u64 {
        let mut counters = self.counters.lock().unwrap();
        let counter = counters.entry(key.to_string()).or_insert(0);
        *counter += 1;
        *counter
    }

    #[inline(never)]
    fn get(&self, key: &str) -> u64 {
        *self.counters.lock().unwrap().get(key).unwrap_or(&0)
    }

    /// The largest ones, for which all names are sorted.
    #[inline(never)]
    fn ranking(&self) -> String {
        let mut all: Vec<(u64, String)> = {
            let counters = self.counters.lock().unwrap();
            counters.iter().map(|(key, value)| (*value, key.clone())).collect()
        };
        all.sort();
        all.iter().rev().take(3).map(|one| one.1.clone()).collect::<Vec<_>>().join(" ")
    }

    /// Adds all of them up, many times, under the lock.
    #[inline(never)]
    fn audit(&self, rounds: u64) -> u64 {
        let counters = self.counters.lock().unwrap();
        (0..rounds).map(|n| counters.values().fold(n, |sum, one| sum.rotate_left(7) ^ one)).sum()
    }
}

/// A table for statistics, page for page.
#[inline(never)]
fn tabulate(megabytes: usize) -> usize {
    let mut table: Vec<u8> = Vec::with_capacity(megabytes << 20);
    for at in (0..megabytes << 20).step_by(4096) {
        unsafe { std::ptr::write_volatile(table.as_mut_ptr().add(at), 1) };
    }
    table.capacity()
}

#[inline(never)]
fn digest(text: &str) -> u64 {
    (0..60u64).fold(0, |sum, _| text.bytes().fold(sum, |s, b| s.wrapping_mul(31) ^ u64::from(b)))
}

#[inline(never)]
fn answer(store: &Store, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |n: usize| words.get(n).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    match words[0] {
        "GET" => format!("{} {}", store.get(words[1]), digest(words[1])),
        "INC" => {
            let value = store.increment(words[1]);
            store.log.lock().unwrap().append(&format!("{line} {}\n", "x".repeat(200)));
            format!("{value} {}", digest(line))
        }
        "RANKING" => store.ranking(),
        "AUDIT" => store.audit(number(1)).to_string(),
        "TABULATE" => tabulate(number(1) as usize).to_string(),
        _ => "what?".to_string(),
    }
}

fn serve(store: Arc<Store>, client: UnixStream) {
    let mut lines = BufReader::new(client.try_clone().unwrap());
    let mut client = client;
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap_or(0) > 0 {
        let text = answer(&store, line.trim_end()) + "\n";
        if client.write_all(text.as_bytes()).is_err() {
            return;
        }
        line.clear();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = File::create(&arguments[2]).unwrap();
    let counters = (0..20000u64).map(|n| (format!("counter:{n}"), n * 7919 % 20000)).collect();
    let store = Arc::new(Store {
        counters: Mutex::new(counters),
        log: Mutex::new(Log { file, at: 0, lines: 0 }),
    });
    for client in UnixListener::bind(&arguments[1]).unwrap().incoming() {
        let store = store.clone();
        std::thread::spawn(move || serve(store, client.unwrap()));
    }
}
