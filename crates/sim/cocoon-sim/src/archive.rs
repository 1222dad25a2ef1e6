//! Snapshot archives as `cocoon` writes and reads them. Written here a second time, so that the client's own reader and writer are tested by
//! something else.

use std::collections::BTreeMap;

use roost_microvm::SnapshotRecord;
use serde::{Deserialize, Serialize};

use crate::host::Refusal;

const BLOCK: usize = 512;

#[derive(Serialize, Deserialize)]
struct Envelope {
    config: SnapshotRecord,
    version: u32,
}

/// The archive of a snapshot: its record, its configuration, its memory and a disk.
pub(crate) fn write(record: &SnapshotRecord, memory: &str) -> Vec<u8> {
    let config = SnapshotRecord { created_at: None, ..record.clone() };
    let envelope =
        serde_json::to_string_pretty(&Envelope { config, version: 1 }).unwrap_or_default() + "\n";
    let mut archive = Vec::new();
    let disk = format!("disk of {}", record.name);
    for (name, content) in [
        ("snapshot.json", envelope.as_bytes()),
        ("config.json", b"{}"),
        ("memory-ranges", memory.as_bytes()),
        ("overlay.qcow2", disk.as_bytes()),
    ] {
        append(&mut archive, name, content);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn append(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut header = vec![0_u8; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000640");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    header[154] = 0;
    archive.extend(header);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

/// The record and the memory of an archive that is whole.
pub(crate) fn read(archive: &[u8]) -> Result<(SnapshotRecord, String), Refusal> {
    let files = files(archive)?;
    let invalid = |what: &str| Refusal(format!("import: invalid snapshot archive: {what}"));
    let envelope = files.get("snapshot.json").ok_or_else(|| invalid("snapshot.json not found"))?;
    let envelope: Envelope =
        serde_json::from_slice(envelope).map_err(|error| invalid(&error.to_string()))?;
    if envelope.version != 1 {
        return Err(Refusal(format!(
            "import: unsupported snapshot archive version {}",
            envelope.version
        )));
    }
    let memory =
        files.get("memory-ranges").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok((envelope.config, memory.unwrap_or_default()))
}

fn files(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let cut = || Refusal("import: invalid snapshot archive: unexpected EOF".to_owned());
    let mut files = BTreeMap::new();
    let mut at = 0;
    loop {
        let header = archive.get(at..at + BLOCK).ok_or_else(cut)?;
        at += BLOCK;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        let text = |from: usize, to: usize| {
            let bytes = header[from..to].split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).trim().to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).map_err(|_| cut())?;
        let content = archive.get(at..at + size).ok_or_else(cut)?;
        at += size.next_multiple_of(BLOCK);
        if header[156] == b'0' || header[156] == 0 {
            let path = text(0, 100);
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            files.insert(name, content.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_back_and_a_cut_one_is_refused() {
        let record = SnapshotRecord { name: "s".into(), cpu: 2, ..SnapshotRecord::default() };
        let archive = write(&record, "count=7");
        assert_eq!(read(&archive).unwrap(), (record, "count=7".to_owned()));
        for cut in [0, 100, 600, archive.len() - 1025] {
            assert!(read(&archive[..cut]).is_err(), "cut at {cut}");
        }
    }
}
