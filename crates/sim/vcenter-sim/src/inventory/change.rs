use std::borrow::Cow;

use roost_vim_wire::MoRef;

/// One thing that watchers may want to know. References between objects are properties too: a new VM is `Entered`, and also
/// `Modified` of its folder's `childEntity`, its pool's, host's, datastore's and network's `vm`, and so on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Entered(MoRef),
    Modified(MoRef, Vec<Changed>),
    Left(MoRef),
}

/// A changed leaf path, such as `runtime.powerState`, and how it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    Assigned(Cow<'static, str>),
    /// A member of an array, with its key: `config.hardware.device[4000]`.
    Added(Cow<'static, str>),
    Removed(Cow<'static, str>),
}

impl Changed {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Assigned(path) | Self::Added(path) | Self::Removed(path) => path,
        }
    }
}

impl From<&'static str> for Changed {
    fn from(path: &'static str) -> Self {
        Self::Assigned(Cow::Borrowed(path))
    }
}

impl From<String> for Changed {
    fn from(path: String) -> Self {
        Self::Assigned(Cow::Owned(path))
    }
}

/// Properties that show the same fact again, by the one that is announced. Kinds that lack them are not concerned.
const FOLLOWERS: &[(&str, &[&str])] = &[
    (
        "config.modified",
        &["resourceConfig", "summary.storage", "layout", "layoutEx", "storage", "capability"],
    ),
    ("runtime.powerState", &["layout"]),
    ("runtime.host", &["environmentBrowser"]),
    ("resourcePool", &["childConfiguration"]),
];

/// The changes since the collectors last looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    pub(crate) fn entered(&mut self, obj: &MoRef) {
        self.0.push(Change::Entered(obj.clone()));
    }

    pub(crate) fn left(&mut self, obj: &MoRef) {
        self.0.push(Change::Left(obj.clone()));
    }

    pub(crate) fn modified<P: Into<Changed>>(
        &mut self,
        obj: &MoRef,
        paths: impl IntoIterator<Item = P>,
    ) {
        let mut paths: Vec<Changed> = paths.into_iter().map(Into::into).collect();
        let follow = |path: &Changed| FOLLOWERS.iter().find(|(first, _)| *first == path.path());
        let more: Vec<&str> =
            paths.iter().filter_map(follow).flat_map(|(_, more)| *more).copied().collect();
        paths.extend(more.into_iter().map(Changed::from));
        self.0.push(Change::Modified(obj.clone(), paths));
    }

    pub(crate) fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.0)
    }
}
