use std::net::IpAddr;
use std::sync::Arc;

use super::pool::Pool;
use super::vm::Vm;
use crate::cow_map::{CowMap, Difference};
use crate::{PoolId, VmId};

/// All rows and the ways to find them. A clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    rows: CowMap<VmId, Arc<Vm>>,
    by_name: Index<Arc<str>>,
    by_owner: Index<Arc<str>>,
    by_job: Index<Arc<str>>,
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
        self.listed(&self.by_name, name)
    }

    pub(crate) fn owned_by<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.listed(&self.by_owner, owner)
    }

    pub(crate) fn serving<'a>(&'a self, job: &'a str) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.listed(&self.by_job, job)
    }

    pub(crate) fn using(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Vm>> {
        let hits = self.by_address.seek(move |(own, _)| *own < address);
        hits.take_while(move |((own, _), ())| *own == address)
            .filter_map(|((_, id), ())| self.vm(id))
    }

    fn listed<'a>(
        &'a self,
        index: &'a Index<Arc<str>>,
        key: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Vm>> {
        let hits = index.seek(move |(own, _)| **own < *key);
        hits.take_while(move |((own, _), ())| **own == *key).filter_map(|((_, id), ())| self.vm(id))
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
        let owner = |vm: &Vm| vm.owner().cloned();
        let job = |vm: &Vm| vm.job().cloned();
        move_entry(&mut self.by_name, id, before.and_then(name), after.and_then(name));
        move_entry(&mut self.by_owner, id, before.and_then(owner), after.and_then(owner));
        move_entry(&mut self.by_job, id, before.and_then(job), after.and_then(job));
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
