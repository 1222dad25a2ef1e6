//! What VirtualMachine objects cost: `cargo bench -p roost-vm-operator`.
//!
//! Passes run in process on the embedded API server and the embedded vCenter, whose time is simulated. For memory the bench starts itself as a controller
//! of its own process, which talks to both over the wire.

#![expect(clippy::unwrap_used, reason = "a bench may")]

#[expect(dead_code, reason = "scenarios use more of it")]
#[path = "../../tests/scenario/lab.rs"]
mod lab;
mod memory;
mod passes;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == memory::CONTROLLER) {
        let [kubeconfig, vcenter, objects] = &arguments[at + 1..at + 4] else { return };
        return memory::be_the_controller(kubeconfig, vcenter, objects);
    }
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    // A debug build shows that it works with fewer: `ROOST_BENCH_OBJECTS=20`.
    let most: usize = std::env::var("ROOST_BENCH_OBJECTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5_000);
    let objects = |wanted: usize| wanted.min(most);
    let verdict = |is_met: bool| if is_met { "met" } else { "MISSED" };

    println!("a VM from applied to powered on with an address");
    let cost = passes::one_vm();
    println!(
        "  {} calls, {} writes, {} passes   bound 12 calls and 8 writes {}",
        cost.calls,
        cost.writes,
        cost.passes,
        verdict(cost.calls <= 12 && cost.writes <= 8)
    );
    println!("a settled pass, without calls and without writes");
    for number in [200, 1_000] {
        let number = objects(number);
        let (wall, cpu) = passes::settled(5, number);
        println!(
            "  {number:>5} objects   {cpu:>6.1} us of CPU, {wall:>6.1} us by wall   bound 100 us {}",
            verdict(cpu < 100.0)
        );
    }
    let number = objects(1_000);
    let before = passes::before_a_new_one(number);
    println!(
        "a new VM behind {number} that are there, one worker: {before} passes go before its create   bound {number} {}",
        verdict(before < number as u64)
    );
    println!("resident memory of a controller process");
    for (number, bound) in [(200, 40.0), (5_000, 200.0)] {
        let number = objects(number);
        let megabytes = memory::resident_mb(number);
        println!(
            "  {number:>5} objects   {megabytes:>6.1} MB   bound {bound} MB {}",
            verdict(megabytes < bound)
        );
    }
}
