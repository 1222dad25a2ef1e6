package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

type syncReport struct {
	Command string `json:"command"`
	Set     string `json:"set"`
	VMs     int    `json:"vms"`
	cost
	Pages            int           `json:"pages"`
	FirstPageSeconds float64       `json:"first_page_seconds"`
	Change           *changeReport `json:"change,omitempty"`
	PeakRSS          int64         `json:"peak_rss_bytes"`
}

// changeReport times one power change. The update may overtake the task's own result, so
// the second number can be negative.
type changeReport struct {
	VM             string  `json:"vm"`
	SubmitToUpdate float64 `json:"submit_to_update_seconds"`
	DoneToUpdate   float64 `json:"done_to_update_seconds"`
}

// sync mirrors all VMs through a property collector of its own.
func sync(ctx context.Context, o options) (*syncReport, error) {
	if o.change && o.vm == "" {
		return nil, errors.New("--change needs --vm")
	}
	server, err := connect(ctx, o.url)
	if err != nil {
		return nil, err
	}
	defer server.close()

	report := &syncReport{Command: "sync", Set: o.set.name}
	watch := startWatch(server.meter)
	m, err := newMirror(ctx, server, o.set.paths)
	if err != nil {
		return nil, err
	}
	for more := true; more; report.Pages++ {
		if more, err = m.next(ctx); err != nil {
			return nil, err
		}
		if report.Pages == 0 {
			report.FirstPageSeconds = time.Since(watch.began).Seconds()
		}
	}
	report.cost, report.VMs, report.PeakRSS = watch.stop(), len(m.vms), peakRSS()
	if o.change {
		report.Change, err = m.timeChange(ctx, o)
	}
	return report, err
}

// mirror keeps typed VMs current from the updates of one filter.
type mirror struct {
	server    *server
	collector *property.Collector
	version   string
	vms       map[types.ManagedObjectReference]*mo.VirtualMachine
}

func newMirror(ctx context.Context, server *server, paths []string) (*mirror, error) {
	v, err := server.allVMs(ctx)
	if err != nil {
		return nil, err
	}
	collector, err := property.DefaultCollector(server.Client).Create(ctx)
	if err != nil {
		return nil, fmt.Errorf("creating a property collector: %w", err)
	}
	_, err = collector.CreateFilter(ctx, types.CreateFilter{Spec: specOf(v, paths)})
	if err != nil {
		return nil, fmt.Errorf("creating a filter: %w", err)
	}
	vms := map[types.ManagedObjectReference]*mo.VirtualMachine{}
	return &mirror{server: server, collector: collector, vms: vms}, nil
}

// next waits for one page of updates, applies it, and says whether another is ready.
func (m *mirror) next(ctx context.Context) (more bool, err error) {
	for {
		request := types.WaitForUpdatesEx{This: m.collector.Reference(), Version: m.version}
		reply, err := methods.WaitForUpdatesEx(ctx, m.server.Client, &request)
		if err != nil {
			return false, fmt.Errorf("waiting for updates: %w", err)
		}
		set := reply.Returnval
		if set == nil {
			continue // the server's own time limit passed without news
		}
		m.version = set.Version
		for _, filter := range set.FilterSet {
			applyUpdates(m.vms, filter.ObjectSet)
		}
		return set.Truncated != nil && *set.Truncated, nil
	}
}

func applyUpdates(vms map[types.ManagedObjectReference]*mo.VirtualMachine, updates []types.ObjectUpdate) {
	for _, update := range updates {
		if update.Kind == types.ObjectUpdateKindLeave {
			delete(vms, update.Obj)
			continue
		}
		vm := vms[update.Obj]
		if vm == nil {
			vm = new(mo.VirtualMachine)
			vm.Self = update.Obj
			vms[update.Obj] = vm
		}
		mo.ApplyPropertyChange(vm, withValue(update.ChangeSet))
	}
}

// withValue drops changes to unset, which ApplyPropertyChange cannot take.
func withValue(changes []types.PropertyChange) []types.PropertyChange {
	kept := changes[:0]
	for _, change := range changes {
		if change.Val != nil {
			kept = append(kept, change)
		}
	}
	return kept
}

type powerChange struct {
	submitted, done time.Time
	err             error
}

// timeChange toggles the power of a VM on a session of its own while this one listens.
func (m *mirror) timeChange(ctx context.Context, o options) (*changeReport, error) {
	vm := m.find(o.vm)
	if vm == nil {
		return nil, fmt.Errorf("no VM %q", o.vm)
	}
	if vm.Runtime.PowerState == "" {
		return nil, fmt.Errorf("--change needs a set with runtime.powerState, not %s", o.set.name)
	}
	other, err := connect(ctx, o.url)
	if err != nil {
		return nil, err
	}
	defer other.close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ref, before := vm.Self, vm.Runtime.PowerState
	toggled := make(chan powerChange, 1)
	go func() {
		change := toggle(ctx, other, ref, before)
		if change.err != nil {
			cancel(change.err) // no update will come
		}
		toggled <- change
	}()
	for m.vms[ref] == nil || m.vms[ref].Runtime.PowerState == before {
		if _, err := m.next(ctx); err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
	seen := time.Now()
	change := <-toggled
	return &changeReport{
		VM:             o.vm,
		SubmitToUpdate: seen.Sub(change.submitted).Seconds(),
		DoneToUpdate:   seen.Sub(change.done).Seconds(),
	}, change.err
}

func (m *mirror) find(name string) *mo.VirtualMachine {
	for _, vm := range m.vms {
		if vm.Name == name {
			return vm
		}
	}
	return nil
}

func toggle(ctx context.Context, s *server, ref types.ManagedObjectReference, now types.VirtualMachinePowerState) (change powerChange) {
	vm := object.NewVirtualMachine(s.Client, ref)
	submit := vm.PowerOn
	if now == types.VirtualMachinePowerStatePoweredOn {
		submit = vm.PowerOff
	}
	change.submitted = time.Now()
	task, err := submit(ctx)
	if err == nil {
		err = task.Wait(ctx)
	}
	change.done, change.err = time.Now(), err
	return change
}
