package main

import (
	"runtime"
	"syscall"
	"time"
)

// cost is what one operation of a step took, in nanoseconds of wall and of CPU time.
type cost struct {
	Wall        float64 `json:"wall"`
	CPU         float64 `json:"cpu"`
	BytesPerKey float64 `json:"bytes_per_key"`
}

// measure collects garbage first, so that a step does not pay for the one before it.
func measure(operations int, f func()) cost {
	runtime.GC()
	cpu, wall := cpuTime(), time.Now()
	f()
	count := float64(operations)
	return cost{Wall: float64(time.Since(wall)) / count, CPU: float64(cpuTime()-cpu) / count}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
