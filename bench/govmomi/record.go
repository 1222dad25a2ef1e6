package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

type recordReport struct {
	Command string    `json:"command"`
	Set     string    `json:"set"`
	Kind    replyKind `json:"kind"`
	Files   []string  `json:"files"`
	Bytes   int64     `json:"bytes"`
}

// record stores the reply bodies of a retrieve or of a first sync, one file per page.
func record(ctx context.Context, o options) (*recordReport, error) {
	if o.out == "" {
		return nil, errors.New("--out is missing")
	}
	server, err := connect(ctx, o.url)
	if err != nil {
		return nil, err
	}
	defer server.close()

	report := &recordReport{Command: "record", Set: o.set.name, Kind: o.kind}
	next, err := pages(ctx, server, o)
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		server.meter.tape = new(bytes.Buffer)
		if more, err = next(); err != nil {
			return nil, err
		}
		file := pageFile(o.out, len(report.Files)+1)
		if err := os.WriteFile(file, server.meter.tape.Bytes(), 0o644); err != nil {
			return nil, err
		}
		report.Files = append(report.Files, file)
		report.Bytes += int64(server.meter.tape.Len())
	}
	server.meter.tape = nil
	return report, nil
}

// pages returns a function that makes one call and says whether another page is there.
func pages(ctx context.Context, server *server, o options) (func() (bool, error), error) {
	if o.kind == waitReply {
		m, err := newMirror(ctx, server, o.set.paths)
		if err != nil {
			return nil, err
		}
		return func() (bool, error) { return m.next(ctx) }, nil
	}
	v, err := server.allVMs(ctx)
	if err != nil {
		return nil, err
	}
	collector := property.DefaultCollector(server.Client).Reference()
	spec := []types.PropertyFilterSpec{specOf(v, o.set.paths)}
	size := types.RetrieveOptions{MaxObjects: int32(o.page)}
	token := ""
	return func() (bool, error) {
		result, err := retrievePage(ctx, server, collector, spec, size, token)
		if err != nil || result == nil {
			return false, err
		}
		token = result.Token
		return token != "", nil
	}, nil
}

func retrievePage(ctx context.Context, server *server, collector types.ManagedObjectReference,
	spec []types.PropertyFilterSpec, size types.RetrieveOptions, token string) (*types.RetrieveResult, error) {
	if token == "" {
		request := types.RetrievePropertiesEx{This: collector, SpecSet: spec, Options: size}
		reply, err := methods.RetrievePropertiesEx(ctx, server.Client, &request)
		if err != nil {
			return nil, fmt.Errorf("retrieving properties: %w", err)
		}
		return reply.Returnval, nil
	}
	request := types.ContinueRetrievePropertiesEx{This: collector, Token: token}
	reply, err := methods.ContinueRetrievePropertiesEx(ctx, server.Client, &request)
	if err != nil {
		return nil, fmt.Errorf("continuing to retrieve properties: %w", err)
	}
	return &reply.Returnval, nil
}

// pageFile names the first page as asked, and page 2 of wide.xml wide.2.xml.
func pageFile(out string, page int) string {
	if page == 1 {
		return out
	}
	extension := filepath.Ext(out)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(out, extension), page, extension)
}
