package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

type decodeReport struct {
	Command string    `json:"command"`
	Kind    replyKind `json:"kind"`
	VMs     int       `json:"vms"`
	cost
	LoadSeconds float64   `json:"load_seconds"`
	Runs        []float64 `json:"runs"`
	PeakRSS     int64     `json:"peak_rss_bytes"`
}

// decode turns recorded replies into typed VMs as a user of govmomi does: its SOAP client's
// decoder first, then the step from property values to managed objects (load_seconds of
// seconds).
func decode(o options) (*decodeReport, error) {
	bodies, size, err := readBodies(o.file)
	if err != nil {
		return nil, err
	}
	load := loadRetrieve
	if o.kind == waitReply {
		load = loadWait
	}
	report := &decodeReport{Command: "decode", Kind: o.kind}
	var runs, loads []cost
	for range o.repeat {
		vms := vmSet{}
		var loading float64
		watch := startWatch(nil)
		for _, body := range bodies {
			seconds, err := load(body, vms)
			if err != nil {
				return nil, err
			}
			loading += seconds
		}
		runs = append(runs, watch.stop())
		loads = append(loads, cost{Seconds: loading})
		report.VMs = len(vms)
	}
	report.cost, report.Runs, report.PeakRSS = median(runs), secondsOf(runs), peakRSS()
	report.LoadSeconds, report.Bytes = median(loads).Seconds, size
	return report, nil
}

type vmSet = map[types.ManagedObjectReference]*mo.VirtualMachine

func loadRetrieve(body []byte, vms vmSet) (loadSeconds float64, err error) {
	// The reply to a continuation differs in the name of its element only.
	var reply struct {
		First *types.RetrievePropertiesExResponse         `xml:"RetrievePropertiesExResponse"`
		Later *types.ContinueRetrievePropertiesExResponse `xml:"ContinueRetrievePropertiesExResponse"`
		Fault *soap.Fault                                 `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault"`
	}
	if err := decodeEnvelope(body, &reply); err != nil {
		return 0, err
	}
	var content []types.ObjectContent
	switch {
	case reply.Fault != nil:
		return 0, soap.WrapSoapFault(reply.Fault)
	case reply.First != nil && reply.First.Returnval != nil:
		content = reply.First.Returnval.Objects
	case reply.Later != nil:
		content = reply.Later.Returnval.Objects
	case reply.First == nil:
		return 0, errors.New("not a reply to RetrievePropertiesEx")
	}
	watch := startLap()
	var loaded []mo.VirtualMachine
	if err := mo.LoadObjectContent(content, &loaded); err != nil {
		return 0, err
	}
	loadSeconds = watch()
	for i := range loaded {
		vms[loaded[i].Self] = &loaded[i]
	}
	return loadSeconds, nil
}

func loadWait(body []byte, vms vmSet) (loadSeconds float64, err error) {
	var reply methods.WaitForUpdatesExBody
	if err := decodeEnvelope(body, &reply); err != nil {
		return 0, err
	}
	switch {
	case reply.Fault_ != nil:
		return 0, soap.WrapSoapFault(reply.Fault_)
	case reply.Res == nil:
		return 0, errors.New("not a reply to WaitForUpdatesEx")
	case reply.Res.Returnval == nil:
		return 0, nil
	}
	watch := startLap()
	for _, filter := range reply.Res.Returnval.FilterSet {
		applyUpdates(vms, filter.ObjectSet)
	}
	return watch(), nil
}

// decodeEnvelope is what govmomi's SOAP client does with a reply.
func decodeEnvelope(body []byte, reply any) error {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.TypeFunc = types.TypeFunc()
	envelope := soap.Envelope{Body: reply}
	if err := decoder.Decode(&envelope); err != nil {
		return fmt.Errorf("decoding the reply: %w", err)
	}
	return nil
}

func readBodies(pattern string) (bodies [][]byte, size int64, err error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, 0, err
	}
	if len(files) == 0 {
		return nil, 0, fmt.Errorf("no file %q", pattern)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, 0, err
		}
		bodies = append(bodies, body)
		size += int64(len(body))
	}
	return bodies, size, nil
}
