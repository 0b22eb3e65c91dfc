//! Resident memory of the processes between the ends, without the measuring server.

use std::collections::{HashMap, HashSet};
use std::fs;

/// The memory of a tree of processes, in megabytes (10^6 bytes). Shared pages count in each process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TreeMemory {
    /// The memory that is resident now.
    pub(crate) now: f64,
    /// The sum of the processes' peaks.
    pub(crate) most: f64,
}

struct MeasuredProcess {
    parent: u32,
    is_end: bool,
    memory: TreeMemory,
}

/// Returns the memory of this process and its descendants, without the measuring servers.
pub(crate) fn below(root: u32) -> TreeMemory {
    let all = processes();
    let mut mine = HashSet::from([root]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|(id, process)| mine.contains(&process.parent) && !mine.contains(*id))
            .map(|(id, _)| *id)
            .collect();
        if more.is_empty() {
            break;
        }
        mine.extend(more);
    }
    mine.iter()
        .filter_map(|id| all.get(id))
        .filter(|process| !process.is_end)
        .fold(TreeMemory::default(), |sum, process| TreeMemory {
            now: sum.now + process.memory.now,
            most: sum.most + process.memory.most,
        })
}

fn processes() -> HashMap<u32, MeasuredProcess> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, process(id)?)))
        .collect()
}

fn process(id: u32) -> Option<MeasuredProcess> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let words = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let mut words = words.split(|byte| *byte == 0);
    let own = std::env::current_exe().ok()?;
    let is_end =
        words.next() == Some(own.as_os_str().as_encoded_bytes()) && words.next() == Some(b"server");
    let megabytes = |kibibytes: u32| f64::from(kibibytes) * 1024.0 / 1e6;
    Some(MeasuredProcess {
        parent: field("PPid:")?,
        is_end,
        memory: TreeMemory {
            now: megabytes(field("VmRSS:").unwrap_or(0)),
            most: megabytes(field("VmHWM:").unwrap_or(0)),
        },
    })
}
