package net_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/admission"
	"slipway.dev/slipway/pxe/httpboot"
	"slipway.dev/slipway/pxe/tftp"
	"slipway.dev/slipway/test/netlab"
)

// bootSetup is what the boot doors under test are told, as JSON on their standard input.
type bootSetup struct {
	Artefacts string // folder of files named by their digest
	Loaders   []string
	Admission admission.Rules
}

// serveBoot runs the two doors that send files, with an engine that says what it is told.
func serveBoot() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var in bootSetup
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	loaders, err := images.LoadLoaders(in.Loaders)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	files := tftp.New(tftp.Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:69")}, Boots: bootOperator{}, Loaders: loaders,
		BootPort: 80, Now: time.Now, Log: log,
	})
	web := httpboot.New(httpboot.Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:80")}, Boots: bootOperator{}, Loaders: loaders,
		Artefacts: artefactFolder(in.Artefacts), Admission: admission.New(func(netip.Addr) admission.Rules { return in.Admission }, time.Now), Now: time.Now, Log: log,
	})
	for _, listen := range []func() error{files.Listen, web.Listen} {
		if err := listen(); err != nil {
			return err
		}
	}
	fmt.Println("serving boots")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return files.Serve(ctx) })
	group.Go(func() error { return web.Serve(ctx) })
	return group.Wait()
}

// artefactFolder has artefacts as files named by their digest.
type artefactFolder string

func (d artefactFolder) Open(digest inventory.Digest) (*os.File, inventory.Artefact, error) {
	f, err := os.Open(filepath.Join(string(d), digest.Hex()))
	if err != nil {
		return nil, inventory.Artefact{}, inventory.Errorf(inventory.NotFound, "no artefact %s", digest)
	}
	info, err := f.Stat()
	return f, inventory.Artefact{Digest: digest, SizeBytes: info.Size()}, err
}

// bootOperator is a boot engine that allows everything and prints what it hears.
type bootOperator struct{}

func (bootOperator) Ask(_ context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	return fmt.Appendf(nil, "#!ipxe\necho ask %s %s %s\n", s, source, base), nil
}

func (bootOperator) Script(_ context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	return fmt.Appendf(nil, "#!ipxe\necho script %s %s %s %s\n", s, c.MAC, c.Address, base), nil
}

func (bootOperator) Document(_ context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	return pxe.ConfigDocument{ContentType: "text/plain", Data: []byte(r.Name)}, nil
}

func (bootOperator) Report(_ context.Context, s inventory.SessionID, source netip.Addr, _ string, r pxe.Report) error {
	fmt.Printf("report %s %s %s %q %q\n", s, source, r.Step, r.Detail, r.Log)
	return nil
}

func (bootOperator) Artefact(_ context.Context, _ inventory.SessionID, _ netip.Addr, d inventory.Digest, _ string) (inventory.Digest, error) {
	return d, nil
}

func (bootOperator) Transferring(t pxe.Transfer) {
	fmt.Printf("began %s %s %s\n", t.Proto, t.Name, t.Source)
}

func (bootOperator) Transferred(t pxe.Transfer) {
	fmt.Printf("ended %s %s %s %d/%d err=%v\n", t.Proto, t.Name, t.Source, t.Bytes, t.Size, t.Err)
}

// bootRack is a namespace with the boot doors at 10.78.1.1, and one with a machine at 10.78.1.10.
type bootRack struct {
	*lab
	server, machine string
	doors           *process
	artefacts       string
}

func newBootRack(l *lab, in bootSetup, wrap ...string) *bootRack {
	l.T.Helper()
	r := &bootRack{lab: l, server: l.NS("boot"), machine: l.NS("machine"), artefacts: l.T.TempDir()}
	l.Wire(r.server, "srv0", r.machine, "eth0")
	l.In(r.server, "ip", "addr", "add", "10.78.1.1/24", "dev", "srv0")
	l.In(r.machine, "ip", "addr", "add", "10.78.1.10/24", "dev", "eth0")
	in.Artefacts = r.artefacts
	input, err := json.Marshal(in)
	if err != nil {
		l.T.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		l.T.Fatal(err)
	}
	r.doors = l.Start(r.server, []string{netlab.Child("boot")}, strings.NewReader(string(input)), append(wrap, exe)...)
	r.doors.WaitFor("serving boots", 1)
	return r
}
