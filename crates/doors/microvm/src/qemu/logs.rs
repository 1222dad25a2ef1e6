//! What the guest wrote to its serial console.

use std::fs;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::time::sleep;

use super::qmp::pipe;
use super::store::{PREVIOUS_SERIAL, SERIAL};
use crate::error::RuntimeError;
use crate::runtime::{LogOptions, Output};

const LOOK: Duration = Duration::from_millis(250);
const PIECE: usize = 64 * 1024;

/// What was written so far is that of the last time. Somebody who follows finds a log at every moment.
pub(super) fn keep(folder: &Path) -> io::Result<()> {
    let [log, previous, fresh] =
        [SERIAL, PREVIOUS_SERIAL, "serial.fresh.log"].map(|name| folder.join(name));
    if !log.exists() {
        return Ok(());
    }
    match fs::remove_file(&previous) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::hard_link(&log, &previous)?,
    }
    fs::write(&fresh, "")?;
    fs::rename(&fresh, &log)
}

/// Follows until whoever listens is gone, or the VM is.
pub(super) async fn logs(
    path: &Path,
    options: LogOptions,
    mut to: Output,
) -> Result<(), RuntimeError> {
    let copy = async {
        let mut file = File::open(path).await?;
        let begin = match options.tail {
            Some(lines) => tail(&mut file, lines).await?,
            None => 0,
        };
        file.seek(SeekFrom::Start(begin)).await?;
        loop {
            tokio::io::copy(&mut file, &mut to).await?;
            to.flush().await?;
            let (true, Ok(now)) = (options.follow, fs::metadata(path)) else {
                return to.shutdown().await;
            };
            if now.ino() == file.metadata().await?.ino() {
                sleep(LOOK).await;
            } else {
                // The guest was started again. What it wrote last is here already.
                tokio::io::copy(&mut file, &mut to).await?;
                file = File::open(path).await?;
            }
        }
    };
    copy.await.map_err(|source| pipe("logs", source))
}

/// Where the last so many lines begin. Read from the end, so that a long log costs no more than its tail.
async fn tail(file: &mut File, lines: u64) -> std::io::Result<u64> {
    let mut at = file.seek(SeekFrom::End(0)).await?;
    let end = at;
    let mut found = 0;
    let mut buffer = vec![0; PIECE];
    if lines == 0 {
        return Ok(end);
    }
    while at > 0 {
        let count = at.min(PIECE as u64);
        at -= count;
        file.seek(SeekFrom::Start(at)).await?;
        let piece = &mut buffer[..usize::try_from(count).unwrap_or(PIECE)];
        file.read_exact(piece).await?;
        for (index, byte) in piece.iter().enumerate().rev() {
            let after = at + index as u64 + 1;
            // The line feed of the last line begins nothing.
            if *byte == b'\n' && after != end {
                found += 1;
                if found == lines {
                    return Ok(after);
                }
            }
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn a_start_keeps_the_log_before_it_and_whoever_follows_goes_on_with_the_new_one() {
        let folder = std::env::temp_dir().join(format!("roost-previous-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join(SERIAL);
        keep(&folder).unwrap();
        assert!(!log.exists(), "there was none");
        fs::write(&log, "first\n").unwrap();
        let (near, far) = tokio::io::duplex(1 << 10);
        let path = log.clone();
        let options = LogOptions { follow: true, ..LogOptions::default() };
        let following = tokio::spawn(async move { logs(&path, options, Box::new(near)).await });
        let mut lines = BufReader::new(far).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("first"));
        for (before, now) in [("first\n", "second\n"), ("second\n", "third\n")] {
            keep(&folder).unwrap();
            assert_eq!(fs::read_to_string(folder.join(PREVIOUS_SERIAL)).unwrap(), before);
            assert_eq!(fs::read_to_string(&log).unwrap(), "");
            fs::write(&log, now).unwrap();
            assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(now.trim()));
        }
        fs::remove_dir_all(&folder).unwrap();
        following.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_tail_is_found_from_the_end() {
        let path = std::env::temp_dir().join(format!("roost-serial-{}", std::process::id()));
        let text =
            (0..20_000).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
        tokio::fs::write(&path, text + "\nhalf").await.unwrap();
        for (tail, want) in
            [(Some(0), ""), (Some(1), "half"), (Some(3), "line 19998\nline 19999\nhalf")]
        {
            let (near, mut far) = tokio::io::duplex(1 << 20);
            let options = LogOptions { tail, follow: false, ..LogOptions::default() };
            logs(&path, options, Box::new(near)).await.unwrap();
            let mut read = String::new();
            far.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, want, "{tail:?}");
        }
        let (near, mut far) = tokio::io::duplex(1 << 20);
        logs(
            &path,
            LogOptions { tail: Some(30_000), follow: false, ..LogOptions::default() },
            Box::new(near),
        )
        .await
        .unwrap();
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        assert!(read.starts_with("line 0\n") && read.ends_with("half"));
        tokio::fs::remove_file(path).await.unwrap();
    }
}
