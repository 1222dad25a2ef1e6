use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::vm::Vm;

/// What a door read of a VM beyond its [`Claim`](super::Claim), in the door's own type. Only the [`Notes`] that made it can open it;
/// a clone of the row keeps it.
#[derive(Clone)]
pub struct Note {
    id: u64,
    _kept: Arc<dyn Send + Sync>,
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Note({})", self.id)
    }
}

/// A door's notes on its VMs. Each is kept for as long as a row of the mirror, or a snapshot, has it: a row and its note always
/// are of the same moment.
#[derive(Debug)]
pub struct Notes<N> {
    kept: Mutex<Kept<N>>,
}

#[derive(Debug)]
struct Kept<N> {
    by_id: BTreeMap<u64, Weak<N>>,
    /// When there are so many, those that nobody has any more are dropped.
    sweep_at: usize,
}

/// Unique in the process, so that a note is never opened as another.
static LAST: AtomicU64 = AtomicU64::new(0);

impl<N: Send + Sync + 'static> Notes<N> {
    pub const fn new() -> Self {
        Self { kept: Mutex::new(Kept { by_id: BTreeMap::new(), sweep_at: 64 }) }
    }

    /// For a claim.
    pub fn keep(&self, note: N) -> Note {
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let note = Arc::new(note);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_id.insert(id, Arc::downgrade(&note));
        if kept.by_id.len() >= kept.sweep_at {
            kept.by_id.retain(|_, note| note.strong_count() > 0);
            kept.sweep_at = 64 + 2 * kept.by_id.len();
        }
        Note { id, _kept: note }
    }

    /// What was kept with the VM's claim; `None` if it has none, or another door's.
    pub fn of(&self, vm: &Vm) -> Option<Arc<N>> {
        let note = vm.claim.as_ref()?.note.as_ref()?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_id.get(&note.id)?.upgrade()
    }
}

impl<N: Send + Sync + 'static> Default for Notes<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;
    use crate::{DoorName, VmId};

    #[test]
    fn a_note_lives_as_long_as_a_row_has_it() {
        let (numbers, texts) = (Notes::<u32>::new(), Notes::<String>::new());
        let row = |note| {
            let claim = Claim { note: Some(note), ..Claim::of(DoorName::new("lab"), "a") };
            Vm { claim: Some(Arc::new(claim)), ..Vm::unknown(VmId::new("vm-1")) }
        };
        let (seven, word) = (row(numbers.keep(7)), row(texts.keep("word".into())));
        assert_eq!(numbers.of(&seven).as_deref(), Some(&7));
        assert_eq!(texts.of(&seven), None, "another door's");
        assert_eq!(texts.of(&word).as_deref().map(String::as_str), Some("word"));
        for number in 0..1_000 {
            drop(numbers.keep(number));
        }
        assert!(numbers.kept.lock().unwrap().by_id.len() <= 66);
        assert_eq!(numbers.of(&seven).as_deref(), Some(&7));
    }
}
