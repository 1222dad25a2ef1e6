use std::sync::Arc;

use roost_views::DecisionView;
use tokio::sync::{broadcast, watch};

/// A reader that falls this far behind reads the journal again instead.
const DECISIONS_KEPT: usize = 256;

/// Where a service says that something has changed. A handle; clones share it, and nobody has to listen.
///
/// That the picture changed is a level: any number of [`touch`](Self::touch)es before a listener looks are one. Decisions are told one by one.
#[derive(Debug, Clone)]
pub struct Feed {
    changed: watch::Sender<u64>,
    decisions: broadcast::Sender<Arc<DecisionView>>,
}

/// What a listener holds. Its channels close when the last [`Feed`] of the service is gone.
#[derive(Debug)]
pub struct Subscription {
    /// Changes whenever [`House::overview`](crate::House::overview) may say something new.
    pub changed: watch::Receiver<u64>,
    /// From here on. Whoever lags reads [`House::decisions`](crate::House::decisions) after the last number that it has seen.
    pub decisions: broadcast::Receiver<Arc<DecisionView>>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            changed: watch::Sender::default(),
            decisions: broadcast::Sender::new(DECISIONS_KEPT),
        }
    }
}

impl Feed {
    /// The overview may say something new. Cheap: call it whenever in doubt.
    pub fn touch(&self) {
        self.changed.send_modify(|generation| *generation = generation.wrapping_add(1));
    }

    /// A new decision, which is also news for the overview.
    pub fn decided(&self, decision: DecisionView) {
        // Without a listener it is an error, and no loss.
        let _ = self.decisions.send(Arc::new(decision));
        self.touch();
    }

    pub fn subscribe(&self) -> Subscription {
        Subscription { changed: self.changed.subscribe(), decisions: self.decisions.subscribe() }
    }

    /// Whether anybody would read what is told, for a service to which making a [`DecisionView`] is work.
    pub fn has_listeners(&self) -> bool {
        self.decisions.receiver_count() > 0
    }
}
