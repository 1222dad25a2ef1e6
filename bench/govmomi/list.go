package main

import (
	"context"

	"github.com/vmware/govmomi/vim25/mo"
)

type listReport struct {
	Command string `json:"command"`
	Set     string `json:"set"`
	VMs     int    `json:"vms"`
	cost
	Runs    []float64 `json:"runs"`
	PeakRSS int64     `json:"peak_rss_bytes"`
}

// list reads all VMs the way the Go hatchery does: a fresh view, one retrieve, typed objects.
func list(ctx context.Context, o options) (*listReport, error) {
	server, err := connect(ctx, o.url)
	if err != nil {
		return nil, err
	}
	defer server.close()

	report := &listReport{Command: "list", Set: o.set.name}
	var runs []cost
	for range o.repeat {
		watch := startWatch(server.meter)
		vms, err := listOnce(ctx, server, o.set.paths)
		if err != nil {
			return nil, err
		}
		runs = append(runs, watch.stop())
		report.VMs = len(vms)
	}
	report.cost, report.Runs, report.PeakRSS = median(runs), secondsOf(runs), peakRSS()
	return report, nil
}

func listOnce(ctx context.Context, server *server, paths []string) ([]mo.VirtualMachine, error) {
	v, err := server.allVMs(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Destroy(context.Background()) }()
	var vms []mo.VirtualMachine
	// Retrieve follows continuation tokens by itself.
	err = v.Retrieve(ctx, []string{virtualMachine}, paths, &vms)
	return vms, err
}
