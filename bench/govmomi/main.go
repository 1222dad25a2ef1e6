// Command govmomi-bench does with govmomi what Roost does with its own vSphere client, and
// measures it. Each subcommand prints one line of JSON; README.md explains the fields.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// narrow is what Roost's mirror of a datacenter reads of a VM.
var narrow = []string{
	"name", "config.annotation", "config.template", "config.uuid", "summary.config.numCpu",
	"summary.config.memorySizeMB", "runtime.powerState", "guest.ipAddress", "guest.net",
	"guest.guestOperationsReady", "guest.toolsRunningStatus", "resourcePool", "parent",
}

// wide is what the Go hatchery reads of a VM.
var wide = []string{"name", "summary", "guest", "config"}

// propertySet is a flag value: one of the two sets by its name.
type propertySet struct {
	name  string
	paths []string
}

func (p *propertySet) String() string { return p.name }

func (p *propertySet) Set(name string) error {
	switch name {
	case "narrow":
		*p = propertySet{name, narrow}
	case "wide":
		*p = propertySet{name, wide}
	default:
		return errors.New("want narrow or wide")
	}
	return nil
}

// replyKind is a flag value: which of the two calls a recorded reply answers.
type replyKind string

const (
	retrieveReply replyKind = "retrieve"
	waitReply     replyKind = "wait"
)

func (k *replyKind) String() string { return string(*k) }

func (k *replyKind) Set(name string) error {
	switch replyKind(name) {
	case retrieveReply, waitReply:
		*k = replyKind(name)
		return nil
	}
	return errors.New("want retrieve or wait")
}

type options struct {
	url     string
	set     propertySet
	repeat  int
	change  bool
	vm      string
	file    string
	out     string
	kind    replyKind
	page    int
	timeout time.Duration
}

type command struct {
	usage string
	flags func(*flag.FlagSet, *options)
	run   func(context.Context, options) (any, error)
}

var commands = map[string]command{
	"list": {
		usage: "list --url URL [--set narrow|wide] [--repeat N]",
		flags: func(f *flag.FlagSet, o *options) { serverFlags(f, o); repeatFlag(f, o) },
		run:   func(ctx context.Context, o options) (any, error) { return list(ctx, o) },
	},
	"sync": {
		usage: "sync --url URL [--set narrow|wide] [--change --vm NAME]",
		flags: func(f *flag.FlagSet, o *options) {
			serverFlags(f, o)
			f.BoolVar(&o.change, "change", false, "then toggle the power of --vm and wait for the update")
			f.StringVar(&o.vm, "vm", "", "`name` of the VM that --change toggles")
		},
		run: func(ctx context.Context, o options) (any, error) { return sync(ctx, o) },
	},
	"record": {
		usage: "record --url URL [--set narrow|wide] [--kind retrieve|wait] [--page N] --out FILE",
		flags: func(f *flag.FlagSet, o *options) {
			serverFlags(f, o)
			f.Var(&o.kind, "kind", "the `call` whose reply to record")
			f.IntVar(&o.page, "page", 0, "ask for pages of `N` objects (0: as the server likes)")
			f.StringVar(&o.out, "out", "", "`file` to write; further pages get .2, .3, ... before the extension")
		},
		run: func(ctx context.Context, o options) (any, error) { return record(ctx, o) },
	},
	"decode": {
		usage: "decode --file BODY.xml [--kind retrieve|wait] [--repeat N]",
		flags: func(f *flag.FlagSet, o *options) {
			repeatFlag(f, o)
			f.Var(&o.kind, "kind", "the `call` that the recorded reply answers")
			f.StringVar(&o.file, "file", "", "recorded reply; a `pattern` with * decodes all its pages")
		},
		run: func(_ context.Context, o options) (any, error) { return decode(o) },
	},
}

func serverFlags(f *flag.FlagSet, o *options) {
	f.StringVar(&o.url, "url", "", "`URL` of the server with user and password")
	f.Var(&o.set, "set", "the `property set` to read")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "give up after this `duration`")
}

func repeatFlag(f *flag.FlagSet, o *options) {
	f.IntVar(&o.repeat, "repeat", 1, "measure `N` times and report the median")
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "govmomi-bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	chosen, known := commands[name]
	if !known {
		return errors.New("want one of: " + usages())
	}
	opts := options{set: propertySet{"narrow", narrow}, kind: retrieveReply, timeout: 10 * time.Minute}
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	chosen.flags(flags, &opts)
	_ = flags.Parse(args[1:]) // ExitOnError
	if flags.NArg() > 0 || opts.repeat < 0 {
		return errors.New("usage: " + chosen.usage)
	}
	ctx, cancel := context.WithTimeout(context.Background(), opts.timeout)
	defer cancel()
	report, err := chosen.run(ctx, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return json.NewEncoder(stdout).Encode(report)
}

func usages() string {
	var lines []string
	for _, name := range []string{"list", "sync", "record", "decode"} {
		lines = append(lines, commands[name].usage)
	}
	return strings.Join(lines, "; ")
}
