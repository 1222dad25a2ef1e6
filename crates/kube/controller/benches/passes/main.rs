//! What a settled pass costs, and how much memory a controller needs: `cargo bench -p roost-controller`.
//!
//! Passes run in process on the embedded API server. For memory the bench starts itself as a controller of its own process,
//! which talks to the embedded server over HTTPS, as it would in a cluster.

mod machine;
mod memory;
mod settled;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == memory::CONTROLLER) {
        return memory::be_the_controller(&arguments[at + 1], &arguments[at + 2]);
    }
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    println!("a settled pass: signal, queue, store, draft, conditions, save without a call");
    for objects in [200, 5_000] {
        let (wall, cpu) = settled::best_of(5, objects);
        let verdict = if cpu < 100.0 { "met" } else { "MISSED" };
        println!(
            "  {objects:>5} objects   {cpu:>6.1} us of CPU, {wall:>6.1} us by wall   bound 100 us {verdict}"
        );
    }
    println!("resident memory of a controller process, objects of {} bytes each", machine::size());
    println!("  {:>5} objects   {:>6.1} MB", 0, memory::resident_mb(0));
    for (objects, bound) in [(200, 40.0), (5_000, 200.0)] {
        let megabytes = memory::resident_mb(objects);
        let verdict = if megabytes < bound { "met" } else { "MISSED" };
        println!("  {objects:>5} objects   {megabytes:>6.1} MB   bound {bound} MB {verdict}");
    }
}
