//! How a task goes from one state to the next.

use std::time::Duration;

use jiff::Timestamp;
use roost_vim_wire::{LocalizedMethodFault, MoRef, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::fault_rules::TaskEffect;
use crate::task::{Job, RETENTION, Run, State, Step, Task, announce_recent, prune};
use crate::world::{Handle, World};

/// Progress is told at every tenth of the way, but not more often than this.
const TICK: Duration = Duration::from_secs(1);

/// Starts a job as a task of the caller.
pub(crate) fn submit(world: &mut World, cx: &CallContext<'_>, job: Job) -> MoRef {
    let (handle, user, now) = (cx.handle, cx.user, cx.now);
    let moref = world.inventory.ids.task();
    let name = world.inventory.shared_name(&job.entity).cloned();
    let is_queued = job.is_clone && world.tasks.cloning >= world.tasks.concurrent_clones;
    let task = Task {
        moref: moref.clone(),
        method: job.method,
        entity: job.entity.clone(),
        entity_name: name.unwrap_or_else(|| job.entity.id.clone()),
        user: user.into(),
        is_cancelable: job.is_cancelable,
        is_cancelled: false,
        progress: None,
        queued: now,
        started: None,
        completed: None,
        chain: 0,
        state: State::Queued(job),
    };
    let entity = task.entity.clone();
    let serial = world.tasks.enter(task);
    world.inventory.enter_other(&moref);
    announce_recent(world, &entity);
    let chain = event::post_task(world, &moref, &Scene::of(user, now));
    if let Some(task) = world.tasks.all.get_mut(&serial) {
        task.chain = chain;
    }
    if is_queued {
        world.tasks.queue.push_back(serial);
    } else {
        start(world, handle, serial);
    }
    moref
}

/// From `queued` to `running`.
fn start(world: &mut World, handle: &Handle, serial: u64) {
    let now = handle.now();
    let Some(task) = world.tasks.all.get_mut(&serial) else { return };
    let State::Queued(job) = std::mem::replace(&mut task.state, State::Success(None)) else {
        return;
    };
    let (moref, holds, is_clone) = (task.moref.clone(), job.holds.clone(), job.is_clone);
    let (method, entity, name) = (task.method, task.entity.clone(), task.entity_name.clone());
    task.state = State::Running(job);
    task.started = Some(now);
    world.inventory.changes.modified(&moref, ["info.state", "info.startTime"]);
    if is_clone {
        world.tasks.cloning += 1;
    }
    if let Err(failure) = world.tasks.locks.take(&moref, &holds) {
        return finish(world, handle, serial, Err(failure));
    }
    let effect = world.rules.for_task(method, &entity, &name);
    let Some(State::Running(job)) = world.tasks.all.get_mut(&serial).map(|task| &mut task.state)
    else {
        return;
    };
    match effect {
        None => {}
        Some(TaskEffect::Delay(extra)) => {
            let step = job.steps.iter_mut().find(|step| !step.takes.is_zero());
            match step {
                Some(step) => step.takes += extra,
                None => job.steps.push_front(idle(extra)),
            }
        }
        Some(TaskEffect::Fail(error)) => {
            // Nothing is done, but the time it would have taken passes.
            let takes = job.total();
            job.steps.clear();
            job.steps.push_back(Step {
                takes,
                work: Box::new(move |_, _| {
                    Err(Failure::new(error.fault, error.localized_message.unwrap_or_default()))
                }),
            });
        }
        Some(TaskEffect::Hang) => {
            if let Some(task) = world.tasks.all.get_mut(&serial) {
                task.is_cancelable = true;
            }
            world.inventory.changes.modified(&moref, ["info.cancelable"]);
            return;
        }
    }
    let total = job.total();
    advance(world, handle, serial);
    if total >= TICK * 2 {
        let every = (total / 10).max(TICK);
        tick(handle, serial, every, total, every);
    }
}

fn idle(takes: Duration) -> Step {
    Step { takes, work: Box::new(|_, _| Ok(None)) }
}

fn tick(handle: &Handle, serial: u64, at: Duration, total: Duration, every: Duration) {
    handle.after(every, move |world, handle| {
        let Some(task) =
            world.tasks.all.get_mut(&serial).filter(|task| matches!(task.state, State::Running(_)))
        else {
            return;
        };
        let percent = at.as_millis() * 100 / total.as_millis().max(1);
        task.progress = Some(i32::try_from(percent).unwrap_or(95).min(95));
        let moref = task.moref.clone();
        world.inventory.changes.modified(&moref, ["info.progress"]);
        if at < total {
            tick(handle, serial, at + every, total, every);
        }
    });
}

/// Runs the steps that take no time, and waits for the first that does.
fn advance(world: &mut World, handle: &Handle, serial: u64) {
    let mut result = None;
    loop {
        let Some(State::Running(job)) =
            world.tasks.all.get_mut(&serial).map(|task| &mut task.state)
        else {
            return;
        };
        match job.steps.front() {
            None => return finish(world, handle, serial, Ok(result)),
            Some(step) if step.takes.is_zero() => {}
            Some(step) => {
                let takes = step.takes;
                return handle.after(takes, move |world, handle| {
                    if let Some(State::Running(job)) =
                        world.tasks.all.get_mut(&serial).map(|task| &mut task.state)
                    {
                        if let Some(step) = job.steps.front_mut() {
                            step.takes = Duration::ZERO;
                        }
                        advance(world, handle, serial);
                    }
                });
            }
        }
        match work(world, handle, serial) {
            Ok(None) => {}
            Ok(value) => result = value,
            Err(failure) => return finish(world, handle, serial, Err(failure)),
        }
    }
}

/// Does the next step's work.
fn work(world: &mut World, handle: &Handle, serial: u64) -> Result<Option<Value>, Failure> {
    let Some(task) = world.tasks.all.get_mut(&serial) else { return Ok(None) };
    let run = Run {
        handle,
        task: task.moref.clone(),
        user: task.user.clone(),
        chain: task.chain,
        now: handle.now(),
    };
    let State::Running(job) = &mut task.state else { return Ok(None) };
    let Some(step) = job.steps.pop_front() else { return Ok(None) };
    (step.work)(world, &run)
}

/// Says that from now on a task cannot be cancelled: what it has made stays, and so does nothing that undo would give back.
pub(crate) fn commit(world: &mut World, task: &MoRef) {
    let Some(serial) = world.tasks.serials.get(&task.id).copied() else { return };
    let Some(row) = world.tasks.all.get_mut(&serial) else { return };
    if let State::Running(job) = &mut row.state {
        job.undo = None;
    }
    if row.is_cancelable {
        row.is_cancelable = false;
        world.inventory.changes.modified(task, ["info.cancelable"]);
    }
}

/// From `running` to its end.
fn finish(
    world: &mut World,
    handle: &Handle,
    serial: u64,
    outcome: Result<Option<Value>, Failure>,
) {
    let now = handle.now();
    let outcome = outcome.map_err(Failure::localized);
    let was_clone = end(world, serial, outcome, now);
    if was_clone {
        start_next_clone(world, handle);
    }
    prune(world, now);
    handle.after(RETENTION, |world, handle| prune(world, handle.now()));
}

/// Writes the end of a task down. Returns whether a place for a clone became free.
fn end(
    world: &mut World,
    serial: u64,
    outcome: Result<Option<Value>, LocalizedMethodFault>,
    now: Timestamp,
) -> bool {
    let Some(task) = world.tasks.all.get_mut(&serial) else { return false };
    let is_error = outcome.is_err();
    let state = outcome.map_or_else(State::Error, State::Success);
    let (job, was_running) = match std::mem::replace(&mut task.state, state) {
        State::Running(job) => (job, true),
        State::Queued(job) => (job, false),
        finished => {
            task.state = finished;
            return false;
        }
    };
    task.completed = Some(now);
    task.is_cancelable = false;
    task.progress = None;
    let (moref, entity) = (task.moref.clone(), task.entity.clone());
    world.tasks.finished.push_back(serial);
    world.tasks.locks.release(&moref);
    world.tasks.queue.retain(|other| *other != serial);
    let outcome_path = if is_error { "info.error" } else { "info.result" };
    let paths = [
        "info.state",
        outcome_path,
        "info.completeTime",
        "info.progress",
        "info.cancelable",
        "info.cancelled",
    ];
    world.inventory.changes.modified(&moref, paths);
    announce_recent(world, &entity);
    if let Some(undo) = job.undo.filter(|_| is_error) {
        undo(world);
    }
    if was_running && job.is_clone {
        world.tasks.cloning -= 1;
    }
    was_running && job.is_clone
}

fn start_next_clone(world: &mut World, handle: &Handle) {
    while world.tasks.cloning < world.tasks.concurrent_clones {
        let Some(serial) = world.tasks.queue.pop_front() else { return };
        start(world, handle, serial);
    }
}

/// Ends a task that is under way with `RequestCanceled`.
pub(crate) fn cancel(world: &mut World, handle: &Handle, task: &MoRef) -> Result<(), Failure> {
    let Some(serial) = world.tasks.serials.get(&task.id).copied() else {
        return Err(Failure::not_found(task));
    };
    let Some(row) = world.tasks.all.get_mut(&serial) else { return Err(Failure::not_found(task)) };
    if row.state.is_finished() {
        return Err(Failure::of("InvalidState", "The task has already finished."));
    }
    if !row.is_cancelable {
        return Err(Failure::of("NotSupported", "The task cannot be cancelled."));
    }
    row.is_cancelled = true;
    let canceled = Failure::of("RequestCanceled", "The task was canceled by a user.");
    finish(world, handle, serial, Err(canceled));
    Ok(())
}

/// Ends a task because the server that ran it is gone.
pub(super) fn abandon(world: &mut World, serial: u64, now: Timestamp) {
    let gone = Failure::of("SystemError", "The server was restarted.")
        .with("reason", &"vpxd restarted".to_owned());
    end(world, serial, Err(gone.localized()), now);
}
