// Command priorityqueue-bench measures the priority queue of controller-runtime, with the same
// steps as `cargo bench -p roost-workqueue` makes on ours. Each run is one round and prints one
// line of JSON per case.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// As controllers use them: the initial list at -100, ordinary events at 0, and some above.
var priorities = []int{-100, 0, 0, 0, 10, 100}

type line struct {
	Keys    int    `json:"keys"`
	Workers int    `json:"workers"`
	Step    string `json:"step"`
	cost
}

func main() {
	keys := flag.Int("keys", 10_000, "number of keys")
	workers := flag.Int("workers", 1, "producers, and consumers")
	turns := flag.Int("turns", 100_000, "turns at a full queue")
	flag.Parse()

	out := json.NewEncoder(os.Stdout)
	bench := newBench(*keys, *workers)
	defer bench.queue.ShutDown()
	say := func(step string, c cost) {
		if err := out.Encode(line{*keys, *workers, step, c}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	before := heap()
	say("add", measure(*keys, bench.fill))
	bench.settle()
	bytes := float64(heap()-before) / float64(*keys)
	say("add known", measure(*keys, bench.fill))
	say("get+done", measure(*keys, bench.drain))
	say("add+get+done", measure(*keys, func() { bench.fill(); bench.drain() }))
	bench.fill()
	say("turn at full queue", measure(*turns, func() { bench.turn(*turns) }))
	say("memory", cost{BytesPerKey: bytes})
}

type bench struct {
	keys    []reconcile.Request
	workers int
	queue   priorityqueue.PriorityQueue[reconcile.Request]
}

func newBench(keys, workers int) *bench {
	b := &bench{keys: make([]reconcile.Request, keys), workers: workers}
	for i := range b.keys {
		b.keys[i] = reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: fmt.Sprintf("ns-%d", i%50), Name: fmt.Sprintf("agent-%07d", i),
		}}
	}
	b.queue = priorityqueue.New[reconcile.Request]("bench")
	return b
}

func (b *bench) add(r *rand.Rand, key reconcile.Request) {
	priority := priorities[r.IntN(len(priorities))]
	b.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
}

// fill adds every key once.
func (b *bench) fill() {
	b.each(func(worker int) {
		r := rand.New(rand.NewPCG(1, uint64(worker)))
		for i := worker; i < len(b.keys); i += b.workers {
			b.add(r, b.keys[i])
		}
	})
}

// settle takes one key and puts it back: adds are buffered until somebody asks for a key.
func (b *bench) settle() {
	key, priority, _ := b.queue.GetWithPriority()
	b.queue.Done(key)
	b.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
}

// drain takes and finishes as many keys as there are.
func (b *bench) drain() {
	var left atomic.Int64
	left.Store(int64(len(b.keys)))
	b.each(func(int) {
		for left.Add(-1) >= 0 {
			key, _, _ := b.queue.GetWithPriority()
			b.queue.Done(key)
		}
	})
}

// turn takes a key, finishes it and adds it again; the queue stays full.
func (b *bench) turn(turns int) {
	b.each(func(worker int) {
		r := rand.New(rand.NewPCG(2, uint64(worker)))
		for i := worker; i < turns; i += b.workers {
			key, _, _ := b.queue.GetWithPriority()
			b.queue.Done(key)
			b.add(r, key)
		}
	})
}

func (b *bench) each(f func(worker int)) {
	var all sync.WaitGroup
	for i := range b.workers {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// heap is what lives on it.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
