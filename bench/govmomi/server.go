package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const virtualMachine = "VirtualMachine"

// server is a session on a vCenter whose traffic is counted.
type server struct {
	*vim25.Client
	meter    *meter
	sessions *session.Manager
}

func connect(ctx context.Context, address string) (*server, error) {
	if address == "" {
		return nil, errors.New("--url is missing")
	}
	u, err := soap.ParseURL(address)
	if err != nil {
		// The error of the URL parser quotes the URL, and with it the password.
		return nil, errors.New("--url is not a URL")
	}
	transport := soap.NewClient(u, true)
	m := &meter{next: transport.DefaultTransport()}
	transport.Transport = m
	client, err := vim25.NewClient(ctx, transport)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	sessions := session.NewManager(client)
	if err := sessions.Login(ctx, u.User); err != nil {
		return nil, fmt.Errorf("logging in: %w", err)
	}
	return &server{client, m, sessions}, nil
}

// close logs out; a context of its own lets it do so after a time-out too.
func (s *server) close() {
	_ = s.sessions.Logout(context.Background())
}

// allVMs makes a container view of every VM below the root folder.
func (s *server) allVMs(ctx context.Context) (*view.ContainerView, error) {
	root := s.ServiceContent.RootFolder
	v, err := view.NewManager(s.Client).CreateContainerView(ctx, root, []string{virtualMachine}, true)
	if err != nil {
		return nil, fmt.Errorf("creating a container view: %w", err)
	}
	return v, nil
}

// specOf selects the given properties of everything in the view.
func specOf(v *view.ContainerView, paths []string) types.PropertyFilterSpec {
	return types.PropertyFilterSpec{
		ObjectSet: []types.ObjectSpec{{
			Obj:       v.Reference(),
			Skip:      types.NewBool(true),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: v.Reference().Type, Path: "view"}},
		}},
		PropSet: []types.PropertySpec{{Type: virtualMachine, PathSet: paths}},
	}
}

// meter counts replies on their way to the decoder, and keeps a copy when asked to.
type meter struct {
	next         http.RoundTripper
	calls, bytes atomic.Int64
	tape         *bytes.Buffer
}

type traffic struct{ calls, bytes int64 }

func (m *meter) traffic() traffic {
	if m == nil {
		return traffic{}
	}
	return traffic{m.calls.Load(), m.bytes.Load()}
}

func (m *meter) RoundTrip(request *http.Request) (*http.Response, error) {
	m.calls.Add(1)
	reply, err := m.next.RoundTrip(request)
	if err == nil {
		reply.Body = &meteredBody{reply.Body, m}
	}
	return reply, err
}

type meteredBody struct {
	io.ReadCloser
	meter *meter
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.bytes.Add(int64(n))
	if b.meter.tape != nil {
		b.meter.tape.Write(p[:n])
	}
	return n, err
}
