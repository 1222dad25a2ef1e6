package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// cost is what one measured step took. Allocations are Go's running totals, so they count
// garbage too; bytes are of reply bodies after decompression.
type cost struct {
	Seconds    float64 `json:"seconds"`
	AllocBytes uint64  `json:"alloc_bytes"`
	Allocs     uint64  `json:"allocs"`
	Bytes      int64   `json:"bytes"`
	Calls      int64   `json:"calls"`
}

// stopwatch starts when it is made.
type stopwatch struct {
	began   time.Time
	memory  runtime.MemStats
	traffic traffic
	meter   *meter
}

// startWatch collects garbage first, so that a step does not pay for the one before it.
// The meter may be nil when nothing goes over the network.
func startWatch(m *meter) *stopwatch {
	w := &stopwatch{meter: m, traffic: m.traffic()}
	runtime.GC()
	runtime.ReadMemStats(&w.memory)
	w.began = time.Now()
	return w
}

func (w *stopwatch) stop() cost {
	seconds := time.Since(w.began).Seconds()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	traffic := w.meter.traffic()
	return cost{
		Seconds:    seconds,
		AllocBytes: now.TotalAlloc - w.memory.TotalAlloc,
		Allocs:     now.Mallocs - w.memory.Mallocs,
		Bytes:      traffic.bytes - w.traffic.bytes,
		Calls:      traffic.calls - w.traffic.calls,
	}
}

// startLap times a part of a step; the function it returns says how many seconds passed.
func startLap() func() float64 {
	began := time.Now()
	return func() float64 { return time.Since(began).Seconds() }
}

// median is the run in the middle by time; an even count takes the faster of the two.
func median(runs []cost) cost {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b cost) int {
		switch {
		case a.Seconds < b.Seconds:
			return -1
		case a.Seconds > b.Seconds:
			return 1
		}
		return 0
	})
	if len(sorted) == 0 {
		return cost{}
	}
	return sorted[(len(sorted)-1)/2]
}

func secondsOf(runs []cost) []float64 {
	seconds := make([]float64, 0, len(runs))
	for _, run := range runs {
		seconds = append(seconds, run.Seconds)
	}
	return seconds
}

// peakRSS is the most memory this process had resident so far; Linux counts in KiB.
func peakRSS() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss * 1024
}
