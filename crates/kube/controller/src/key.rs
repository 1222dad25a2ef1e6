use std::fmt;
use std::sync::Arc;

use kube::Resource;

/// Namespace and name of an object: all that a reconciler is told. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of an object that is in no namespace.
    pub fn cluster(name: &str) -> Self {
        Self { namespace: None, name: name.into() }
    }

    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default().into();
        Self { namespace: meta.namespace.as_deref().map(Into::into), name }
    }

    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// `namespace/name`, or the name alone.
impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
