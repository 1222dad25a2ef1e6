//! What a node costs: `cargo bench -p roost-kubelet`.
//!
//! From a pod that is bound to the call that makes its VM, and the first byte of logs and exec through a real API server beside the command's own.
//! For memory the bench starts itself as a kubelet of its own process, which talks to the embedded API server over HTTPS.

mod bound;
mod first_byte;
mod memory;
mod parts;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == memory::KUBELET) {
        return memory::be_the_kubelet(&arguments[at + 1], &arguments[at + 2]);
    }
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!("a pod is bound: until the first call for its VM begins, 256 pods one after another");
    let (middle, late) = bound::best_of(5);
    println!(
        "  middle {middle:>5.1} ms   p99 {late:>5.1} ms   bound 20 ms {}",
        verdict(late < 20.0)
    );
    println!("calls of the command for a pod, looks at all VMs aside");
    for (what, calls) in bound::calls() {
        println!("  {what:<5} {calls}   bound 2 {}", verdict(calls <= 2));
    }
    println!("resident memory of a kubelet process");
    for (pods, bound) in [(0, 25.0), (11, 25.0), (256, 60.0)] {
        let megabytes = memory::resident_mb(pods);
        let verdict = verdict(megabytes < bound);
        println!("  {pods:>3} pods   {megabytes:>5.1} MB   bound {bound} MB {verdict}");
    }
    println!("the first byte through a real API server, over the command's own, middle of 60");
    let Some(found) = first_byte::measure() else { return };
    for (what, own, ours) in found {
        let more = ours - own;
        let verdict = verdict(more < 20.0);
        println!(
            "  {what}   {own:>5.1} ms alone, {ours:>5.1} ms   over {more:>5.1} ms   bound 20 ms {verdict}"
        );
    }
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}
