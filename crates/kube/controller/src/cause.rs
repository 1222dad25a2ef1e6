/// Why a key is queued. It decides the priority and nothing else: a reconciler never learns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The object was there when the watch began.
    InitialList,
    Created,
    Changed,
    /// The resync timer; nothing is new.
    Resync,
    Deleted,
    /// Somebody outside Kubernetes: a VM changed, a task ended.
    Signal,
    /// An object of another kind, on which this one depends, changed.
    Related,
    /// The last pass asked for another one; it was handed out at this priority.
    Requeued {
        last: i32,
    },
}

impl Cause {
    /// The priority that controller-runtime gives: routine below everything else.
    pub fn usual_priority(self) -> i32 {
        match self {
            Self::InitialList | Self::Resync => -100,
            Self::Created | Self::Changed | Self::Deleted | Self::Signal | Self::Related => 0,
            Self::Requeued { last } => last,
        }
    }
}
