use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use super::pool::Pool;
use super::vm::Vm;
use crate::cow_map::{CowMap, Difference};
use crate::{DoorName, PoolId, RequestId, VmId};

/// All rows and the ways to find them. A clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    rows: CowMap<VmId, Arc<Vm>>,
    by_name: Index<Arc<str>>,
    by_owner: Index<(DoorName, Arc<str>)>,
    by_request: Index<RequestId>,
    by_address: Index<IpAddr>,
    pools: CowMap<PoolId, Arc<Pool>>,
}

/// VMs by something that several may have.
type Index<K> = CowMap<(K, VmId), ()>;

/// How one VM is in a newer snapshot, beside an older one.
#[derive(Debug)]
pub enum VmChange<'a> {
    /// New or different.
    Shown(&'a Arc<Vm>),
    Gone(&'a VmId),
}

impl Tables {
    pub(crate) fn vm(&self, id: &VmId) -> Option<&Arc<Vm>> {
        self.rows.get(id)
    }

    pub(crate) fn vms(&self) -> impl Iterator<Item = &Arc<Vm>> {
        self.rows.iter().map(|(_, vm)| vm)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.listed(&self.by_name, move |own| (**own).cmp(name))
    }

    pub(crate) fn claimed_by(&self, door: DoorName) -> impl Iterator<Item = &Arc<Vm>> {
        self.listed(&self.by_owner, move |(own, _)| own.cmp(&door))
    }

    pub(crate) fn owned_by<'a>(
        &'a self,
        door: DoorName,
        owner: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.listed(&self.by_owner, move |(of, own)| (of, &**own).cmp(&(&door, owner)))
    }

    pub(crate) fn serving<'a>(
        &'a self,
        request: &'a RequestId,
    ) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.listed(&self.by_request, move |own| own.cmp(request))
    }

    pub(crate) fn using(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Vm>> {
        let hits = self.by_address.seek(move |(own, _)| *own < address);
        hits.take_while(move |((own, _), ())| *own == address)
            .filter_map(|((_, id), ())| self.vm(id))
    }

    /// Those whose key compares as equal.
    fn listed<'a, K: Ord + Clone>(
        &'a self,
        index: &'a Index<K>,
        compare: impl Fn(&K) -> Ordering + Copy + 'a,
    ) -> impl Iterator<Item = &'a Arc<Vm>> {
        let hits = index.seek(move |(own, _)| compare(own).is_lt());
        hits.take_while(move |((own, _), ())| compare(own).is_eq())
            .filter_map(|((_, id), ())| self.vm(id))
    }

    pub(crate) fn since<'a>(&'a self, older: &'a Self) -> impl Iterator<Item = VmChange<'a>> {
        self.rows.since(&older.rows, Arc::ptr_eq).into_iter().map(|difference| match difference {
            Difference::Added(_, vm) | Difference::Replaced(_, vm) => VmChange::Shown(vm),
            Difference::Removed(id) => VmChange::Gone(id),
        })
    }

    pub(crate) fn pool(&self, id: &PoolId) -> Option<&Arc<Pool>> {
        self.pools.get(id)
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().map(|(_, pool)| pool)
    }

    pub(crate) fn put_pool(&mut self, pool: Pool) {
        self.pools.insert(pool.id.clone(), Arc::new(pool));
    }

    pub(crate) fn drop_pool(&mut self, id: &PoolId) {
        self.pools.remove(id);
    }

    /// Returns whether anything is different now.
    pub(crate) fn put(&mut self, vm: Vm) -> bool {
        let vm = Arc::new(vm);
        if self.vm(&vm.id).is_some_and(|before| before.says_the_same(&vm)) {
            return false;
        }
        let before = self.rows.insert(vm.id.clone(), Arc::clone(&vm));
        self.reindex(before.as_deref(), Some(&vm));
        true
    }

    pub(crate) fn take(&mut self, id: &VmId) -> bool {
        let before = self.rows.remove(id);
        self.reindex(before.as_deref(), None);
        before.is_some()
    }

    fn reindex(&mut self, before: Option<&Vm>, after: Option<&Vm>) {
        let Some(id) = after.or(before).map(|vm| &vm.id) else { return };
        let name = |vm: &Vm| Some(Arc::clone(&vm.name));
        let owner = |vm: &Vm| Some((vm.claim.as_ref()?.door, Arc::clone(vm.owner()?)));
        move_entry(&mut self.by_name, id, before.and_then(name), after.and_then(name));
        move_entry(&mut self.by_owner, id, before.and_then(owner), after.and_then(owner));
        let request = Vm::request_id;
        move_entry(&mut self.by_request, id, before.and_then(request), after.and_then(request));
        let old = before.map(Vm::addresses).unwrap_or_default();
        let new = after.map(Vm::addresses).unwrap_or_default();
        for address in old.iter().filter(|address| !new.contains(address)) {
            self.by_address.remove(&(*address, id.clone()));
        }
        for address in new.into_iter().filter(|address| !old.contains(address)) {
            self.by_address.insert((address, id.clone()), ());
        }
    }
}

fn move_entry<K: Ord + Clone>(index: &mut Index<K>, id: &VmId, from: Option<K>, to: Option<K>) {
    if from == to {
        return;
    }
    if let Some(from) = from {
        index.remove(&(from, id.clone()));
    }
    if let Some(to) = to {
        index.insert((to, id.clone()), ());
    }
}
