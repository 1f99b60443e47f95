//! Measures a store in a directory: `measure DIR fill N [BATCH]`, `measure DIR check SECONDS THREADS`,
//! `measure DIR insert SECONDS WRITERS`, `measure DIR check-and-insert SECONDS WRITERS`, `measure DIR open`, `measure DIR compact`,
//! `measure DIR verify N`.
//!
//! Ids are sixteen hexadecimal digits, and fingerprints are uniformly distributed. Every line printed is one figure.
#![expect(clippy::print_stdout, reason = "its only purpose")]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lookalike::{Fingerprint, Scheme};
use lookalike_hamming::threads::join_all;
use lookalike_store::{
    Collection, CollectionSettings, InsertWhen, Store, StoreError, StoreOptions, StoredDocument,
    UnixMillis, Verdict, WriteOp,
};

fn mix(seed: u64) -> u64 {
    let z = (seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn document(number: u64) -> StoredDocument {
    StoredDocument::new(
        format!("{:016x}", mix(number ^ 1 << 60)),
        Fingerprint(mix(number)),
    )
}

fn now() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis::default().after(since)
}

/// Returns the resident memory of this process in bytes: heap pages, and file pages.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        number.unwrap_or(0) * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn report(pages: &Collection) {
    let (stats, (now, peak)) = (pages.stats(), resident());
    let each = |bytes: u64| bytes as f64 / stats.documents.max(1) as f64;
    println!(
        "documents {} in runs {:?}, {} in memory",
        stats.documents, stats.runs, stats.in_memory
    );
    println!(
        "bytes a document: runs {:.1}, resident {:.1}, peak {:.1}",
        each(stats.run_bytes),
        each(now),
        each(peak)
    );
}

fn fill(pages: &Collection, count: u64, batch: u64) -> Result<(), Box<dyn Error>> {
    let first = pages.stats().documents;
    let started = Instant::now();
    let mut next = first;
    while next < first + count {
        let end = (next + batch).min(first + count);
        pages.write(
            (next..end)
                .map(|number| WriteOp::Insert(document(number)))
                .collect(),
            now(),
        )?;
        next = end;
    }
    println!("filled {count} in {:.1} s", started.elapsed().as_secs_f64());
    report(pages);
    Ok(())
}

/// Calls a function in several threads for a given time, and prints calls a second and percentiles of their latency.
fn race(label: &str, seconds: u64, threads: u64, call: impl Fn(u64) + Sync) {
    let (ended, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let mut times: Vec<u32> = std::thread::scope(|scope| {
        let run = || {
            let mut times = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                call(calls.fetch_add(1, Ordering::Relaxed));
                times.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            times
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        ended.store(true, Ordering::Relaxed);
        running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    let elapsed = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{label}, {threads} threads: {:.0} a second; microseconds: half {}, p99 {}, p99.9 {}, longest {}",
        times.len() as f64 / elapsed,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, command, rest @ ..] = &arguments[..] else {
        return Err("measure DIR COMMAND ...".into());
    };
    let number =
        |at: usize, default: u64| rest.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let begun = Instant::now();
    let store = Store::open(Path::new(folder), StoreOptions::default().create(true))?;
    let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
    println!(
        "opened in {:.2} s: {:?}",
        begun.elapsed().as_secs_f64(),
        pages.recovery()
    );
    let stored = pages.stats().documents;
    match command.as_str() {
        "fill" => fill(&pages, number(0, 1_000_000)?, number(1, 1000)?)?,
        "open" => report(&pages),
        "compact" => {
            let begun = Instant::now();
            pages.compact()?;
            println!("compacted in {:.1} s", begun.elapsed().as_secs_f64());
            report(&pages);
        }
        "check" => {
            let (seconds, threads) = (number(0, 10)?, number(1, 1)?);
            let code = |call: u64| {
                // Half of the queries have a neighbour at distance 2.
                let code = mix(mix(call) % stored.max(1));
                Fingerprint(if call.is_multiple_of(2) {
                    code ^ 0b101
                } else {
                    mix(code)
                })
            };
            race("check", seconds, threads, |call| {
                drop(pages.check(code(call), 3, now()))
            });
            race("query with one neighbour", seconds, threads, |call| {
                drop(pages.query(code(call), 3, now(), 1))
            });
            race("check of 100", seconds, threads, |call| {
                let codes: Vec<_> = (0..100).map(|at| code(call * 100 + at)).collect();
                drop(pages.check_many(&codes, 3, now()));
            });
        }
        "insert" | "check-and-insert" => {
            let (seconds, writers) = (number(0, 10)?, number(1, 1)?);
            race(command, seconds, writers, |call| {
                let (document, insert) = (document(stored + call), InsertWhen::New);
                let write = match command.as_str() {
                    "insert" => WriteOp::Insert(document),
                    _ => WriteOp::CheckAndInsert {
                        document,
                        scope: 3.into(),
                        insert,
                        limit: 0,
                    },
                };
                drop(pages.write(vec![write], now()));
            });
            report(&pages);
        }
        "both" => {
            // Read while others write and runs are merged.
            let (seconds, writers) = (number(0, 10)?, number(1, 4)?);
            let ended = AtomicBool::new(false);
            let write = |writer: u64| {
                let mut next = stored + (writer << 40);
                while !ended.load(Ordering::Relaxed) {
                    let writes = (next..next + 100).map(|number| WriteOp::Insert(document(number)));
                    drop(pages.write(writes.collect(), now()));
                    next += 100;
                }
            };
            let write = &write;
            std::thread::scope(|scope| {
                let writing = (0..writers).map(|writer| scope.spawn(move || write(writer)));
                let writing = writing.collect();
                race(
                    "check while 100 at a time are inserted",
                    seconds,
                    1,
                    |call| {
                        drop(pages.check(Fingerprint(mix(call)), 3, now()));
                    },
                );
                ended.store(true, Ordering::Relaxed);
                join_all(writing);
            });
            report(&pages);
        }
        "verify" => {
            // Every document of a sample must be found where a linear scan finds it.
            let step = (stored / number(0, 1000)?).max(1) as usize;
            let sample: Vec<u64> = (0..stored)
                .step_by(step)
                .map(|number| mix(number) ^ 0b11)
                .collect();
            let mut nearest = vec![u32::MAX; sample.len()];
            pages.for_each(now(), &mut |document| {
                let code = document.fingerprint.map_or(0, |code| code.0);
                for (nearest, query) in nearest.iter_mut().zip(&sample) {
                    *nearest = (*nearest).min((code ^ query).count_ones());
                }
                Ok::<_, StoreError>(())
            })?;
            let mut wrong = 0;
            for (query, nearest) in sample.iter().zip(&nearest) {
                let verdict = pages.check(Fingerprint(*query), 3, now())?;
                let expected = match nearest {
                    0 => Verdict::SameFingerprint,
                    1..=3 => Verdict::Near { distance: *nearest },
                    _ => Verdict::New,
                };
                wrong += u64::from(verdict != expected);
            }
            println!(
                "{} questions, {wrong} answered otherwise than by a linear scan",
                sample.len()
            );
        }
        other => return Err(format!("no command {other:?}").into()),
    }
    drop(pages);
    store.close()?;
    Ok(())
}
