//! A log that a test can read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, Once};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures everything at every level on this thread until the guard is dropped.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        // With a single subscriber a line that another thread comes by first is switched off for good. This one keeps nothing, and is there for all threads.
        static OTHERS: Once = Once::new();
        OTHERS.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        });
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        (log, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
