//! Log lines that hold nobody up.
//!
//! A disk that is full, a pipe that is closed and one that nobody reads cost log lines, and nothing else: a line that cannot be written is dropped
//! and counted.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

/// Lines that wait to be written. A burst of a busy service fits; beyond it nobody reads.
const WAITING: usize = 4_096;

/// Where log lines go. Cheap to clone; clones write to the same place.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<Entry>,
    dropped: Arc<dyn Fn() + Send + Sync>,
}

enum Entry {
    Line(Vec<u8>),
    /// Answered when all lines before it were written or dropped.
    Flush(SyncSender<()>),
}

impl LogWriter {
    /// Writes to `output` from a thread of its own. `dropped` is told of each line that was not written; it must not log.
    pub fn new(
        output: impl Write + Send + 'static,
        dropped: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (lines, waiting) = mpsc::sync_channel(WAITING);
        let dropped: Arc<dyn Fn() + Send + Sync> = Arc::new(dropped);
        let on_drop = Arc::clone(&dropped);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&waiting, output, &*on_drop))?;
        Ok(Self { lines, dropped })
    }

    /// Waits until what was logged before is written, and not longer than this: at the end of a process.
    pub fn flush_within(&self, time: Duration) {
        let (written, wait) = mpsc::sync_channel(1);
        if self.lines.try_send(Entry::Flush(written)).is_ok() {
            let _ = wait.recv_timeout(time);
        }
    }
}

fn write_all(waiting: &Receiver<Entry>, mut output: impl Write, dropped: &dyn Fn()) {
    for entry in waiting {
        match entry {
            Entry::Line(line) => {
                if output.write_all(&line).is_err() {
                    dropped();
                }
            }
            Entry::Flush(written) => {
                let _ = output.flush();
                let _ = written.send(());
            }
        }
    }
}

/// Each call of `write` is one line, which is how `tracing` writes an event. It never fails and never waits.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(Entry::Line(line.to_vec())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => (self.dropped)(),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Nobody reads it: whoever writes waits until the other end is dropped.
    struct Blocked(Receiver<()>);

    impl Write for Blocked {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn counted(output: impl Write + Send + 'static) -> (LogWriter, Arc<AtomicUsize>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dropped);
        let writer = LogWriter::new(output, move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        (writer.unwrap(), dropped)
    }

    #[test]
    fn lines_are_written_in_order() {
        let page = Page::default();
        let (mut log, dropped) = counted(page.clone());
        for number in 0..100 {
            writeln!(log, "{number}").unwrap();
        }
        log.flush_within(SOON);
        let wanted = (0..100).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
        assert_eq!(String::from_utf8(page.0.lock().unwrap().clone()).unwrap(), wanted);
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_full_disk_costs_lines_that_are_counted() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (mut log, dropped) = counted(full);
        for _ in 0..10 {
            log.write_all(b"a line\n").unwrap();
        }
        log.flush_within(SOON);
        assert_eq!(dropped.load(Ordering::SeqCst), 10);
    }

    #[test]
    fn an_output_that_nobody_reads_holds_up_nobody() {
        let (unblock, blocked) = mpsc::channel();
        let (mut log, dropped) = counted(Blocked(blocked));
        for _ in 0..WAITING + 100 {
            log.write_all(b"a line\n").unwrap();
        }
        let lost = dropped.load(Ordering::SeqCst);
        assert!((99..=100).contains(&lost), "one may be on its way: {lost}");
        drop(unblock);
        log.flush_within(SOON);
    }
}
