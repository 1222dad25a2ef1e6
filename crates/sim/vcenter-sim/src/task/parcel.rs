use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one step of a task leaves for a later one, or for the undoing of both.
#[derive(Debug)]
pub(crate) struct Parcel<T>(Arc<Mutex<Option<T>>>);

impl<T> Parcel<T> {
    pub(crate) fn leave(&self, content: T) {
        *self.lock() = Some(content);
    }

    /// The content, for whoever comes first.
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Parcel<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
