// Command vcsim serves govmomi's vCenter simulator, with the flags our tests use.
//
// The simulator is govmomi's; flags keep the names and meanings of govmomi's own vcsim
// command. Three things differ on purpose: TLS is off unless asked for, the port is a free
// one, and the process ends when its standard input closes, so a killed test run leaves no
// server behind.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	_ "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

type options struct {
	listen, username, password string
	esx, tls                   bool
	delays                     methodDelays
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("vcsim: ")

	vpx := simulator.VPX()
	opts := parse(vpx)
	model := vpx
	if opts.esx {
		model = asESX(vpx)
	}
	if len(opts.delays) > 0 {
		model.DelayConfig.MethodDelay = opts.delays
		simulator.TaskDelay.MethodDelay = opts.delays
	}
	if err := serve(model, opts); err != nil {
		log.Fatal(err)
	}
}

// parse reads the flags; those that shape the inventory go straight into the model.
func parse(model *simulator.Model) options {
	opts := options{delays: methodDelays{}}
	flag.StringVar(&opts.listen, "l", "127.0.0.1:0", "listen `address`; port 0 picks a free one")
	flag.StringVar(&opts.username, "username", "", "the only user `name` that may log in (default any)")
	flag.StringVar(&opts.password, "password", "", "the password of -username")
	flag.BoolVar(&opts.esx, "esx", false, "be a standalone ESXi host instead of a vCenter")
	flag.BoolVar(&opts.tls, "tls", false, "serve HTTPS with a built-in self-signed certificate")
	flag.Var(opts.delays, "method-delay", "delays in milliseconds by method or task `name:ms,...`")

	flag.IntVar(&model.Datacenter, "dc", model.Datacenter, "datacenters")
	flag.IntVar(&model.Cluster, "cluster", model.Cluster, "clusters per datacenter")
	flag.IntVar(&model.ClusterHost, "host", model.ClusterHost, "hosts per cluster")
	flag.IntVar(&model.Host, "standalone-host", model.Host, "hosts outside clusters, per datacenter")
	flag.IntVar(&model.Pool, "pool", model.Pool, "child resource pools per cluster")
	flag.IntVar(&model.App, "app", model.App, "vApps per cluster")
	flag.IntVar(&model.Pod, "pod", model.Pod, "datastore clusters per datacenter")
	flag.IntVar(&model.Folder, "folder", model.Folder, "so many of the last datacenters sit in folders")
	flag.IntVar(&model.Datastore, "ds", model.Datastore, "datastores")
	flag.IntVar(&model.Machine, "vm", model.Machine, "VMs per resource pool and per standalone host")
	flag.BoolVar(&model.Autostart, "autostart", model.Autostart, "power on the VMs of the model")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	return opts
}

// asESX is the ESXi model with what applies to a single host taken from the flags.
func asESX(flags *simulator.Model) *simulator.Model {
	model := simulator.ESX()
	model.Datastore = flags.Datastore
	model.Machine = flags.Machine
	model.Autostart = flags.Autostart
	return model
}

// serve answers until it is told to end, then removes the files of the datastores. It does
// not wait for calls in progress: a WaitForUpdatesEx may have no end.
func serve(model *simulator.Model, opts options) error {
	defer model.Remove()
	if err := model.Create(); err != nil {
		return fmt.Errorf("creating the inventory: %w", err)
	}
	listen := &url.URL{Host: opts.listen}
	if opts.username != "" {
		listen.User = url.UserPassword(opts.username, opts.password)
	}
	model.Service.Listen = listen
	// REST and storage policies, of the packages that are imported for it.
	model.Service.RegisterEndpoints = true
	if opts.tls {
		model.Service.TLS = new(tls.Config)
	}
	server := model.Service.NewServer()
	fmt.Printf("export GOVC_URL=%s GOVC_SIM_PID=%d\n", server.URL, os.Getpid())
	waitForEnd()
	return nil
}

func waitForEnd() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end <- syscall.SIGTERM
	}()
	<-end
}

// methodDelays is the flag form `CloneVM_Task:100,PowerOn:200` of the simulator's delays.
type methodDelays map[string]int

func (d methodDelays) String() string { return "" }

func (d methodDelays) Set(text string) error {
	for _, pair := range strings.Split(text, ",") {
		method, millis, found := strings.Cut(pair, ":")
		if !found {
			return errors.New("want name:ms")
		}
		n, err := strconv.Atoi(millis)
		if err != nil {
			return err
		}
		d[method] = n
	}
	return nil
}
